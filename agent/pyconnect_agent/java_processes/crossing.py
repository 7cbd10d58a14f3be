"""Records between this process and a Java process for transformations there, in MessagePack.

`Crossing.java` is the other side, and each side may ask. A question is `[segment, schemas, rows]`:
the number of the transformations, the text of each schema, and rows of

| place | content                                                                          |
|-------|----------------------------------------------------------------------------------|
| 0 - 6 | topic, partition, key's schema, key, value's schema, value, timestamp            |
| 7     | headers: name, schema, value                                                     |
| 8     | source partition and offset, or offset, type of timestamp, and the original ones |

A schema is its place among the texts, or null. A struct is a list of its fields' values, a logical
value is its base value. The answer is `[counts, schemas, outcomes]`. An outcome is null for a
dropped record, true for an unchanged record, the row of a changed record, or a map for a failed
one. Counts are those of `Chain.takeCounts` in Java, null from Python. A value without a schema has
in Java the type that JsonConverter would give to it: a whole number becomes a Long.
"""

from __future__ import annotations

import base64
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

import msgspec

from pyconnect_api import (
    ConnectRecord,
    DataException,
    Field,
    Header,
    Schema,
    SinkRecord,
    SourceRecord,
    Struct,
    TimestampType,
    Type,
    from_logical,
    is_logical,
    to_logical,
)
from pyconnect_api.schema import renamed_schema

_MOST_SCHEMAS = 1000
_NO_SCHEMA: tuple[None, None] = (None, None)


Failed: TypeAlias = Callable[[int, DataException], object]
"""Returns the substitute for the record at a place, whose value cannot cross."""


class Crossing:
    """Encodes and decodes records, and remembers the schemas of texts; for one thread."""

    def __init__(self) -> None:
        self._schemas: dict[str, tuple[Schema, _Decode]] = {}
        self._texts: dict[Schema, str] = {}
        self._changed: list[Struct] = []

    def decode(self, payload: bytes) -> tuple[int, list[ConnectRecord]]:
        """Return the number of the transformations and the records."""
        segment, texts, rows = msgspec.msgpack.decode(payload, strict=False)
        known = [self._schema(text) for text in texts]
        records: list[ConnectRecord] = []
        for row in rows:
            fields, timestamp, headers = _fields(row, known)
            origin = row[8]
            if len(origin) == 2:
                partition, offset = origin
                records.append(SourceRecord(partition, offset, *fields, timestamp, headers or None))
                continue
            offset, kind, *original = origin
            record = SinkRecord(*fields, offset, timestamp, TimestampType[kind], headers or None)
            (
                record.original_topic,
                record.original_kafka_partition,
                record.original_kafka_offset,
            ) = original
            records.append(record)
        return segment, records

    def watch(self, record: ConnectRecord) -> Callable[[], bool]:
        """Return a function that returns whether a decoded record is still unchanged."""
        changed, before = self._changed, _contents(record)
        changed.clear()

        def is_unchanged() -> bool:
            now = _contents(record)
            return not changed and len(before) == len(now) and all(map(operator.is_, before, now))

        return is_unchanged

    def _schema(self, text: str) -> tuple[Schema, _Decode]:
        found = self._schemas.get(text)
        if found is None:
            if len(self._schemas) >= _MOST_SCHEMAS:
                self._schemas.clear()
                self._texts.clear()
            schema = _built(msgspec.json.decode(text))
            found = self._schemas[text] = (schema, _decoder(schema, self._changed))
            self._texts.setdefault(schema, text)
        return found

    def decode_outcomes(
        self, payload: bytes, originals: Sequence[ConnectRecord], failed: Failed
    ) -> tuple[Sequence[Sequence[float]], list[Any]]:
        """Return the counts and outcomes of an answer: records, None, and maps of failures."""
        # Changes of records that came back do not matter.
        self._changed.clear()
        counts, texts, outcomes = msgspec.msgpack.decode(payload, strict=False)
        known = [self._schema(text) for text in texts]
        for at, outcome in enumerate(outcomes):
            if outcome is True:
                outcomes[at] = originals[at]
            elif isinstance(outcome, list):
                try:
                    fields, timestamp, headers = _fields(outcome, known)
                except DataException as exc:
                    outcomes[at] = failed(at, exc)
                else:
                    outcomes[at] = originals[at].new_record(*fields, timestamp, headers)
        return counts, outcomes

    def encode(self, first: object, rows: Sequence[object], failed: Failed) -> bytes:
        """Return a question about records, or an answer of outcomes; `first`: its first member."""
        places: dict[str, int] = {}

        def place(schema: Schema | None) -> int | None:
            if schema is None:
                return None
            text = self._texts.get(schema)
            if text is None:
                text = self._texts[schema] = msgspec.json.encode(_described(schema)).decode()
            return places.setdefault(text, len(places))

        def row(record: ConnectRecord) -> list[object]:
            own: list[object] = [
                record.topic,
                record.kafka_partition,
                place(record.key_schema),
                _to_plain(record.key_schema, record.key),
                place(record.value_schema),
                _to_plain(record.value_schema, record.value),
                record.timestamp,
                [[h.key, place(h.schema), _to_plain(h.schema, h.value)] for h in record.headers]
                if record.has_headers
                else [],
            ]
            if isinstance(record, SourceRecord):
                source = (record.source_partition, record.source_offset)
                return [*own, [_to_plain(None, each) for each in source]]
            assert isinstance(record, SinkRecord)
            original = (
                record.original_topic,
                record.original_kafka_partition,
                record.original_kafka_offset,
            )
            return [*own, [record.kafka_offset, record.timestamp_type.name, *original]]

        written = []
        for at, each in enumerate(rows):
            try:
                written.append(row(each) if isinstance(each, ConnectRecord) else each)
            except DataException as exc:
                written.append(failed(at, exc))
        return msgspec.msgpack.encode([first, list(places), written])


def _fields(
    row: Sequence[Any], known: Sequence[_Known]
) -> tuple[tuple[Any, Any, Any, Any, Any, Any], Any, list[Header]]:
    """Return topic, partition, key and value with their schemas; timestamp; headers."""
    topic, partition, key_at, key, value_at, value, timestamp, headers = row[:8]
    key_schema, decode_key = _NO_SCHEMA if key_at is None else known[key_at]
    value_schema, decode_value = _NO_SCHEMA if value_at is None else known[value_at]
    own = []
    for name, at, header in headers:
        schema, decode = _NO_SCHEMA if at is None else known[at]
        own.append(Header(name, schema, _decoded(decode, header)))
    fields = (
        topic,
        partition,
        key_schema,
        _decoded(decode_key, key),
        value_schema,
        _decoded(decode_value, value),
    )
    return fields, timestamp, own


_Decode: TypeAlias = Callable[[Any], Any] | None
"""Makes a value from MessagePack's, which is not null; None: both are the same."""
_Known: TypeAlias = tuple[Schema | None, _Decode]


class _Watched(Struct):
    """A struct without lists and maps, which notes a change of itself."""

    __slots__ = ("_changed",)
    _changed: list[Struct]

    def put(self, field: str | Field, value: object) -> Struct:
        self._changed.append(self)
        return super().put(field, value)


def _is_flat(schema: Schema) -> bool:
    if schema.type is Type.STRUCT:
        return all(_is_flat(field.schema) for field in schema.fields)
    return schema.type not in {Type.ARRAY, Type.MAP}


def _decoder(schema: Schema | None, changed: list[Struct]) -> _Decode:
    """Return the decoding of a schema's values, which visits only members that need it.

    `changed` gets the structs that are changed later.
    """
    if schema is None:
        return None
    if schema.name is not None and is_logical(schema):
        return partial(to_logical, schema)
    match schema.type:
        case Type.STRUCT:
            decoders = (
                (at, _decoder(field.schema, changed)) for at, field in enumerate(schema.fields)
            )
            parts = [(at, decode) for at, decode in decoders if decode is not None]
            is_flat = _is_flat(schema)

            def struct(values: list[Any]) -> Struct:
                if not isinstance(values, list):
                    raise DataException(f"A value is no struct, as its schema {schema.name} says")
                for at, decode in parts:
                    if values[at] is not None:
                        values[at] = decode(values[at])
                if not is_flat:
                    return Struct.of_checked(schema, values)
                watched = _Watched.of_checked(schema, values)
                watched._changed = changed  # noqa: SLF001  of this module
                return watched

            return struct
        case Type.ARRAY if (item := _decoder(schema.value_schema, changed)) is not None:
            return lambda items: [_decoded(item, each) for each in items]
        case Type.MAP:
            keys = _decoder(schema.key_schema, changed)
            values = _decoder(schema.value_schema, changed)
            if keys is not None or values is not None:
                return lambda found: {
                    _decoded(keys, key): _decoded(values, each) for key, each in found.items()
                }
    return None


def _decoded(decode: _Decode, value: Any) -> Any:
    return value if value is None or decode is None else decode(value)


_PLAIN = frozenset({type(None), str, bool, float, bytes, int})
_ALWAYS_CROSSES = _PLAIN - {int}
"""Checked first, as a match checks classes one by one."""


def _to_plain(schema: Schema | None, value: Any) -> Any:
    """Return a value as MessagePack has it.

    Raises DataException for a value that it cannot hold.
    """
    if type(value) in _ALWAYS_CROSSES:
        return value
    match value:
        case None | str() | bool() | float() | bytes():
            return value
        case int():
            if not -(2**63) <= value < 2**63:
                raise DataException("An integer has more than 64 bits")
            return value
        case Struct():
            fields = value.schema.fields
            return [
                _to_plain(field.schema, each)
                for field, each in zip(fields, value.stored_values(), strict=True)
            ]
        case list() | tuple():
            of = None if schema is None else schema.value_schema
            return [_to_plain(of, each) for each in value]
        case Mapping():
            keys = None if schema is None else schema.key_schema
            of = None if schema is None else schema.value_schema
            return {_to_plain(keys, key): _to_plain(of, each) for key, each in value.items()}
        case Decimal() | date() | time() if schema is not None:
            return from_logical(schema, value)
    raise DataException(
        f"A {type(value).__qualname__} without a schema cannot be given to a Java process"
    )


_LEAVES = _PLAIN | {Schema, _Watched}
"""Classes whose values are compared as a whole: they cannot change, or note a change."""


def _contents(record: ConnectRecord) -> list[object]:
    """Return all parts of a record that a transformation can change."""
    found: list[object] = [record.topic, record.kafka_partition, record.timestamp]
    found += record.key_schema, record.value_schema, record.key, record.value
    if record.has_headers:
        for header in record.headers:
            found += header.key, header.schema, header.value
    return _with_members(found)


def _with_members(values: Sequence[object]) -> list[object]:
    found = [len(values), *values]
    # One check for all: a check of each of the many plain values takes most of the crossing's time.
    if not _LEAVES.issuperset(map(type, values)):
        for each in values:
            if isinstance(each, dict):
                found += each
                found += _with_members(list(each.values()))
            elif isinstance(each, list):
                found += _with_members(each)
            elif isinstance(each, Struct) and type(each) is not _Watched:
                found += _with_members(each.stored_values())
    return found


def _built(described: Mapping[str, Any]) -> Schema:
    bare = Schema(
        Type(described["type"]),
        optional=described["optional"],
        name=described["name"],
        version=described["version"],
        doc=described["doc"],
        parameters=described["parameters"],
        fields=[
            Field(name, index, _built(of))
            for index, (name, of) in enumerate(described.get("fields", ()))
        ],
        key_schema=_built(described["keys"]) if "keys" in described else None,
        value_schema=_built(described["values"]) if "values" in described else None,
    )
    if described.get("default") is None:
        return bare
    default = msgspec.msgpack.decode(base64.b64decode(described["default"]), strict=False)
    value = _decoded(_decoder(bare, []), default)
    return renamed_schema(bare, name=bare.name, version=bare.version, default=value)


def _described(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": schema.type.value,
        "optional": schema.optional,
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "parameters": None if schema.parameters is None else dict(schema.parameters),
    }
    if schema.default is not None:
        plain = msgspec.msgpack.encode(_to_plain(schema, schema.default))
        found["default"] = base64.b64encode(plain).decode()
    if schema.type is Type.STRUCT:
        found["fields"] = [[field.name, _described(field.schema)] for field in schema.fields]
    if schema.type is Type.MAP and schema.key_schema is not None:
        found["keys"] = _described(schema.key_schema)
    if schema.type in {Type.MAP, Type.ARRAY} and schema.value_schema is not None:
        found["values"] = _described(schema.value_schema)
    return found
