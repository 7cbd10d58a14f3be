"""From consumed messages to sink records: convert, then transform.

Kafka: WorkerSinkTask.convertMessages. The pipeline is composed once at start; a chain without
transformations costs nothing in the loop. The messages of one poll are converted as columns
(`compose_run`), as in `source/pipeline.py`; if a task only reads the values of its records, only
these are made. Messages are converted one by one if one of them is an error, if a partition is no
longer assigned, or if a converter raises an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_agent.kafka.task_producer import KafkaHeaders
from pyconnect_agent.tasks.plugins import Converters, many_values
from pyconnect_agent.tasks.records import Chain, RecordSkipped, RecordStage, Tolerance
from pyconnect_agent.tasks.sink.dead_letters import ConsumedRecord
from pyconnect_api import (
    ConnectException,
    Converter,
    Header,
    HeaderConverter,
    Schema,
    SinkRecord,
    SinkRecords,
    TimestampType,
    TopicPartition,
)

TIMESTAMP_TYPES = (
    TimestampType.NO_TIMESTAMP_TYPE,
    TimestampType.CREATE_TIME,
    TimestampType.LOG_APPEND_TIME,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRun:
    """Messages without an error; `ends` are the offsets after the last one of each partition."""

    messages: Sequence[ConsumedMessage]
    topics: Sequence[str]
    partitions: Sequence[int]
    offsets: Sequence[int]
    timestamps: Sequence[int]
    timestamp_types: Sequence[int]
    distinct_topics: frozenset[str]
    ends: dict[TopicPartition, int]

    @classmethod
    def of(
        cls, messages: Sequence[ConsumedMessage], only_topic: str | None = None
    ) -> MessageRun | None:
        """Return the run of `messages`; None when each has to be checked by itself.

        `only_topic`: that of all messages without an error, None when there may be several.
        """
        count = len(messages)
        # Calls through the class need no lookup for each message.
        kind: Any = type(messages[0])
        # One flat list, as thousands of tuples at once would not fit in the processor's cache.
        types_and_timestamps = list(chain.from_iterable(map(kind.timestamp, messages)))
        timestamps = types_and_timestamps[1::2]
        # An error has no timestamp.
        if min(timestamps) < 0:
            return None
        topics = [only_topic] * count if only_topic else list(map(kind.topic, messages))
        partitions = list(map(kind.partition, messages))
        offsets: Sequence[int] | None = None
        lasts: Iterable[tuple[tuple[str, int], ConsumedMessage]]
        if topics.count(topics[0]) == partitions.count(partitions[0]) == count:
            distinct_topics = frozenset(topics[:1])
            lasts = (((topics[0], partitions[0]), messages[-1]),)
            offsets = range(messages[0].offset(), messages[-1].offset() + 1)
        else:
            distinct_topics = frozenset(topics)
            lasts = dict(zip(zip(topics, partitions, strict=True), messages, strict=True)).items()
        return cls(
            messages=messages,
            topics=topics,
            partitions=partitions,
            # Offsets of one partition grow, with gaps in compacted topics and at transactions.
            offsets=offsets
            if offsets is not None and len(offsets) == count
            else list(map(kind.offset, messages)),
            timestamps=timestamps,
            timestamp_types=types_and_timestamps[::2],
            distinct_topics=distinct_topics,
            ends={TopicPartition(*place): last.offset() + 1 for place, last in lasts},
        )


Column: TypeAlias = tuple[Sequence[Schema | None], Sequence[Any]]
"""The schemas and the values of keys or values."""

ConvertRun: TypeAlias = Callable[[MessageRun], SinkRecords]
"""Converts the messages of a run; may raise any exception."""


def compose_run(converters: Converters, record_class: type[SinkRecord]) -> ConvertRun:
    """Build the conversion of many messages to records of a class."""
    read_keys, read_values = _column(converters.key), _column(converters.value)
    read_headers = _headers(converters.header)

    def convert(run: MessageRun) -> SinkRecords:
        messages = run.messages
        kafka_headers = [message.headers() for message in messages]
        keys = read_keys(run, kafka_headers, [m.key() for m in messages])
        values = read_values(run, kafka_headers, [m.value() for m in messages])
        headers = read_headers(run, kafka_headers)
        return SinkRecords(values[1], partial(_records, record_class, run, keys, values, headers))

    return convert


def _records(
    record_class: type[SinkRecord],
    run: MessageRun,
    keys: Column,
    values: Column,
    headers: Sequence[list[Header] | None],
) -> list[SinkRecord]:
    types = TIMESTAMP_TYPES
    records = [
        record_class(
            topic,
            partition,
            key_schema,
            key,
            value_schema,
            value,
            offset,
            timestamp,
            types[timestamp_type],
            own,
        )
        for (
            offset,
            topic,
            partition,
            key_schema,
            key,
            value_schema,
            value,
            timestamp_type,
            timestamp,
            own,
        ) in zip(
            run.offsets,
            run.topics,
            run.partitions,
            *keys,
            *values,
            run.timestamp_types,
            run.timestamps,
            headers,
            strict=True,
        )
    ]
    if issubclass(record_class, ConsumedRecord):
        for record, message in zip(records, run.messages, strict=True):
            record.consumed = message  # type: ignore[attr-defined]  # a ConsumedRecord
    return records


def _column(converter: Converter) -> Callable[..., Column]:
    """Return the conversion of keys or values to their schemas and values."""
    one, many = converter.to_connect_data, many_values(converter, "to_connect")

    def convert(
        run: MessageRun, headers: Sequence[KafkaHeaders | None], data: Sequence[bytes | None]
    ) -> Column:
        if many is not None and len(run.distinct_topics) == 1:
            schemas, values = many(run.topics[0], data)
            if not len(schemas) == len(values) == len(data):
                raise ValueError("The converter returned another number of values than it got")
            return schemas, values
        found = list(map(one, run.topics, [each or [] for each in headers], data))
        return [schema for schema, _ in found], [value for _, value in found]

    return convert


def _headers(converter: HeaderConverter) -> Callable[..., Sequence[list[Header] | None]]:
    convert = converter.to_connect_header

    def read(
        run: MessageRun, headers: Sequence[KafkaHeaders | None]
    ) -> Sequence[list[Header] | None]:
        if headers.count(None) == len(headers):
            return [None] * len(headers)
        return [
            [Header(key, *convert(topic, key, data)) for key, data in own] if own else None
            for topic, own in zip(run.topics, headers, strict=True)
        ]

    return read


Converted: TypeAlias = tuple[Sequence[SinkRecord], int]

Convert: TypeAlias = Callable[[Sequence[ConsumedMessage], dict[TopicPartition, int]], Converted]
"""Returns the records of consumed messages, and how many messages were not records of this task:
errors, and messages of partitions that are no longer assigned. Notes for each partition the offset
after its last message, also when that was dropped. Raises ConnectException when the task must fail,
KafkaError for a message that is a fatal error.
"""

RecordMaker: TypeAlias = Callable[[ConsumedMessage, str, int, int], SinkRecord]
"""Converts one message of a topic, partition and offset. Raises RecordSkipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The rules for the messages that a task takes.

    `topic_used` is called with each topic at least once; None switches that off. Messages of
    partitions for which `is_assigned` returns False are left out: they were fetched before a
    rebalance of the same poll. `only_topic`: as for `MessageRun.of`.
    """

    topic_used: Callable[[str], None] | None
    is_assigned: Callable[[TopicPartition], bool]
    check_error: Callable[[ConsumedMessage], None]
    only_topic: str | None = None


def compose_conversion(
    intake: Intake,
    *,
    converters: Converters,
    chain: Chain | None,
    tolerance: Tolerance,
    keep_consumed: bool = False,
) -> Convert:
    """Build the conversion; `chain` does its own error handling.

    With `keep_consumed` records keep their message, for reports of their failure.
    """
    record_of = record_maker(converters, tolerance.recover, keep_consumed=keep_consumed)
    convert_run = compose_run(converters, ConsumedRecord if keep_consumed else SinkRecord)
    return compose_with(intake, record_of, convert_run, chain)


def compose_with(
    intake: Intake, record_of: RecordMaker, convert_run: ConvertRun, chain: Chain | None = None
) -> Convert:
    """Build the conversion of one poll from the conversions of one message and of many."""
    one_by_one = _compose_one_by_one(intake, record_of, chain)
    topic_used, is_assigned, only_topic = intake.topic_used, intake.is_assigned, intake.only_topic

    def convert(
        messages: Sequence[ConsumedMessage], consumed: dict[TopicPartition, int]
    ) -> Converted:
        run = MessageRun.of(messages, only_topic)
        if run is None or not all(map(is_assigned, run.ends)):
            return one_by_one(messages, consumed)
        try:
            records = convert_run(run)
        except Exception:  # noqa: BLE001  it comes up again with the message it is about
            return one_by_one(messages, consumed)
        if topic_used is not None:
            for topic in run.distinct_topics:
                topic_used(topic)
        kept = records if chain is None else chain.kept(records)
        consumed.update(run.ends)
        return kept, 0

    return convert


def _compose_one_by_one(intake: Intake, record_of: RecordMaker, chain: Chain | None) -> Convert:
    topic_used, is_assigned, check_error = intake.topic_used, intake.is_assigned, intake.check_error

    def convert(
        messages: Sequence[ConsumedMessage], consumed: dict[TopicPartition, int]
    ) -> Converted:
        foreign = 0
        last_topic, last_partition, last_offset = None, -1, -1
        assigned = True
        batch: list[SinkRecord] = []
        for message in messages:
            if message.error() is not None:
                check_error(message)
                foreign += 1
                continue
            topic, partition = message.topic(), message.partition()
            if partition != last_partition or topic != last_topic:
                if last_topic is not None and assigned:
                    consumed[TopicPartition(last_topic, last_partition)] = last_offset + 1
                last_topic, last_partition = topic, partition
                assigned = is_assigned(TopicPartition(topic, partition))
                if assigned and topic_used is not None:
                    topic_used(topic)
            if not assigned:
                foreign += 1
                continue
            last_offset = message.offset()
            try:
                record = record_of(message, topic, partition, last_offset)
                if chain is not None:
                    record = chain(record)
            except RecordSkipped:
                continue
            if record is not None:
                batch.append(record)
        if last_topic is not None and assigned:
            consumed[TopicPartition(last_topic, last_partition)] = last_offset + 1
        return batch, foreign

    return convert


def record_maker(
    converters: Converters, recover: Callable[..., Any], *, keep_consumed: bool = False
) -> RecordMaker:
    """Return the conversion of one message; `recover` is that of a Tolerance, or raises an error.

    `keep_consumed`: see `compose_conversion`.
    """
    key_data = converters.key.to_connect_data
    value_data = converters.value.to_connect_data
    read_headers = _header_reader(converters.header, recover)
    key_class, value_class = type(converters.key), type(converters.value)
    record_class = ConsumedRecord if keep_consumed else SinkRecord

    def record_of(message: ConsumedMessage, topic: str, partition: int, offset: int) -> SinkRecord:
        kafka_headers = message.headers() or []
        arguments = (topic, kafka_headers, message.key())
        try:
            key_schema, key = key_data(*arguments)
        except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
            key_schema, key = recover(
                RecordStage.KEY_CONVERTER, key_class, exc, message, key_data, *arguments
            )
        arguments = (topic, kafka_headers, message.value())
        try:
            value_schema, value = value_data(*arguments)
        except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
            value_schema, value = recover(
                RecordStage.VALUE_CONVERTER, value_class, exc, message, value_data, *arguments
            )
        headers = read_headers(message, topic, kafka_headers) if kafka_headers else None
        timestamp_type, timestamp = message.timestamp()
        record = record_class(
            topic,
            partition,
            key_schema,
            key,
            value_schema,
            value,
            offset,
            timestamp if timestamp >= 0 else _timestamp(timestamp),
            TIMESTAMP_TYPES[timestamp_type],
            headers,
        )
        if keep_consumed:
            record.consumed = message  # type: ignore[attr-defined]  # a ConsumedRecord then
        return record

    return record_of


def _header_reader(
    converter: HeaderConverter, recover: Callable[..., Any]
) -> Callable[[ConsumedMessage, str, KafkaHeaders], list[Header]]:
    """Return the conversion of all headers of a message of a topic."""
    to_connect_header, header_class = converter.to_connect_header, type(converter)

    def headers_of(topic: str, kafka_headers: KafkaHeaders) -> list[Header]:
        return [Header(key, *to_connect_header(topic, key, data)) for key, data in kafka_headers]

    def read(message: ConsumedMessage, topic: str, kafka_headers: KafkaHeaders) -> list[Header]:
        arguments = (topic, kafka_headers)
        try:
            return headers_of(*arguments)
        except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
            found: list[Header] = recover(
                RecordStage.HEADER_CONVERTER, header_class, exc, message, headers_of, *arguments
            )
            return found

    return read


def _timestamp(timestamp: int) -> int | None:
    if timestamp < -1:
        raise ConnectException(f"Invalid record timestamp {timestamp}")
    return None
