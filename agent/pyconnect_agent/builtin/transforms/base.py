"""The classes of the shipped transformations: configuration, and working on key or value.

Layer: builtin. The subclasses `Key` and `Value` of Kafka's transformations are `…Key` and `…Value`
here, which `both_sides` makes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyconnect_agent.builtin.options import Shipped
from pyconnect_api import ConnectRecord, Header, Schema, Transformation


class ShippedTransformation(Shipped, Transformation[ConnectRecord]):
    """A transformation with the options of its `CONFIG_DEF`."""


class OneSideTransformation(ShippedTransformation):
    """Changes the key or the value: what it works on is the operated side.

    Without a schema `schemaless` makes the new value of the old one, otherwise `with_schema` makes
    both. Where `KEEPS_NONE` is true, records without a value on that side pass unchanged.
    """

    KEEPS_NONE = False
    ON_KEY = False

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.operated(record)
        if value is None and self.KEEPS_NONE:
            return record
        if schema is None:
            return self.replaced(record, None, self.schemaless(record, value))
        return self.replaced(record, *self.with_schema(record, schema, value))

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        """Return the new value of a side without a schema; must not change the old one."""
        raise NotImplementedError

    def with_schema(
        self, record: ConnectRecord, schema: Schema, value: object
    ) -> tuple[Schema, object]:
        """Return the new schema and value of a side with a schema."""
        raise NotImplementedError

    def operated(self, record: ConnectRecord) -> tuple[Schema | None, object]:
        """Return schema and value of the operated side."""
        if self.ON_KEY:
            return record.key_schema, record.key
        return record.value_schema, record.value

    def replaced(
        self,
        record: ConnectRecord,
        schema: Schema | None,
        value: object,
        headers: Iterable[Header] | None = None,
    ) -> ConnectRecord:
        """Return the record with another operated side; headers None keeps the record's."""
        topic, partition = record.topic, record.kafka_partition
        key_schema, key = record.key_schema, record.key
        if self.ON_KEY:
            key_schema, key, schema, value = schema, value, record.value_schema, record.value
        return record.new_record(
            topic, partition, key_schema, key, schema, value, record.timestamp, headers
        )


def both_sides(
    operation: type[OneSideTransformation],
) -> tuple[type[OneSideTransformation], type[OneSideTransformation]]:
    """Return the transformations of the key and of the value, named `…Key` and `…Value`."""
    own = {"__module__": operation.__module__, "__doc__": operation.__doc__}
    name = operation.__name__
    return type(f"{name}Key", (operation,), {**own, "ON_KEY": True}), type(
        f"{name}Value", (operation,), own
    )


def rerouted(
    record: ConnectRecord, topic: str | None, headers: Iterable[Header] | None = None
) -> ConnectRecord:
    """Return the record with another topic, and with other headers unless they are None."""
    partition, key_schema, schema = record.kafka_partition, record.key_schema, record.value_schema
    return record.new_record(
        topic, partition, key_schema, record.key, schema, record.value, record.timestamp, headers
    )
