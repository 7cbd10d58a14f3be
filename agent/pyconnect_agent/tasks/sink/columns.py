"""The messages of one poll as columns, from the consumer to the records of a sink task.

As in `source/columns.py`, calls of Python are made once for each column instead of once for each
message, and nothing is reported or retried. If a task only reads the values of its records, only
these are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_agent.tasks.records.many_values import to_connect_many
from pyconnect_agent.tasks.setup.plugins import Converters
from pyconnect_agent.tasks.sink.dead_letters import ConsumedRecord
from pyconnect_api import (
    Converter,
    Header,
    HeaderConverter,
    Schema,
    SinkRecord,
    SinkRecords,
    TimestampType,
    TopicPartition,
)

KafkaHeaders: TypeAlias = list[tuple[str, bytes | None]]

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
        """Return None for messages that have to be looked at one by one.

        `only_topic`: that of all messages without an error, None when there may be several.
        """
        count = len(messages)
        # Methods of the class are called without looking them up for each message.
        kind: Any = type(messages[0])
        # Thousands of tuples at once would not be in the processor's cache.
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
            # Those of one partition grow; there are gaps in compacted topics, and at transactions.
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
"""May raise anything."""


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
    one, many = converter.to_connect_data, to_connect_many(converter)

    def convert(
        run: MessageRun,
        headers: Sequence[KafkaHeaders | None],
        data: Sequence[bytes | None],
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
