"""`offsets get --watch`: a line for each offset that changes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from pyconnect_cli.errors import OutOfTime, Unreachable
from pyconnect_cli.kafka.model import kafka_offset
from pyconnect_cli.offsets.plan.change import OffsetChange
from pyconnect_cli.offsets.stored import known_offsets, offset_differences
from pyconnect_cli.rest.offset_entries import (
    SINK_OFFSET_KEY,
    OffsetEntry,
    partition_json,
    show_offset,
    show_partition,
)
from pyconnect_cli.session import Session
from pyconnect_cli.settings.resolved import NO_ORIGIN


def watch_offsets(session: Session, name: str, pause_s: float) -> None:
    """Print each change until Ctrl-C, the run's end, or the end of the reader.

    The first look prints every offset as a change from none.
    """
    limited = session.settings.origins["timeout"] != NO_ORIGIN
    last: Sequence[OffsetEntry] = ()
    seen_s: float | None = None
    while True:
        try:
            now = known_offsets(session, name).entries
        except (OutOfTime, Unreachable):
            if limited and session.budget.spent:
                return
            raise
        moment_s = time.monotonic()
        for change in offset_differences(last, now):
            _print_change(session, change, None if seen_s is None else moment_s - seen_s)
        last, seen_s = now, moment_s
        if session.output.unwritten or (limited and session.budget.remaining_s() <= pause_s):
            return
        time.sleep(pause_s)
        if not limited:
            session.renew_time()


def advanced(change: OffsetChange) -> int | None:
    """Return by how many records a sink's offset moved; None for a source's, or without both."""
    entries = [
        OffsetEntry(partition=change.partition, offset=offset)
        for offset in (change.before, change.after)
        if offset is not None and set(offset) == {SINK_OFFSET_KEY}
    ]
    numbers = [kafka_offset(entry) for entry in entries]
    if len(numbers) < 2 or numbers[0] is None or numbers[1] is None:
        return None
    return numbers[1] - numbers[0]


def _print_change(session: Session, change: OffsetChange, elapsed_s: float | None) -> None:
    moment = datetime.now().astimezone()
    records = advanced(change)
    text = f"{show_offset(change.before)} -> {show_offset(change.after)}"
    if elapsed_s is None:
        text = show_offset(change.after)
    elif records is not None:
        text += f"  ({records:+,}, {records / max(elapsed_s, 0.001):,.0f}/s)"
    session.output.document(
        {
            "time": moment.isoformat(timespec="milliseconds"),
            "partition": partition_json(change.partition),
            "before": change.before,
            "after": change.after,
        },
        text=f"{moment:%H:%M:%S}  {show_partition(change.partition)}  {text}",
    )
