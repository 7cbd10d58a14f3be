"""Offsets of aborted transactions that a worker would take for valid ones.

Java workers that are not `enabled` read their offsets topic `read_uncommitted`: if the newest
record of a source partition belongs to an aborted transaction, they continue from there and skip
records that were never delivered. This module reads the topic in both ways and compares key by key.
Sources may write meanwhile: the comparison waits for open transactions and counts later commits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyconnect_cli.kafka.admin import KafkaAdmin
from pyconnect_cli.kafka.model import TopicPartition
from pyconnect_cli.kafka.reader import records

Newest = dict[tuple[int, bytes], int]

OPEN_S = 60.0
"""Time to wait for open transactions: the default of their timeout."""
PAUSE_S = 0.2
CALL_S = 10.0


def aborted_offsets(settings: Mapping[str, str], topic: str) -> tuple[str, ...]:
    """Return the keys whose newest record belongs to no committed transaction, sorted.

    A transaction that stays open counts too: it may be aborted yet.
    """
    everything = _newest(settings, topic, "read_uncommitted")
    _wait_until_decided(settings, topic, everything)
    committed = _newest(settings, topic, "read_committed")
    return tuple(
        sorted(
            f"partition {partition}, key {key.decode(errors='replace')}"
            for (partition, key), offset in everything.items()
            if committed.get((partition, key), -1) < offset
        )
    )


def _wait_until_decided(settings: Mapping[str, str], topic: str, newest: Newest) -> None:
    last: dict[TopicPartition, int] = {}
    for (number, _), offset in newest.items():
        partition = TopicPartition(topic, number)
        last[partition] = max(offset, last.get(partition, -1))
    admin = KafkaAdmin(settings, lambda: CALL_S)
    until = time.monotonic() + OPEN_S
    while any(end <= last[where] for where, end in admin.decided_ends(last).items()):
        if time.monotonic() > until:
            return
        time.sleep(PAUSE_S)


def _newest(settings: Mapping[str, str], topic: str, isolation: str) -> Newest:
    return {
        (int(record.partition() or 0), bytes(record.key() or b"")): int(record.offset() or 0)
        for record in records(settings, topic, isolation)
    }
