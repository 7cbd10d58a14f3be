"""Reader of the corpus that TransformCorpus.java prints, and its records with our plugins.

Each line says what one of Apache's transformations or predicates did with a record; `ours` does the
same with ours.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from pyconnect_agent.core.plugin_catalog import RELEASE_4_4, Catalog, PluginKind
from pyconnect_agent.plugins.loading import builtin_plugins, load
from pyconnect_api import (
    ConfigException,
    ConnectException,
    ConnectRecord,
    Header,
    Predicate,
    Schema,
    SinkRecord,
    SourceRecord,
    Transformation,
)
from pyconnect_api.logical import date_to_days, timestamp_from_milliseconds
from tests.agent.builtin.converters.converter_corpus import schema_of, text_of, value_of

_CATALOG = Catalog(builtin_plugins(RELEASE_4_4))  # does what 4.3 does with its options
CLASSES: dict[str, type[Any]] = {
    desc.class_name: load(desc)
    for desc in _CATALOG.of_kind(PluginKind.TRANSFORMATION, PluginKind.PREDICATE)
    if desc.class_name.startswith("org.apache.kafka.")
}
"""Our classes by Java's names; expressions have no Java class."""

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The plugin refused its options (`stage` configure) or the record (apply)."""

    java_class: str
    message: str | None
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One input and the outcome of Apache's plugin.

    The outcome is a record, None when it was dropped, a predicate's bool, or Failed.
    """

    java_class: str
    options: dict[str, str]
    record: ConnectRecord
    outcome: ConnectRecord | bool | Failed | None

    @property
    def name(self) -> str:
        """The class without its package and side, as in `Cast`."""
        return self.java_class.rpartition(".")[2].partition("$")[0]

    def ours(self) -> ConnectRecord | bool | Failed | None:
        """Return the outcome of our plugin for the input."""
        plugin = CLASSES[self.java_class]()
        stage = "configure"
        try:
            plugin.configure(self.options)
            stage = "apply"
            if isinstance(plugin, Predicate):
                return plugin.test(self.record)
            assert isinstance(plugin, Transformation)
            result: ConnectRecord | None = plugin.apply(self.record)
        except (ConnectException, ConfigException) as error:
            return Failed(java_class=error.java_name, message=str(error), stage=stage)
        return result


def java_version(lines: Iterable[str]) -> int:
    """Return the feature version of the Java that printed the corpus."""
    for line in lines:
        return int(json.loads(line)["java"])
    raise AssertionError("the corpus is empty")


def cases(lines: Iterable[str]) -> Iterator[Case]:
    """Yield the cases of the corpus's lines."""
    for line in lines:
        described = json.loads(line)
        if "class" in described:
            yield _case(described)


def outcome_text(outcome: ConnectRecord | bool | Failed | None) -> str:
    """Return a text that is the same only for equal outcomes."""
    if not isinstance(outcome, ConnectRecord):
        return repr(outcome)
    return "\n  ".join(parts_of(outcome))


def parts_of(record: ConnectRecord) -> tuple[str, ...]:
    """Return texts of key, value, headers and all the rest of a record."""
    rest = (
        type(record).__name__,
        record.topic,
        record.kafka_partition,
        record.timestamp,
        record.kafka_offset if isinstance(record, SinkRecord) else None,
    )
    headers = [(key, data_text(schema, value)) for key, schema, value in record.headers]
    return (
        data_text(record.key_schema, record.key),
        data_text(record.value_schema, record.value),
        repr(headers),
        repr(rest),
    )


def data_text(schema: Schema | None, value: object) -> str:
    """Return a text of a value; without a schema all temporals are instants, as in Java."""
    if schema is None:
        value = _with_moments(value)
    described = json.dumps(_schema_parts(schema), sort_keys=True)
    return f"{described} {text_of(value)}"


def _schema_parts(schema: Schema | None) -> object:
    """Return all parts in which schemas can differ, the order of fields included."""
    if schema is None:
        return None
    is_struct, is_map = schema.type.name == "STRUCT", schema.type.name == "MAP"
    is_container = is_map or schema.type.name == "ARRAY"
    return {
        "type": schema.type.name,
        "optional": schema.optional,
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "default": text_of(schema.default),
        "parameters": None if schema.parameters is None else dict(schema.parameters),
        "fields": [(field.name, _schema_parts(field.schema)) for field in schema.fields]
        if is_struct
        else None,
        "keys": _schema_parts(schema.key_schema) if is_map else None,
        "values": _schema_parts(schema.value_schema) if is_container else None,
    }


def _with_moments(value: object) -> object:
    match value:
        case dict():
            return {key: _with_moments(item) for key, item in value.items()}
        case datetime():
            return value
        case date():
            return timestamp_from_milliseconds(date_to_days(value) * _DAY_MS)
        case time():
            return datetime.combine(date(1970, 1, 1), value, UTC)
    return value


def _case(described: dict[str, Any]) -> Case:
    outcome: ConnectRecord | bool | Failed | None
    if "error" in described:
        java_class, message = described["error"]
        outcome = Failed(java_class=java_class, message=message, stage=described["stage"])
    elif "holds" in described:
        outcome = bool(described["holds"])
    else:
        outcome = None if described["result"] is None else _record(described["result"])
    record = _record(described["record"])
    return Case(
        java_class=described["class"], options=described["options"], record=record, outcome=outcome
    )


def _record(described: dict[str, Any]) -> ConnectRecord:
    key_schema, value_schema = schema_of(described["key"][0]), schema_of(described["value"][0])
    key = value_of(key_schema, described["key"][1])
    value = value_of(value_schema, described["value"][1])
    headers = [
        Header(name, schema := schema_of(schema_text), value_of(schema, value_text))
        for name, schema_text, value_text in described["headers"]
    ]
    topic, partition = described["topic"], described["partition"]
    offset, timestamp = described["offset"], described["timestamp"]
    data = key_schema, key, value_schema, value
    if offset is None:
        return SourceRecord(None, None, topic, partition, *data, timestamp, headers)
    return SinkRecord(topic, partition, *data, offset, timestamp, headers=headers)
