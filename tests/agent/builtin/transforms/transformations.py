"""Transformations and predicates by Connect's names, configured, and records for them."""

from typing import Any

from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION, Catalog, PluginKind
from pyconnect_agent.plugins.loading import builtin_plugins, load
from pyconnect_api import (
    INT32_SCHEMA,
    ConnectRecord,
    Header,
    Predicate,
    Schema,
    SchemaBuilder,
    SinkRecord,
    SourceRecord,
    Struct,
    Transformation,
)

_CATALOG = Catalog(builtin_plugins())

WITH_DEFAULT = SchemaBuilder.string().optional().default("default").build()
PAIR = SchemaBuilder.struct().name("pair").field("a", WITH_DEFAULT).field("b", INT32_SCHEMA).build()


def transformation(
    name: str, /, release: str = CONNECT_VERSION, **options: str
) -> Transformation[Any]:
    """Return a configured transformation; the keyword `a_b` stands for the option `a.b`."""
    made: Transformation[Any] = load(
        Catalog(builtin_plugins(release)).plugin(name, PluginKind.TRANSFORMATION)
    )()
    made.configure(_options(options))
    return made


def predicate(name: str, /, **options: str) -> Predicate[Any]:
    """Return a configured predicate; keywords are as for `transformation`."""
    made: Predicate[Any] = load(_CATALOG.plugin(name, PluginKind.PREDICATE))()
    made.configure(_options(options))
    return made


def pair(a: str | None, b: int | None) -> Struct:
    return Struct.of_checked(PAIR, [a, b])


def source_record(
    value: object,
    schema: Schema | None = None,
    *,
    topic: str | None = "topic",
    timestamp: int | None = None,
    headers: list[Header] | None = None,
) -> SourceRecord:
    """Return a record with the value; the key is the same."""
    return SourceRecord(None, None, topic, None, schema, value, schema, value, timestamp, headers)


def sink_record(
    value: object, schema: Schema | None = None, *, timestamp: int | None = None
) -> SinkRecord:
    """Return a record of partition 3 and offset 42 with the value; the key is the same."""
    return SinkRecord("topic", 3, schema, value, schema, value, 42, timestamp)


def applied(made: Transformation[Any], record: ConnectRecord) -> ConnectRecord:
    """Return the transformed record, which must not be dropped."""
    result = made.apply(record)
    assert isinstance(result, ConnectRecord)
    return result


def struct_of(record: ConnectRecord) -> Struct:
    """Return the value of a record, which must be a struct."""
    assert isinstance(record.value, Struct)
    return record.value


def _options(keywords: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in keywords.items()}
