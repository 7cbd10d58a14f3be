"""Consumer offsets that a sink keeps in a table beside its rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyconnect_reconcile.document import Bounds

OFFSET_COLUMNS = ("connector", "topic", "kafka_partition", "next_offset")


def bounds_of(connector: str, rows: Iterable[Sequence[object]]) -> Bounds:
    """Return the offsets of one connector from rows of OFFSET_COLUMNS.

    A partition that a task has opened and not written yet has no offset.
    """
    bounds: dict[str, dict[int, int]] = {}
    for name, topic, partition, offset in rows:
        if name == connector and offset is not None:
            bounds.setdefault(str(topic), {})[int(str(partition))] = int(str(offset))
    return bounds
