"""Reads a topic from its beginning to its end, as `read_committed` or not; writes nothing.

Of Connect's config topic only the task count records are read: configurations are the workers'
matter, and REST's.
"""

# ruff: noqa: SLF001 - the names of librdkafka's own codes start with an underscore

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pyconnect_cli.errors import NotFound
from pyconnect_cli.kafka.admin import translated
from pyconnect_cli.plan.offset_seek import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

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
    """Yield every record up to the ends, and maybe newer ones, tombstones too; NotFound without it.

    `settings` are librdkafka's.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException
    from confluent_kafka import TopicPartition as KafkaTopicPartition

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
        partitions = [TopicPartition(topic, number) for number in found.partitions]
        unread = end_offsets(consumer, partitions, WAIT_S)
        consumer.assign(
            [KafkaTopicPartition(topic, at.partition, OFFSET_BEGINNING) for at in partitions]
        )
        yield from _read(consumer, unread)
    except KafkaException as exc:
        raise translated(exc, f"read {topic}") from exc
    finally:
        consumer.close()


def end_offsets(
    consumer: Consumer, partitions: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, int]:
    """Return where partitions end now, of `read_committed` before what is open.

    Reading ends there: librdkafka tells the end of a partition only with an answer that brings
    nothing new, of one that is written all the time never. Raises KafkaException.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka import TopicPartition as KafkaTopicPartition

    ends = {}
    for at in partitions:
        partition = KafkaTopicPartition(at.topic, at.partition)
        found = consumer.get_watermark_offsets(partition, timeout=timeout_s, cached=False)
        if found is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        ends[at] = int(found[1])
    return ends


def _read(consumer: Consumer, unread: dict[TopicPartition, int]) -> Iterator[Message]:
    """Yield records until each of the `unread` partitions is read to its end."""
    from confluent_kafka import KafkaError, KafkaException

    until = time.monotonic() + WAIT_S
    while unread:
        messages = consumer.consume(_BATCH, timeout=_SLICE_S)
        if messages:
            until = time.monotonic() + WAIT_S
        elif time.monotonic() > until:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        # The group is looked up and not needed: it is never joined.
        yield from records_among(
            messages, unread, lambda error: error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        )


def records_among(
    messages: Iterable[Message],
    unread: dict[TopicPartition, int],
    passes: Callable[[KafkaError], bool],
) -> Iterator[Message]:
    """Yield the records, and take partitions that are read to their ends out of `unread`.

    Raises KafkaException for an error that is not said to pass.
    """
    from confluent_kafka import KafkaError, KafkaException

    for message in messages:
        at = TopicPartition(str(message.topic()), int(message.partition() or 0))
        error = message.error()
        if error is None:
            yield message
            if int(message.offset() or 0) + 1 >= unread.get(at, 0):
                unread.pop(at, None)
        # The end, for who reads committed records only, is before an open transaction.
        elif error.code() == KafkaError._PARTITION_EOF:
            unread.pop(at, None)
        elif not passes(error):
            raise KafkaException(error)
