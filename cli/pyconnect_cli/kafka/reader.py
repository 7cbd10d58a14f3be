"""Reads a topic from its beginning to its end, as `read_committed` or not; writes nothing.

Of Connect's config topic only the task count records are read: configurations are the workers'
matter, and REST's.
"""

# ruff: noqa: SLF001 - the names of librdkafka's own codes start with an underscore

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyconnect_cli.errors import NotFound
from pyconnect_cli.kafka.admin import translated

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

WAIT_S = 10.0
"""Without any record for so long it is given up."""
_BATCH = 10_000
_SLICE_S = 0.2
"""A call waits so long for a whole batch, also when the ends were reached."""


_TASK_COUNT = "tasks-fencing-"


def task_counts(settings: Mapping[str, str], config_topic: str) -> dict[str, int]:
    """Return how many tasks each connector had when it was fenced last (KIP-618).

    Also of deleted ones: tasks of another connector by that name are fenced against those.
    """
    counts: dict[str, int] = {}
    for record in records(settings, config_topic, "read_committed"):
        key = bytes(record.key() or b"").decode(errors="replace")
        if key.startswith(_TASK_COUNT):
            count = _task_count(record.value())
            if count is not None:
                counts[key.removeprefix(_TASK_COUNT)] = count
    return counts


def _task_count(value: bytes | str | None) -> int | None:
    try:
        return int(json.loads(value or "")["task-count"])
    except (ValueError, KeyError, TypeError):
        return None  # workers log and leave out what they cannot read, too


def records(settings: Mapping[str, str], topic: str, isolation: str) -> Iterator[Message]:
    """Yield every record up to the ends as they are met, tombstones too; NotFound without it.

    `settings` are librdkafka's.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {
            **settings,
            "log_level": "0",
            "group.id": "pyconnect-reader",  # demanded; nothing is ever committed
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "isolation.level": isolation,
        }
    )
    try:
        found = consumer.list_topics(topic, timeout=WAIT_S).topics.get(topic)
        if found is None or found.error is not None:
            raise NotFound(f"there is no topic {topic}", hint="see the workers' properties")
        numbers = list(found.partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        yield from _read(consumer, set(numbers))
    except KafkaException as exc:
        raise translated(exc, f"read {topic}") from exc
    finally:
        consumer.close()


def _read(consumer: Consumer, open_partitions: set[int]) -> Iterator[Message]:
    from confluent_kafka import KafkaError, KafkaException

    until = time.monotonic() + WAIT_S
    while open_partitions:
        messages = consumer.consume(_BATCH, timeout=_SLICE_S)
        if messages:
            until = time.monotonic() + WAIT_S
        elif time.monotonic() > until:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        for message in messages:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                open_partitions.discard(int(message.partition() or 0))
            elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                # The group is looked up and not needed: it is never joined.
                raise KafkaException(error)
