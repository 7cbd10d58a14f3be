"""VerifiableSource and VerifiableSink: they print what they did, for a test to compare.

Layer: builtin. Kafka: `org.apache.kafka.connect.tools`. A sequence number in every record, which
goes on after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_api import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    RecordMetadata,
    SchemaBuilder,
    SinkRecord,
    SinkTask,
    SourceRecord,
    SourceTask,
    Struct,
    TopicPartition,
)
from pyconnect_testkit.apache.output import EventOutput
from pyconnect_testkit.apache.per_task import ID, NumberedSink, NumberedSource, number
from pyconnect_testkit.apache.throttle import Throttle

SEQNO = "seqno"
COMPLETE_VALUE_SCHEMA = (
    SchemaBuilder.struct()
    .field("name", STRING_SCHEMA)
    .field("task", INT32_SCHEMA)
    .field("topic", STRING_SCHEMA)
    .field("time_ms", INT64_SCHEMA)
    .field(SEQNO, INT64_SCHEMA)
    .build()
)


def now_ms() -> int:
    """Return the time of day in epoch milliseconds."""
    return int(time.time() * 1000)


class VerifiableSourceTask(SourceTask):
    """One record a poll: key the task's number, value the sequence number."""

    java_name = "org.apache.kafka.connect.tools.VerifiableSourceTask"

    def __init__(self) -> None:
        self._output: EventOutput | None = None

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._name = props.get("name")
        self._id = number(props, ID, "VerifiableSourceTask")
        self._topic = props.get("topic")
        throughput = number(props, "throughput", "VerifiableSourceTask")
        self._complete = props.get("complete.record.data", "").lower() == "true"
        self._partition = {ID: self._id}
        self._seqno = next_seqno(self, self._partition)
        self._first = self._seqno
        self._throttle = Throttle(throughput, self.context.stop_requested)
        self._output = EventOutput(props)

    def poll(self) -> Sequence[SourceRecord] | None:
        self._throttle.wait(self._seqno - self._first)
        event = self._event(self._seqno)
        assert self._output is not None
        self._output.write(event)
        value: object = self._seqno
        if self._complete:
            value = Struct(COMPLETE_VALUE_SCHEMA)
            for name, part in event.items():
                value.put(name, part)
        record = SourceRecord(
            self._partition,
            {SEQNO: self._seqno},
            self._topic,
            key_schema=INT32_SCHEMA,
            key=self._id,
            value_schema=COMPLETE_VALUE_SCHEMA if self._complete else INT64_SCHEMA,
            value=value,
        )
        self._seqno += 1
        return [record]

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        assert self._output is not None
        self._output.write({**self._event(record.value), "committed": True})

    def stop(self) -> None:
        if self._output is not None:
            self._output.close()

    def _event(self, seqno: object) -> dict[str, object]:
        return {
            "name": self._name,
            "task": self._id,
            "topic": self._topic,
            "time_ms": now_ms(),
            SEQNO: seqno,
        }


class VerifiableSourceConnector(NumberedSource):
    """A source of sequence numbers."""

    def task_class(self) -> type[SourceTask]:
        return VerifiableSourceTask


class VerifiableSinkTask(SinkTask):
    """Prints each record when it comes and again when its offset is about to be committed."""

    java_name = "org.apache.kafka.connect.tools.VerifiableSinkTask"

    def __init__(self) -> None:
        self._output: EventOutput | None = None
        self._unflushed: dict[TopicPartition, list[dict[str, object]]] = {}

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._name = props.get("name")
        self._id = number(props, ID, "VerifiableSinkTask")
        self._output = EventOutput(props)

    def put(self, records: Collection[SinkRecord]) -> None:
        assert self._output is not None
        time_ms = now_ms()
        for record in records:
            event = {
                "name": self._name,
                "task": record.key,
                "sinkTask": self._id,
                "topic": record.topic,
                "time_ms": time_ms,
                SEQNO: record.value,
                "offset": record.kafka_offset,
            }
            self._output.write(event)
            partition = TopicPartition(record.original_topic, record.original_kafka_partition)
            self._unflushed.setdefault(partition, []).append(event)

    def flush(self, current_offsets: Mapping[TopicPartition, int]) -> None:
        assert self._output is not None
        time_ms = now_ms()
        for partition in current_offsets:
            for event in self._unflushed.pop(partition, ()):
                self._output.write({**event, "time_ms": time_ms, "flushed": True})

    def stop(self) -> None:
        if self._output is not None:
            self._output.close()


class VerifiableSinkConnector(NumberedSink):
    """A sink that prints."""

    def task_class(self) -> type[SinkTask]:
        return VerifiableSinkTask


def next_seqno(task: SourceTask, partition: Mapping[str, object]) -> int:
    """Return the number after the last committed one, 0 when there is none."""
    offset = task.context.offset_storage_reader.offset(partition)
    last = (offset or {}).get(SEQNO)
    return last + 1 if isinstance(last, int) else 0
