"""Offsets of aborted transactions that a worker would take for valid ones (upgrade.md §8.1).

Java workers that are not `enabled` read their offsets topic `read_uncommitted`: when the newest
record of a source partition belongs to an aborted transaction, they go on from there and skip what
was never delivered. Both readings of the topic are compared, key by key.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_cli.kafka.reader import records

Newest = dict[tuple[int, bytes], int]


def aborted_offsets(settings: Mapping[str, str], topic: str) -> tuple[str, ...]:
    """Return the keys whose newest record belongs to no committed transaction, sorted.

    A transaction that is still open counts too: it may be aborted yet.
    """
    everything = _newest(settings, topic, "read_uncommitted")
    committed = _newest(settings, topic, "read_committed")
    return tuple(
        sorted(
            f"partition {partition}, key {key.decode(errors='replace')}"
            for (partition, key), offset in everything.items()
            if committed.get((partition, key)) != offset
        )
    )


def _newest(settings: Mapping[str, str], topic: str, isolation: str) -> Newest:
    return {
        (int(record.partition() or 0), bytes(record.key() or b"")): int(record.offset() or 0)
        for record in records(settings, topic, isolation)
    }
