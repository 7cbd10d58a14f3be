"""Reads a topic to its end, or a few of its records, with either isolation level; writes nothing.

In Connect's config topic it reads only task count records and target states; configurations come
over REST.
"""

# ruff: noqa: SLF001 - the names of librdkafka's own codes start with an underscore

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import NotFound
from pyconnect_cli.kafka.admin import translated_errors
from pyconnect_cli.kafka.model import TopicPartition, TopicRecord
from pyconnect_clients.connect_names import TARGET_STATE, TASK_COUNT

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

WAIT_S = 10.0
"""The reader gives up after this time without a record."""
_BATCH = 10_000
_SLICE_S = 0.2
"""The time of one call, which waits for a whole batch even at the end of all partitions."""


def task_counts(settings: Mapping[str, str], config_topic: str) -> dict[str, int]:
    """Return the number of tasks of each connector at its last fencing (KIP-618).

    Deleted connectors are included: a new connector of the name fences the tasks of the old one.
    """
    counts: dict[str, int] = {}
    for name, value in _config_records(settings, config_topic, TASK_COUNT):
        with suppress(ValueError, KeyError, TypeError):
            counts[name] = int(str(value["task-count"]))
    return counts


def stored_target_states(settings: Mapping[str, str], config_topic: str) -> dict[str, str]:
    """Return the last target state of each connector that has a record of one (KIP-875)."""
    return {
        # Workers before 3.5 read `state`, where a stopped connector is PAUSED.
        name: str(value.get("state.v2") or value.get("state") or "STARTED")
        for name, value in _config_records(settings, config_topic, TARGET_STATE)
    }


def _config_records(
    settings: Mapping[str, str], config_topic: str, beginning: str
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the rest of each key with this beginning and its value; a tombstone is an empty object.

    Other values that are not objects are left out, as workers do.
    """
    for record in records(settings, config_topic, "read_committed"):
        key = bytes(record.key() or b"").decode(errors="replace")
        if key.startswith(beginning):
            with suppress(ValueError):
                value = json.loads(record.value() or "{}")
                if isinstance(value, dict):
                    yield key.removeprefix(beginning), value


def records(settings: Mapping[str, str], topic: str, isolation: str) -> Iterator[Message]:
    """Yield all records up to the present ends, maybe newer ones; NotFound without the topic.

    `settings` are librdkafka's.
    """
    from confluent_kafka import OFFSET_BEGINNING

    with _consumer(settings, topic, isolation) as consumer:
        yield from _to_ends(consumer, dict.fromkeys(_partitions(consumer, topic), OFFSET_BEGINNING))


def committed_from(
    settings: Mapping[str, str], starts: Mapping[TopicPartition, int]
) -> Iterator[Message]:
    """Yield the committed records of partitions from these offsets on, up to the present ends."""
    with _consumer(settings, "records", "read_committed") as consumer:
        yield from _to_ends(consumer, starts)


def records_between(
    settings: Mapping[str, str], places: Mapping[TopicPartition, tuple[int, int]]
) -> Iterator[TopicRecord]:
    """Yield the committed records of partitions from a first offset to before an end offset."""
    ends = {at: end for at, (_, end) in places.items()}
    starts = {at: start for at, (start, end) in places.items() if start < end}
    if not starts:
        return
    with _consumer(settings, next(iter(starts)).topic, "read_committed") as consumer:
        for message in _read(consumer, starts, {at: ends[at] for at in starts}):
            record = _topic_record(message)
            if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                yield record


def some_records(
    settings: Mapping[str, str],
    topic: str,
    count: int,
    *,
    newest: bool,
    numbers: Collection[int] = (),
) -> list[TopicRecord]:
    """Return the newest or the oldest committed records of a topic by their time, oldest first.

    `numbers` are partitions, empty for all. Raises NotFound for a topic or a partition that does
    not exist.
    """
    with _consumer(settings, topic, "read_committed") as consumer:
        chosen = _partitions(consumer, topic, numbers)
        ranges = {at: _range(consumer, at) for at in chosen}
        ends = {at: high for at, (_, high) in ranges.items()}
        span = count
        while newest:
            starts = {at: max(low, high - span) for at, (low, high) in ranges.items()}
            found = _in_order(_read(consumer, starts, dict(ends)))
            counts = Counter(record.partition for record in found)
            if all(counts[at.partition] >= count or starts[at] == ranges[at][0] for at in chosen):
                return found[-count:]
            # Markers of transactions and aborted records take offsets, too.
            span *= 4
        oldest = _read(consumer, {at: low for at, (low, _) in ranges.items()}, ends, count)
        return _in_order(oldest)[:count]


def read_to_the_end(
    settings: Mapping[str, str], places: Mapping[TopicPartition, tuple[int, int]], isolation: str
) -> set[TopicPartition]:
    """Return the partitions without a record between these offsets that such a consumer would get.

    Markers of transactions take offsets, and aborted records do with read_committed.
    """
    if not places:
        return set()
    few = {**settings, "fetch.message.max.bytes": "65536", "queued.max.messages.kbytes": "1024"}
    starts = {at: start for at, (start, _) in places.items()}
    ends = {at: end for at, (_, end) in places.items()}
    with _consumer(few, next(iter(places)).topic, isolation) as consumer:
        found = {
            TopicPartition(str(record.topic()), int(record.partition() or 0))
            for record in _read(consumer, starts, ends, most=1)
        }
    return set(places) - found


def _in_order(messages: Iterable[Message]) -> list[TopicRecord]:
    return sorted(
        map(_topic_record, messages),
        key=lambda record: (record.timestamp_ms, record.partition, record.offset),
    )


def _topic_record(message: Message) -> TopicRecord:
    headers: Any = message.headers() or ()  # the client's type is that of a producer's argument
    return TopicRecord(
        topic=str(message.topic()),
        partition=int(message.partition() or 0),
        offset=int(message.offset() or 0),
        timestamp_ms=message.timestamp()[1],
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((name, _bytes(data)) for name, data in headers),
    )


def _bytes(data: bytes | str | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


@contextmanager
def _consumer(settings: Mapping[str, str], topic: str, isolation: str) -> Iterator[Consumer]:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            **settings,
            "log_level": "0",
            "group.id": "pyconnect-reader",  # required; the consumer never commits
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
        }
    )
    with closing(consumer), translated_errors(f"read {topic}"):
        yield consumer


def _partitions(
    consumer: Consumer, topic: str, numbers: Collection[int] = ()
) -> list[TopicPartition]:
    found = consumer.list_topics(topic, timeout=WAIT_S).topics.get(topic)
    if found is None or found.error is not None:
        raise NotFound(
            f"topic {topic} does not exist",
            hint="check its name, and that the context has the Kafka of the workers",
        )
    if unknown := sorted(set(numbers) - set(found.partitions)):
        raise NotFound(
            f"topic {topic} has no partition {', '.join(map(str, unknown))}",
            hint=f"it has {len(found.partitions)}, numbered from 0",
        )
    return [TopicPartition(topic, number) for number in sorted(numbers or found.partitions)]


def _to_ends(consumer: Consumer, starts: Mapping[TopicPartition, int]) -> Iterator[Message]:
    """Yield records up to the present ends; with `read_committed` up to the last stable offsets."""
    yield from _read(consumer, starts, {at: _range(consumer, at)[1] for at in starts})


def _range(consumer: Consumer, at: TopicPartition) -> tuple[int, int]:
    """Return the first and the end offset of a partition now. Raises KafkaException."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka import TopicPartition as KafkaTopicPartition

    partition = KafkaTopicPartition(at.topic, at.partition)
    found = consumer.get_watermark_offsets(partition, timeout=WAIT_S, cached=False)
    if found is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    return int(found[0]), int(found[1])


def _read(
    consumer: Consumer,
    starts: Mapping[TopicPartition, int],
    unread: dict[TopicPartition, int],
    most: int | None = None,
) -> Iterator[Message]:
    """Yield records until each partition of `unread` is read to its end.

    A partition that has given `most` records counts as read.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka import TopicPartition as KafkaTopicPartition

    consumer.assign(
        [KafkaTopicPartition(at.topic, at.partition, start) for at, start in starts.items()]
    )
    counts: Counter[TopicPartition] = Counter()
    until = time.monotonic() + WAIT_S
    while unread:
        if time.monotonic() > until:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        for message in consumer.consume(_BATCH, timeout=_SLICE_S):
            at = TopicPartition(str(message.topic()), int(message.partition() or 0))
            error = message.error()
            if error is None:
                yield message
                # The caller may have used much time for the record.
                until = time.monotonic() + WAIT_S
                counts[at] += 1
                if counts[at] == most or int(message.offset() or 0) + 1 >= unread.get(at, 0):
                    unread.pop(at, None)
            # With read_committed the end of a partition is the start of its first open transaction.
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.pop(at, None)
            # librdkafka looks the group up although it never joins it.
            elif not (error.retriable() or error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED):
                raise KafkaException(error)
