"""`offsets get`, once or repeatedly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from pyconnect_cli.acting.selection import (
    known_offsets,
    report_unread,
    selected_views,
    selection_from,
    unread_error,
)
from pyconnect_cli.acting.wait import looks
from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.offset_entries import (
    SINK_OFFSET_KEY,
    ConnectorOffsets,
    OffsetEntry,
    show_offset,
    show_partition,
)
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import NamesArgument, SelectingVerb, option

if TYPE_CHECKING:
    from pyconnect_cli.offsets.plan.change import OffsetChange

app = typer.Typer()

COLUMNS: Sequence[Column[OffsetEntry]] = (
    Column("PARTITION", lambda entry: show_partition(entry.partition), whole=True),
    Column("OFFSET", lambda entry: show_offset(entry.offset)),
)
OWNED_COLUMNS: Sequence[Column[tuple[str, OffsetEntry]]] = (
    Column("CONNECTOR", lambda row: row[0], whole=True),
    Column("PARTITION", lambda row: show_partition(row[1].partition), whole=True),
    Column("OFFSET", lambda row: show_offset(row[1].offset)),
)


@app.command(cls=SelectingVerb)
def get(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    watch: Annotated[
        bool,
        option(
            "--watch",
            "a line for each change of a connector's offset, until Ctrl-C or for --timeout"
            " when it is given",
        ),
    ] = False,
    interval: Annotated[
        str, option("--interval TIME", "time between two requests of --watch")
    ] = "2s",
) -> None:
    """Show the stored offsets of connectors.

    With one name, -o json prints the REST body, which `alter -f` accepts; otherwise an object of
    them by name.
    """
    session = session_of(context)
    single = names and len(names) == 1 and not selection_from(session.given, ()).filters
    if watch:
        if not names or not single:
            raise UsageError("--watch needs the name of one connector")
        watch_offsets(session, names[0], parse_duration(interval, what="--interval"))
        return
    if names and single:
        offsets = known_offsets(session, names[0])
        session.output.listing(
            COLUMNS,
            offsets.entries,
            document=offsets.raw,
            entries=[entry.to_json() for entry in offsets.entries],
            empty=f"{names[0]} has no stored offsets",
        )
        return
    found: dict[str, ConnectorOffsets] = {}
    unread: list[PyconnectError] = []
    for view in (views := selected_views(session, names or ())):
        try:
            found[view.name] = known_offsets(session, view.name)
        except PyconnectError as error:
            unread.append(unread_error(view.name, error))
    rows = [(name, entry) for name, offsets in found.items() for entry in offsets.entries]
    session.output.listing(
        OWNED_COLUMNS,
        rows,
        document={name: offsets.raw for name, offsets in found.items()},
        entries=[{"connector": name, **entry.to_json()} for name, entry in rows],
        empty="no stored offsets",
    )
    report_unread(session, unread, len(views))


def watch_offsets(session: Session, name: str, pause_s: float) -> None:
    """Print each change until Ctrl-C, the run's end, or until the reader of the output ends.

    The first look prints every offset as a change from none.
    """
    from pyconnect_cli.offsets.plan.change import offset_differences

    last: Sequence[OffsetEntry] = ()
    seen_s: float | None = None
    for offsets in looks(session, pause_s, lambda: known_offsets(session, name)):
        moment_s = time.monotonic()
        for change in offset_differences(last, offsets.entries):
            elapsed_s = None if seen_s is None else moment_s - seen_s
            moment = datetime.now().astimezone()
            records = advanced(change)
            text = f"{show_offset(change.before)} -> {show_offset(change.after)}"
            if elapsed_s is None:
                text = show_offset(change.after)
            elif records is not None:
                text += f"  ({records:+,}, {records / max(elapsed_s, 0.001):,.0f}/s)"
            session.output.document(
                {"time": moment.isoformat(timespec="milliseconds"), **change.to_json()},
                text=f"{moment:%H:%M:%S}  {show_partition(change.partition)}  {text}",
            )
        last, seen_s = offsets.entries, moment_s


def advanced(change: OffsetChange) -> int | None:
    """Return by how many records a sink's offset moved; None for a source or if one is missing."""
    from pyconnect_cli.kafka.model import kafka_offset

    entries = [
        OffsetEntry(partition=change.partition, offset=offset)
        for offset in (change.before, change.after)
        if offset is not None and set(offset) == {SINK_OFFSET_KEY}
    ]
    numbers = [kafka_offset(entry) for entry in entries]
    if len(numbers) < 2 or numbers[0] is None or numbers[1] is None:
        return None
    return numbers[1] - numbers[0]
