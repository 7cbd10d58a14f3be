"""From consumed messages to sink records: convert, then transform.

Layer: tasks. Kafka: WorkerSinkTask.convertMessages. Composed once at start; without a
transformation there is none in the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_agent.tasks.consumed_record import ConsumedRecord
from pyconnect_agent.tasks.task_plugins import Converters
from pyconnect_agent.tasks.tolerance import RecordSkipped, Stage, Tolerance
from pyconnect_api import (
    ConnectException,
    Header,
    HeaderConverter,
    SinkRecord,
    TimestampType,
    TopicPartition,
)

KafkaHeaders: TypeAlias = list[tuple[str, bytes | None]]

Transform: TypeAlias = Callable[[SinkRecord], SinkRecord | None]

Convert: TypeAlias = Callable[
    [Sequence[ConsumedMessage], list[SinkRecord], dict[TopicPartition, int]], int
]
"""Appends the records of consumed messages to a batch, and notes for each partition the offset
after its last message, also when that was dropped. Returns how many messages were no records of
this task's: errors, and of partitions that are gone. Raises ConnectException when the task must
fail, KafkaError for a message that is a fatal error."""

_TIMESTAMP_TYPES = (
    TimestampType.NO_TIMESTAMP_TYPE,
    TimestampType.CREATE_TIME,
    TimestampType.LOG_APPEND_TIME,
)


def compose(
    *,
    converters: Converters,
    transform: Transform | None,
    tolerance: Tolerance,
    topic_used: Callable[[str], None] | None,
    is_assigned: Callable[[TopicPartition], bool],
    check_error: Callable[[ConsumedMessage], None],
    keep_consumed: bool = False,
) -> Convert:
    """Build the conversion; `transform` does its own error handling.

    `keep_consumed`: records remember the message they come from, for reports of their failure.

    `topic_used` hears of a topic at least once; None switches that off. Messages of partitions that
    `is_assigned` denies are left out: they were fetched before a rebalance of the same poll.
    """
    record_of = _record_maker(converters, transform, tolerance, keep_consumed=keep_consumed)

    def convert(
        messages: Sequence[ConsumedMessage],
        batch: list[SinkRecord],
        consumed: dict[TopicPartition, int],
    ) -> int:
        foreign = 0
        last_topic, last_partition, last_offset = None, -1, -1
        assigned = True
        append = batch.append
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
            except RecordSkipped:
                continue
            if record is not None:
                append(record)
        if last_topic is not None and assigned:
            consumed[TopicPartition(last_topic, last_partition)] = last_offset + 1
        return foreign

    return convert


def _record_maker(
    converters: Converters,
    transform: Transform | None,
    tolerance: Tolerance,
    *,
    keep_consumed: bool,
) -> Callable[[ConsumedMessage, str, int, int], SinkRecord | None]:
    """Return the conversion of one message of a topic, partition and offset.

    It returns None for a record that a transformation dropped, and raises RecordSkipped.
    """
    key_data = converters.key.to_connect_data
    value_data = converters.value.to_connect_data
    read_headers = _header_reader(converters.header, tolerance)
    key_class, value_class = type(converters.key), type(converters.value)
    recover = tolerance.recover
    record_class = ConsumedRecord if keep_consumed else SinkRecord

    def record_of(
        message: ConsumedMessage, topic: str, partition: int, offset: int
    ) -> SinkRecord | None:
        kafka_headers = message.headers() or []
        arguments = (topic, kafka_headers, message.key())
        try:
            key_schema, key = key_data(*arguments)
        except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
            key_schema, key = recover(
                Stage.KEY_CONVERTER, key_class, exc, message, key_data, *arguments
            )
        arguments = (topic, kafka_headers, message.value())
        try:
            value_schema, value = value_data(*arguments)
        except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
            value_schema, value = recover(
                Stage.VALUE_CONVERTER, value_class, exc, message, value_data, *arguments
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
            _TIMESTAMP_TYPES[timestamp_type],
            headers,
        )
        if keep_consumed:
            record.consumed = message  # type: ignore[attr-defined]  # a ConsumedRecord then
        return record if transform is None else transform(record)

    return record_of


def _header_reader(
    converter: HeaderConverter, tolerance: Tolerance
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
            return tolerance.recover(
                Stage.HEADER_CONVERTER, header_class, exc, message, headers_of, *arguments
            )

    return read


def _timestamp(timestamp: int) -> int | None:
    if timestamp < -1:
        raise ConnectException(f"Invalid record timestamp {timestamp}")
    return None
