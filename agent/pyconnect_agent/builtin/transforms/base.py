"""The base classes of the shipped transformations: their options, and the side that they change.

`both_sides` makes the subclasses `Key` and `Value` of Kafka's transformations, which are `…Key` and
`…Value` here. `Options` corresponds to `SimpleConfig` of Kafka's transformations.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_agent.core.plugin_catalog import ApachesPlugin
from pyconnect_api import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConnectRecord,
    Header,
    LambdaValidator,
    Schema,
    Transformation,
    ValidList,
)
from pyconnect_api.config_types import Validator
from pyconnect_api.configdef import define_table, invalid_value


@dataclass(frozen=True, slots=True)
class Options:
    """The result of `ConfigDef.parse`; read each option with the method of its type."""

    values: Mapping[str, object]

    def text(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str)
        return value

    def optional_text(self, name: str) -> str | None:
        value = self.values[name]
        assert value is None or isinstance(value, str)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values[name]
        assert isinstance(value, list)
        return tuple(value)

    def optional_integer(self, name: str) -> int | None:
        value = self.values[name]
        assert value is None or isinstance(value, int)
        return value


class Shipped(ApachesPlugin):
    """A plugin that parses its options by the definition in `CONFIG_DEF`.

    `with_default`: fields that hold None are read as the default of their schema.
    """

    CONFIG_DEF: ConfigDef

    with_default: bool

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take the options; raise ConfigException for options that the definition refuses."""
        options = Options(self.CONFIG_DEF.parse(configs))
        self.with_default = options.values.get(REPLACE_NULL_WITH_DEFAULT) is True
        self.configured(options)

    def configured(self, options: Options) -> None:
        """Take the parsed options."""

    def config(self) -> ConfigDef:
        return self.CONFIG_DEF


REPLACE_NULL_WITH_DEFAULT = "replace.null.with.default"
FIELD_SYNTAX_VERSION = "field.syntax.version"

_NULL_KEY = """
replace.null.with.default  BOOLEAN  MEDIUM  true
    With true, a field that holds null is read as the default of its schema, if it has one; with
    false it stays null.
"""
FIELD_SYNTAX_KEY = """
field.syntax.version  STRING  HIGH  V1
    How field names are read. V1: as the name of a field at the top. V2: as a path into nested data,
    its steps separated by dots; a step that itself contains dots is put between backticks, as in
    `foo.bar`.baz.
"""
"""KIP-821: `SYNTAX_VERSION` says whether a field's name may be a path into nested data."""
SYNTAX_VERSION = CaseInsensitiveValidString.one_of("V1", "V2")


def with_null_key(table: str, validators: Mapping[str, Validator] | None = None) -> ConfigDef:
    """Return the settings of a table, and `replace.null.with.default`."""
    return define_table(ConfigDef(), table.rstrip() + _NULL_KEY, validators)


def _check_not_empty(name: str, value: object) -> None:
    if not value:
        raise invalid_value(name, value, "Empty list")


def _check_date_pattern(name: str, value: object) -> None:
    try:
        JavaDateFormat(str(value))
    except ValueError as error:
        raise invalid_value(name, value, str(error)) from error


NON_EMPTY_LIST = LambdaValidator(_check_not_empty, "non-empty list")
NON_EMPTY_UNIQUE_LIST = ValidList.any_non_duplicate_values(allow_empty=False, allow_null=False)
UNIQUE_LIST = ValidList.any_non_duplicate_values(allow_empty=True, allow_null=False)
VALID_DATE_PATTERN = LambdaValidator(_check_date_pattern, "pattern of java.text.SimpleDateFormat")


def split_at_colons(text: str) -> list[str]:
    """Return the result of `text.split(":")` in Java: without the empty parts at the end.

    A text without a colon is a single part, even if it is empty; colons alone give no part.
    """
    if ":" not in text:
        return [text]
    parts = text.split(":")
    while parts and not parts[-1]:
        parts.pop()
    return parts


class ShippedTransformation(Shipped, Transformation[ConnectRecord]):
    """A transformation with the options of its `CONFIG_DEF`."""


SchemaWithValue: TypeAlias = tuple[Schema, object]


class OneSideTransformation(ShippedTransformation):
    """A transformation that changes the key or the value, which is the operated side.

    Without a schema `schemaless` makes the new value from the old one, otherwise `with_schema`
    makes schema and value. If `KEEPS_NONE` is true, records without a value on that side pass
    unchanged.
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
        """Return the new value of a side without a schema; the old one must not change."""
        raise NotImplementedError

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
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
        """Return the record with another operated side; `headers` None keeps the record's."""
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
    """Return the record with another topic, and with other headers unless `headers` is None."""
    partition, key_schema, schema = record.kafka_partition, record.key_schema, record.value_schema
    return record.new_record(
        topic, partition, key_schema, record.key, schema, record.value, record.timestamp, headers
    )
