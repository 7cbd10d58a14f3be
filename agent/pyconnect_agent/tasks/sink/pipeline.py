"""From consumed messages to sink records: convert, then transform.

Kafka: WorkerSinkTask.convertMessages. Composed once at start; a chain without transformations costs
nothing in the loop. The messages of one poll are converted at once (`run`). They are converted one
by one if there is an error among them, if a partition is gone, or if a converter raises an
exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_agent.tasks.records.tolerance import RecordSkipped, RecordStage, Tolerance
from pyconnect_agent.tasks.records.transformations import Chain
from pyconnect_agent.tasks.setup.plugins import Converters
from pyconnect_agent.tasks.sink.columns import (
    TIMESTAMP_TYPES,
    ConvertRun,
    KafkaHeaders,
    MessageRun,
    compose_run,
)
from pyconnect_agent.tasks.sink.dead_letters import ConsumedRecord
from pyconnect_api import (
    ConnectException,
    Header,
    HeaderConverter,
    SinkRecord,
    TopicPartition,
)

Converted: TypeAlias = tuple[Sequence[SinkRecord], int]

Convert: TypeAlias = Callable[[Sequence[ConsumedMessage], dict[TopicPartition, int]], Converted]
"""Returns the records of consumed messages, and how many messages were no records of this task's:
errors, and of partitions that are gone. Notes for each partition the offset after its last message,
also when that was dropped. Raises ConnectException when the task must fail, KafkaError for a
message that is a fatal error."""

RecordMaker: TypeAlias = Callable[[ConsumedMessage, str, int, int], SinkRecord]
"""Converts one message of a topic, partition and offset. Raises RecordSkipped."""


def compose(
    *,
    converters: Converters,
    chain: Chain | None,
    tolerance: Tolerance,
    topic_used: Callable[[str], None] | None,
    is_assigned: Callable[[TopicPartition], bool],
    check_error: Callable[[ConsumedMessage], None],
    only_topic: str | None = None,
    keep_consumed: bool = False,
) -> Convert:
    """Build the conversion; `chain` does its own error handling.

    `keep_consumed`: records remember the message they come from, for reports of their failure.

    `topic_used` hears of a topic at least once; None switches that off. Messages of partitions that
    `is_assigned` denies are left out: they were fetched before a rebalance of the same poll.
    `only_topic`: as for `MessageRun.of`.
    """
    return compose_with(
        record_of=record_maker(converters, tolerance.recover, keep_consumed=keep_consumed),
        convert_run=compose_run(converters, ConsumedRecord if keep_consumed else SinkRecord),
        chain=chain,
        topic_used=topic_used,
        is_assigned=is_assigned,
        check_error=check_error,
        only_topic=only_topic,
    )


def compose_with(
    *,
    record_of: RecordMaker,
    convert_run: ConvertRun,
    chain: Chain | None,
    topic_used: Callable[[str], None] | None,
    is_assigned: Callable[[TopicPartition], bool],
    check_error: Callable[[ConsumedMessage], None],
    only_topic: str | None = None,
) -> Convert:
    """Build the conversion of one poll from that of one message and that of many."""
    one_by_one = _compose_one_by_one(record_of, chain, topic_used, is_assigned, check_error)

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


def _compose_one_by_one(
    record_of: RecordMaker,
    chain: Chain | None,
    topic_used: Callable[[str], None] | None,
    is_assigned: Callable[[TopicPartition], bool],
    check_error: Callable[[ConsumedMessage], None],
) -> Convert:
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

    `keep_consumed`: see `compose`.
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
