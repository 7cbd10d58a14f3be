"""From the records of a Java process to what the producer gets.

Layer: tasks. The Java process has transformed and converted the records. Decided here is whether
a record that failed is skipped, and whether its topic exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pyconnect_agent.java_processes.errors import java_error
from pyconnect_agent.java_processes.frames import unpack_headers
from pyconnect_agent.java_processes.source_records import JavaSourceRecord, JavaSourceRecords
from pyconnect_agent.kafka.task_producer import KafkaHeaders
from pyconnect_agent.tasks.records.tolerance import Failure, RecordSkipped, RecordStage, Tolerance
from pyconnect_agent.tasks.source.columns import Outgoing, OutgoingRun
from pyconnect_agent.tasks.source.pipeline import (
    NO_TOPIC,
    Pipeline,
    checked_timestamp,
    known_topics_only,
)
from pyconnect_agent.tasks.source.topic_creation import TopicCreation
from pyconnect_api import ConnectException, SourceRecord


def compose_converted(*, tolerance: Tolerance, topics: TopicCreation | None) -> Pipeline:
    """Build the pipeline of a Java source task; `topics` as for `pipeline.compose`."""

    def convert(_: SourceRecord, record: SourceRecord) -> Outgoing:
        assert isinstance(record, JavaSourceRecord)
        if record.failure is not None:
            record_failed(record.failure, record, tolerance)
        if record.is_dropped:
            raise RecordSkipped
        topic, timestamp = record.topic, record.timestamp or 0
        if topic is None:
            raise ConnectException(NO_TOPIC)
        if topics is not None and topic not in topics.known:
            topics.ensure(topic)
        return (
            topic,
            record.value,
            record.key,
            -1 if record.kafka_partition is None else record.kafka_partition,
            timestamp if timestamp > 0 else checked_timestamp(timestamp),
            record.kafka_headers or None,
        )  # type: ignore[return-value]  # key and value are bytes

    return Pipeline(
        chain=None,
        convert=convert,
        convert_run=known_topics_only(_run_of, topics),
    )


def record_failed(failure: Mapping[str, Any], record: object, tolerance: Tolerance) -> NoReturn:
    """Deal with a record that failed in the Java process, where it was also repeated.

    Raises RecordSkipped, or ConnectException when failures are not tolerated.
    """
    counts = tolerance.counts
    counts.record_failures += failure["retries"]
    counts.retries += failure["retries"]
    raise tolerance.skipped(
        Failure(
            stage=RecordStage(failure["stage"]),
            class_name=failure["class"],
            error=failure.get("raised") or java_error(failure["error"]),
            record=record,
        )
    )


def _run_of(polled: Sequence[SourceRecord], records: Sequence[SourceRecord]) -> OutgoingRun:
    assert isinstance(records, JavaSourceRecords)
    if records.failures:
        raise ValueError("a record has failed")
    places = None
    if records.dropped:
        places = [place for place in range(len(records)) if place not in records.dropped]
        polled = records = records.at(places)
    batch = records.batch
    distinct = frozenset(batch.topics)
    if not records or None in distinct or min(batch.timestamps) < 0:
        raise ValueError("there is no record, or one has no topic or an invalid timestamp")
    return OutgoingRun(
        records=polled,
        distinct_topics=distinct,
        topics=batch.topics,
        values=batch.values,
        keys=batch.keys,
        partitions=batch.partitions,
        timestamps=batch.timestamps,
        headers=[None] * len(records) if batch.headers is None else _unpacked(batch.headers),
        places=places,
    )


def _unpacked(column: Sequence[bytes | None]) -> list[KafkaHeaders | None]:
    # Connectors tend to write the same headers to all of their records.
    unpacked = {packed: unpack_headers(packed) or None for packed in set(column)}
    return [unpacked[packed] for packed in column]
