"""Offsets of aborted transactions that a worker would take for valid ones (upgrade.md §8.1).

Java workers that are not `enabled` read their offsets topic `read_uncommitted`: when the newest
record of a source partition belongs to an aborted transaction, they go on from there and skip what
was never delivered. Both readings of the topic are compared, key by key.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyconnect_cli.errors import NotFound
from pyconnect_cli.kafka_admin import translated

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_WAIT_S = 10.0
_BATCH = 10_000
_SLICE_S = 0.2
"""A call waits so long for a whole batch, also when the ends were reached."""

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
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {
            **settings,
            "log_level": "0",
            "group.id": "pyconnect-upgrade-reader",  # demanded; nothing is ever committed
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "isolation.level": isolation,
        }
    )
    try:
        found = consumer.list_topics(topic, timeout=_WAIT_S).topics.get(topic)
        if found is None or found.error is not None:
            raise NotFound(f"there is no topic {topic}", hint="see the workers' properties")
        numbers = list(found.partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        return _read(consumer, set(numbers))
    except KafkaException as exc:
        raise translated(exc, f"read {topic}") from exc
    finally:
        consumer.close()


def _read(consumer: Consumer, open_partitions: set[int]) -> Newest:
    from confluent_kafka import KafkaError, KafkaException

    newest: Newest = {}
    until = time.monotonic() + _WAIT_S
    while open_partitions:
        messages = consumer.consume(_BATCH, timeout=_SLICE_S)
        if messages:
            until = time.monotonic() + _WAIT_S
        elif time.monotonic() > until:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - a public code
        for message in messages:
            partition = int(message.partition() or 0)
            error = message.error()
            if error is None:
                newest[partition, bytes(message.key() or b"")] = int(message.offset() or 0)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                open_partitions.discard(partition)
            else:
                raise KafkaException(error)
    return newest
