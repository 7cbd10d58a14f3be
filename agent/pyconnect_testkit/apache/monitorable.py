"""MonitorableSource and MonitorableSink: each call a worker makes becomes a line of output.

Layer: builtin. Kafka: `org.apache.kafka.connect.integration`, whose options these have; Apache's
count in the memory of the test, which a task in a process of its own cannot reach. The source
makes transactions of Fibonacci sizes when it may: those that end on an even number are aborted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_api import (
    STRING_SCHEMA,
    ConfigDef,
    ConnectException,
    ConnectHeaders,
    Connector,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    RecordMetadata,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
)
from pyconnect_testkit.apache.output import EventOutput
from pyconnect_testkit.apache.throttle import Throttle

TASK_ID = "task.id"
SAVED = "saved"
ALTER_OFFSETS_RESULT = "alter.offsets.result"
IDLE_WAIT_S = 0.1


def _is_true(props: Mapping[str, str | None], name: str) -> bool:
    return (props.get(name) or "").lower() == "true"


class _MonitorableConnector(Connector):
    """Tells of its start and stop; gives each task its name, `<connector>-<number>`."""

    def __init__(self) -> None:
        self._props: Mapping[str, str] = {}
        self._output: EventOutput | None = None

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._props = props
        self._output = EventOutput(props)
        self._output.write({"event": "connector-start", "connector": props.get("name")})
        if _is_true(props, "connector.start.inject.error"):
            raise RuntimeError("Injecting errors during connector start")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        name = self._props.get("name", "")
        count = int(self._props.get("num.tasks", max_tasks))
        return [
            {**self._props, "connector.name": name, TASK_ID: f"{name}-{number}"}
            for number in range(count)
        ]

    def stop(self) -> None:
        if self._output is not None:
            self._output.write({"event": "connector-stop", "connector": self._props.get("name")})
            self._output.close()
            self._output = None
        if _is_true(self._props, "connector.stop.inject.error"):
            raise RuntimeError("Injecting errors during connector stop")

    def config(self) -> ConfigDef:
        return ConfigDef()


class MonitorableSourceConnector(_MonitorableConnector, SourceConnector):
    """A source whose answers to the worker's questions are settings."""

    def task_class(self) -> type[SourceTask]:
        return MonitorableSourceTask

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport | None:
        match (connector_configs.get("custom.exactly.once.support") or "").lower():
            case "supported":
                return ExactlyOnceSupport.SUPPORTED
            case "unsupported":
                return ExactlyOnceSupport.UNSUPPORTED
            case "fail":
                raise ConnectException("Injecting errors when asked for exactly-once support")
        return None

    def can_define_transaction_boundaries(
        self, connector_configs: Mapping[str, str | None]
    ) -> ConnectorTransactionBoundaries:
        match (connector_configs.get("custom.transaction.boundaries") or "").lower():
            case "supported":
                return ConnectorTransactionBoundaries.SUPPORTED
            case "fail":
                raise ConnectException("Injecting errors when asked for transaction boundaries")
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, object] | None, Mapping[str, object] | None]],
    ) -> bool:
        return _is_true(connector_config, ALTER_OFFSETS_RESULT)


class MonitorableSourceTask(SourceTask):
    """Numbered records, `messages.per.poll` at a time, up to `max.messages`."""

    java_name = "org.apache.kafka.connect.integration.MonitorableSourceTask"

    def __init__(self) -> None:
        self._output: EventOutput | None = None
        self._prior_boundary, self._next_boundary = 0, 1

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._task_id = props.get(TASK_ID, "")
        self._topic = props.get("topic", "sequential-topic")
        self._batch = int(props.get("messages.per.poll", "1"))
        self._partition = {TASK_ID: self._task_id}
        offset = self.context.offset_storage_reader.offset(self._partition) or {}
        self._seqno = self._first = int(str(offset.get(SAVED, 0)))
        self._throttle = Throttle(float(props.get("throughput", "-1")), self.context.stop_requested)
        self._most = int(props.get("max.messages", str(2**63 - 1)))
        self._output = EventOutput(props)
        self._tell("task-start")
        if _is_true(props, f"task-{self._task_id}.start.inject.error"):
            raise RuntimeError("Injecting errors during task start")
        self._move_boundary()

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._seqno >= self._most:
            self.context.stop_requested.wait(IDLE_WAIT_S)
            return None
        self._throttle.wait(self._seqno - self._first)
        count = min(self._most - self._seqno, self._batch)
        self._tell("records", count=count)
        return [self._record() for _ in range(count)]

    def commit(self) -> None:
        self._tell("commit")

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self._tell("commit-record")

    def stop(self) -> None:
        if self._output is not None:
            self._tell("task-stop")
            self._output.close()
            self._output = None

    def _record(self) -> SourceRecord:
        self._seqno += 1
        name = f"{self._task_id}-{self._seqno}"
        record = SourceRecord(
            self._partition,
            {SAVED: self._seqno},
            self._topic,
            key_schema=STRING_SCHEMA,
            key=f"key-{name}",
            value_schema=STRING_SCHEMA,
            value=f"value-{name}",
            headers=ConnectHeaders().add_long(f"header-{self._seqno}", self._seqno),
        )
        self._end_transaction(record)
        return record

    def _end_transaction(self, record: SourceRecord) -> None:
        transactions = self.context.transaction_context
        if transactions is None or self._seqno != self._next_boundary:
            return
        end = transactions.commit_transaction if self._seqno % 2 else transactions.abort_transaction
        self._move_boundary()
        end(record)

    def _move_boundary(self) -> None:
        while self._next_boundary <= self._seqno:
            following = self._prior_boundary + self._next_boundary
            self._prior_boundary, self._next_boundary = self._next_boundary, following

    def _tell(self, event: str, **details: object) -> None:
        if self._output is not None:
            self._output.write({"event": event, "task": self._task_id, **details})


class MonitorableSinkConnector(_MonitorableConnector, SinkConnector):
    """A sink that reports its calls."""

    def task_class(self) -> type[SinkTask]:
        return MonitorableSinkTask

    def alter_offsets(
        self, connector_config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return _is_true(connector_config, ALTER_OFFSETS_RESULT)


class MonitorableSinkTask(SinkTask):
    """Tells of partitions, records and commits."""

    java_name = "org.apache.kafka.connect.integration.MonitorableSinkTask"

    def __init__(self) -> None:
        self._output: EventOutput | None = None
        self._uncommitted: dict[TopicPartition, int] = {}

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._task_id = props.get(TASK_ID, "")
        self._output = EventOutput(props)
        self._tell("task-start")

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self._tell("open", partitions=sorted(map(str, partitions)))

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._tell("close", partitions=sorted(map(str, partitions)))
        for partition in partitions:
            self._uncommitted.pop(partition, None)

    def put(self, records: Collection[SinkRecord]) -> None:
        for record in records:
            partition = TopicPartition(record.original_topic, record.original_kafka_partition)
            self._uncommitted[partition] = self._uncommitted.get(partition, 0) + 1
        if records:
            self._tell("records", count=len(records))

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        for partition in current_offsets:
            count = self._uncommitted.pop(partition, 0)
            if count:
                self._tell("commit", partition=str(partition), count=count)
        return current_offsets

    def stop(self) -> None:
        if self._output is not None:
            self._tell("task-stop")
            self._output.close()
            self._output = None

    def _tell(self, event: str, **details: object) -> None:
        if self._output is not None:
            self._output.write({"event": event, "task": self._task_id, **details})
