"""Connect schemas of Avro schemas, with the functions that read their values.

Corresponds to `AvroData.toConnectSchema` and `toConnectData`. One walk makes both, as the schema
decides the function. Avro types without a counterpart:

| Avro                    | Connect                                                              |
|-------------------------|----------------------------------------------------------------------|
| enum                    | STRING, its symbols in parameters                                    |
| fixed                   | BYTES, its size in a parameter                                       |
| union of several types  | STRUCT `io.confluent.connect.avro.Union`, a field for each           |

A whole number in a union of int and long becomes the int if it fits, since the library does not
say which was written. Records that contain themselves are refused: schemas here are finite.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pyconnect_agent.builtin.converters.avro import writing
from pyconnect_agent.builtin.converters.avro.writing import AvroOptions
from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
    is_logical,
    to_logical,
)
from pyconnect_api.schema import renamed_schema
from pyconnect_api.validation import INTEGER_RANGES, hashable_key

Avro = Mapping[str, Any]
"""A parsed Avro schema: `type`, and the details under full names."""
Read = Callable[[Any], object]
"""Returns the Connect value of a value that the Avro library has read."""

_TYPES = {
    # Several types are `int`; the last one, INT32, counts.
    **{name: kind for kind, name in writing.PRIMITIVES.items()},
    "fixed": Type.BYTES,
    "enum": Type.STRING,
}
_LOGICAL_NAMES = {
    ("bytes", "decimal"): DECIMAL_NAME,
    ("fixed", "decimal"): DECIMAL_NAME,
    ("int", "date"): DATE_NAME,
    ("int", "time-millis"): TIME_NAME,
    ("long", "timestamp-millis"): TIMESTAMP_NAME,
}
_UNNAMED = re.compile(re.escape(f"{writing.NAMESPACE}.{writing.DEFAULT_RECORD}") + "[0-9]*")
"""Names that structs without a name get in writing."""
_PYTHON_TYPES: Mapping[Type, type] = {
    **dict.fromkeys(INTEGER_RANGES, int),
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.ARRAY: list,
    Type.MAP: dict,
}


def without_logical_types(schema: Any) -> Any:  # JSON
    """Return an Avro schema whose logical types are kept under `names.LOGICAL`."""
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key != "logicalType"}
    if "logicalType" in schema:
        plain[writing.LOGICAL] = schema["logicalType"]
    for key in ("type", "items", "values"):
        if isinstance(plain.get(key), dict | list):
            plain[key] = without_logical_types(plain[key])
    if isinstance(plain.get("fields"), list):
        plain["fields"] = [without_logical_types(field) for field in plain["fields"]]
    return plain


def connect_schema(
    parsed: Any, named: Mapping[str, Avro], options: AvroOptions
) -> tuple[Schema, Read]:
    """Return the Connect schema of a parsed schema, and the function that reads its values.

    `named` holds all records, enums and fixed types by full name.
    """
    return _Walk(named, options).of(parsed)


class _Walk:
    def __init__(self, named: Mapping[str, Avro], options: AvroOptions) -> None:
        self._named = named
        self._options = options
        self._open: list[str] = []

    def of(self, avro: Any, *, optional: bool = False, default: Any = None) -> tuple[Schema, Read]:
        """Return schema and reader; `default` is the field's, in Avro's JSON form."""
        if isinstance(avro, list):
            return self._of_union(avro, default)
        if isinstance(avro, str):
            avro = self._named.get(avro, {"type": avro})
        kind = avro["type"]
        if isinstance(kind, list | dict):
            return self.of(kind, optional=optional, default=default)
        if kind in self._named and kind not in _TYPES:
            return self.of(self._named[kind], optional=optional, default=default)
        builder, read = self._builder(kind, avro)
        if optional:
            builder.optional()
        schema = _described(builder, avro, kind).build()
        default = avro.get(writing.DEFAULT, default)
        if default is not None and schema.type is not Type.STRUCT:
            read_value = _logical(schema, read)
            value = read_value(_from_json(schema, default))
            with_default = renamed_schema(
                schema, name=schema.name, version=schema.version, default=value
            )
            return with_default, read_value
        return schema, _logical(schema, read)

    def _builder(self, kind: str, avro: Avro) -> tuple[SchemaBuilder, Read]:
        match kind:
            case "record":
                return self._record(avro)
            case "array":
                return self._array(avro)
            case "map":
                schema, element = self.of(avro["values"])
                return SchemaBuilder.map(SchemaBuilder.string(), schema), (
                    lambda found: {key: element(item) for key, item in found.items()}
                )
        base = _TYPES.get(kind)
        if base is None:
            raise DataException(f"Couldn't translate unsupported schema type {kind}.")
        if kind == "int" and avro.get(writing.TYPE) in ("int8", "int16"):
            base = Type(avro[writing.TYPE])
        builder = SchemaBuilder(base)
        if kind == "fixed":
            builder.parameter(writing.FIXED_SIZE, str(avro["size"]))
        if kind == "enum":
            builder.parameter(writing.ENUM_PARAMETER, avro["name"])
            for symbol in avro["symbols"]:
                builder.parameter(f"{writing.ENUM_PARAMETER}.{symbol}", symbol)
        logical = _LOGICAL_NAMES.get((kind, avro.get(writing.LOGICAL, "")))
        if logical is not None:
            builder.name(logical).version(1)
            if logical == DECIMAL_NAME:
                builder.parameter("scale", str(avro.get("scale", 0)))
                precision = avro.get("precision", writing.DEFAULT_PRECISION)
                if precision != writing.DEFAULT_PRECISION:
                    builder.parameter(writing.DECIMAL_PRECISION, str(precision))
        return builder, lambda found: found

    def _of_union(self, branches: list[Any], default: Any) -> tuple[Schema, Read]:
        others = [branch for branch in branches if branch != "null"]
        optional = len(others) < len(branches)
        if len(others) == 1:
            # A union's default is a value of its first branch.
            return self.of(others[0], optional=optional, default=default)
        builder = SchemaBuilder.struct().name(writing.UNION)
        if optional:
            builder.optional()
        readers = []
        for branch in others:
            schema, read = self.of(branch, optional=True)
            name = branch.get("name") if isinstance(branch, dict) else branch
            if not name:
                name = str(branch["type"])
            elif not self._options.enhanced:
                name = name.rpartition(".")[2]
            builder.field(name, schema)
            readers.append((schema, read))
        union = builder.build()

        def read_branch(found: Any) -> object:
            if found is None:
                return None
            for index, (schema, read) in enumerate(readers):
                if _is_of(schema, found):
                    values: list[object] = [None] * len(readers)
                    values[index] = read(found)
                    return Struct.of_checked(union, values)
            raise DataException(f"No branch of the union is a {type(found).__qualname__}")

        return union, read_branch

    def _array(self, avro: Avro) -> tuple[SchemaBuilder, Read]:
        entry = avro["items"]
        if isinstance(entry, str):
            entry = self._named.get(entry, entry)
        if isinstance(entry, dict) and (
            entry.get(writing.INTERNAL_TYPE) == writing.MAP_ENTRY
            or entry.get("name") == f"{writing.NAMESPACE}.{writing.MAP_ENTRY}"
        ):
            fields = {field["name"]: field for field in entry["fields"]}
            key_schema, key = self.of(fields["key"]["type"])
            value_schema, value = self.of(fields["value"]["type"])
            return SchemaBuilder.map(key_schema, value_schema), lambda found: {
                hashable_key(key(entry["key"])): value(entry["value"]) for entry in found
            }
        schema, element = self.of(avro["items"])
        return SchemaBuilder.array(schema), lambda found: [element(item) for item in found]

    def _record(self, avro: Avro) -> tuple[SchemaBuilder, Read]:
        name = avro["name"]
        if name in self._open:
            raise DataException(f"The Avro record {name} contains itself, which is not supported")
        self._open.append(name)
        builder, members = SchemaBuilder.struct(), []
        for field in avro["fields"]:
            kind = _documented(field["type"], field.get("doc"))
            schema, read = self.of(kind, default=field.get("default"))
            builder.field(field["name"], schema)
            members.append((field["name"], read))
        self._open.pop()
        return builder, _RecordReader(members)


def _documented(kind: Any, doc: str | None) -> Any:
    """Return a field's type, which takes the field's doc unless it has one."""
    if doc is None or kind == "null":
        return kind
    if isinstance(kind, list):
        return [_documented(branch, doc) for branch in kind]
    if isinstance(kind, str):
        return {"type": kind, writing.DOC: doc}
    if kind.get("type") in ("record", "enum", "fixed"):
        return kind
    return {writing.DOC: doc, **kind}


def _described(builder: SchemaBuilder, avro: Avro, kind: str) -> SchemaBuilder:
    """Add the facts in Connect's properties that are not known yet."""
    known = builder.build()
    doc = avro.get(writing.DOC, avro.get("doc"))
    if doc is not None:
        builder.doc(doc)
    version = avro.get(writing.VERSION)
    if version is not None and known.version is None:
        builder.version(int(version))
    builder.parameters(avro.get(writing.PARAMETERS, {}))
    name = avro.get(writing.NAME)
    if name is None and kind in ("record", "enum", "fixed"):
        name = avro["name"]
    if name is not None and known.name is None and not _UNNAMED.fullmatch(name):
        builder.name(name)
    return builder


def _logical(schema: Schema, read: Read) -> Read:
    """Return the reader; that of a record needs the finished schema."""
    if isinstance(read, _RecordReader):
        read = read.of(schema)
    elif is_logical(schema):
        return lambda found: None if found is None else to_logical(schema, found)
    if not schema.optional:
        return read
    return lambda found: None if found is None else read(found)


class _RecordReader:
    """The readers of a record's members, kept until the record's schema is finished."""

    def __init__(self, members: list[tuple[str, Read]]) -> None:
        self._members = members

    def __call__(self, found: Any) -> object:
        raise AssertionError("a record is read by what `of` returns")

    def of(self, schema: Schema) -> Read:
        members = self._members

        def read(found: Any) -> object:
            record = found[1] if isinstance(found, tuple) else found
            return Struct.of_checked(schema, [member(record[name]) for name, member in members])

        return read


def _is_of(schema: Schema, found: Any) -> bool:
    """Return whether a value is of a branch; records are pairs of full name and members."""
    if isinstance(found, tuple):
        return schema.type is Type.STRUCT and schema.name == found[0]
    if type(found) is not _PYTHON_TYPES.get(schema.type):
        return False
    if isinstance(found, int) and (limits := INTEGER_RANGES.get(schema.type)):
        return limits[0] <= found <= limits[1]
    symbols = schema.parameters or {}
    is_enum = isinstance(found, str) and writing.ENUM_PARAMETER in symbols
    return not is_enum or f"{writing.ENUM_PARAMETER}.{found}" in symbols


def _from_json(schema: Schema, default: Any) -> Any:
    """Return a default in the form in which the library would have read it."""
    match schema.type:
        case Type.BYTES:
            return default.encode("iso-8859-1") if isinstance(default, str) else default
        case Type.ARRAY:
            assert schema.value_schema is not None
            return [_from_json(schema.value_schema, item) for item in default]
        case Type.FLOAT32 | Type.FLOAT64:
            return float(default)
    return default


def parse_json(text: str) -> Any:
    """Return the JSON of an Avro schema; a bare name is allowed, as in registries."""
    try:
        return json.loads(text)
    except ValueError:
        return text
