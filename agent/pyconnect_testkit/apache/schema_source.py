"""SchemaSource: structs of one schema, or of two in turn.

Layer: builtin. Kafka: `org.apache.kafka.connect.tools.SchemaSourceConnector`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_api import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaBuilder,
    SourceRecord,
    SourceTask,
    Struct,
)
from pyconnect_testkit.apache.output import EventOutput
from pyconnect_testkit.apache.per_task import ID, NumberedSource, number
from pyconnect_testkit.apache.throttle import Throttle
from pyconnect_testkit.apache.verifiable import SEQNO, next_seqno

_TASK = "SchemaSourceTask"


def _value_schema(version: int) -> Schema:
    builder = (
        SchemaBuilder.struct()
        .version(version)
        .name("record")
        .field("boolean", BOOLEAN_SCHEMA)
        .field("int", INT32_SCHEMA)
        .field("long", INT64_SCHEMA)
        .field("float", FLOAT32_SCHEMA)
        .field("double", FLOAT64_SCHEMA)
        .field("partitioning", INT32_SCHEMA)
    )
    if version > 1:
        builder.field("string", SchemaBuilder.string().default("abc"))
    return builder.field(ID, INT32_SCHEMA).field(SEQNO, INT64_SCHEMA).build()


VALUE_SCHEMAS = (_value_schema(1), _value_schema(2))


class SchemaSourceTask(SourceTask):
    """One record a poll, `num.messages` in all since the start, to the partition of its number."""

    java_name = "org.apache.kafka.connect.tools.SchemaSourceTask"

    def __init__(self) -> None:
        self._output: EventOutput | None = None

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._id = number(props, ID, _TASK)
        self._topic = props.get("topic")
        self._most = number(props, "num.messages", _TASK)
        self._partition_count = number(props, "partition.count", _TASK, default="1")
        throughput = number(props, "throughput", _TASK)
        self._schema_count = 2 if props.get("multiple.schema", "").lower() == "true" else 1
        self._partition = {ID: self._id}
        self._count = 0
        self._seqno = next_seqno(self, self._partition)
        self._throttle = Throttle(throughput, self.context.stop_requested)
        self._output = EventOutput(props)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._count >= self._most:
            self._throttle.pause()
            # Without a limit Apache's task asks again at once; a second does no harm.
            self.context.stop_requested.wait(1.0)
            return []
        self._throttle.wait(self._count)
        value = self._value(VALUE_SCHEMAS[self._count % self._schema_count])
        record = SourceRecord(
            self._partition,
            {SEQNO: self._seqno},
            self._topic,
            kafka_partition=self._id,
            key_schema=STRING_SCHEMA,
            key="key",
            value_schema=value.schema,
            value=value,
        )
        assert self._output is not None
        self._output.write({"task": self._id, SEQNO: self._seqno})
        self._seqno += 1
        self._count += 1
        return [record]

    def stop(self) -> None:
        if self._output is not None:
            self._output.close()

    def _value(self, schema: Schema) -> Struct:
        value = (
            Struct(schema)
            .put("boolean", True)
            .put("int", 12)
            .put("long", 12)
            .put("float", 12.2)
            .put("double", 12.2)
            .put("partitioning", self._seqno % self._partition_count)
            .put(ID, self._id)
            .put(SEQNO, self._seqno)
        )
        return value.put("string", "def") if schema.field("string") else value


class SchemaSourceConnector(NumberedSource):
    """A source of structs."""

    def task_class(self) -> type[SourceTask]:
        return SchemaSourceTask
