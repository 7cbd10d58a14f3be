"""The Kafka message of a sink's record, for reports of its failure.

Layer: tasks. Kafka: InternalSinkRecord. Only tasks that have somewhere to report to use it: a
record that keeps its message keeps the original bytes in memory too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_api import Converter, HeaderConverter, SinkRecord, TimestampType, TopicPartition

_TIMESTAMP_TYPES = {TimestampType.CREATE_TIME: 1, TimestampType.LOG_APPEND_TIME: 2}


class ConsumedRecord(SinkRecord):
    """A record that remembers its message, through transformations too."""

    __slots__ = ("consumed",)

    consumed: ConsumedMessage

    def new_record(self, *parts: Any, **named: Any) -> Self:
        """Make it as `SinkRecord` does."""
        record = super().new_record(*parts, **named)
        record.consumed = self.consumed
        return record


@dataclass(frozen=True, slots=True)
class SerializedRecord:
    """A record that a task made itself, with the accessors of a consumed message."""

    record: SinkRecord
    key_bytes: bytes | None
    value_bytes: bytes | None
    kafka_headers: list[tuple[str, bytes | None]]

    def topic(self) -> str:
        topic = self.record.topic
        assert topic is not None
        return topic

    def partition(self) -> int:
        partition = self.record.kafka_partition
        return -1 if partition is None else partition

    def offset(self) -> int:
        return self.record.kafka_offset

    def key(self) -> bytes | None:
        return self.key_bytes

    def value(self) -> bytes | None:
        return self.value_bytes

    def timestamp(self) -> tuple[int, int]:
        timestamp = self.record.timestamp
        kind = _TIMESTAMP_TYPES.get(self.record.timestamp_type, 0)
        return (0, -1) if timestamp is None else (kind, timestamp)

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.kafka_headers or None

    def error(self) -> Any:
        return None


def serialized(
    record: SinkRecord,
    key_converter: Converter,
    value_converter: Converter,
    header_converter: HeaderConverter,
) -> SerializedRecord:
    """Return the record as it would be in Kafka. Raises the exceptions of the converters."""
    topic = record.topic or ""
    headers = [
        (
            header.key,
            header_converter.from_connect_header(topic, header.key, header.schema, header.value),
        )
        for header in (record.headers if record.has_headers else ())
    ]
    return SerializedRecord(
        record,
        key_converter.from_connect_data(topic, headers, record.key_schema, record.key),
        value_converter.from_connect_data(topic, headers, record.value_schema, record.value),
        headers,
    )


def consumed_of(record: object) -> ConsumedMessage:
    """Return the message behind a failure's record: of a record, or the message itself."""
    if isinstance(record, ConsumedRecord):
        return record.consumed
    message: ConsumedMessage = record  # type: ignore[assignment]  # sinks report nothing else
    return message


def origin_of(record: object) -> tuple[TopicPartition, int]:
    """Return the partition that a failure's record was consumed from, and its offset there."""
    if isinstance(record, SinkRecord):
        partition = TopicPartition(record.original_topic, record.original_kafka_partition)
        return partition, record.original_kafka_offset
    message = consumed_of(record)
    return TopicPartition(message.topic(), message.partition()), message.offset()


def place_of(record: object) -> str:
    """Return topic, partition and offset of a failure's record, nothing of its content."""
    (topic, partition), offset = origin_of(record)
    return f"topic '{topic}', partition {partition}, offset {offset}"


def describe_consumed(record: object) -> str:
    """Return what `errors.log.include.messages` adds to a log line; Kafka's text."""
    message = consumed_of(record)
    timestamp_type, timestamp = message.timestamp()
    text = (
        f", where consumed record is {{topic='{message.topic()}', "
        f"partition={message.partition()}, offset={message.offset()}"
    )
    if timestamp_type:
        kind = "CreateTime" if timestamp_type == 1 else "LogAppendTime"
        text += f", timestamp={timestamp}, timestampType={kind}"
    return text + "}"
