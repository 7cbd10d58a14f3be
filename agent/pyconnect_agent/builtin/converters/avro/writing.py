"""Avro schemas of Connect schemas.

Corresponds to `AvroData.fromConnectSchema`. Pure. A struct without a name becomes
`io.confluent.connect.avro.ConnectDefault`, further ones `ConnectDefault2` and so on; maps whose
keys are not required strings are arrays of `MapEntry` records. A record type that occurs again is
referred to by its name, and must be the same. Properties hold facts that Avro lacks; their names
are those of `AvroData`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote_plus

from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Schema,
    Type,
    from_logical,
    is_logical,
)
from pyconnect_api.logical import scale_of

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_RECORD = "ConnectDefault"
MAP_ENTRY = "MapEntry"
UNION = f"{NAMESPACE}.Union"
ENUM_PARAMETER = f"{NAMESPACE}.Enum"

DOC = "connect.doc"
VERSION = "connect.version"
PARAMETERS = "connect.parameters"
DEFAULT = "connect.default"
NAME = "connect.name"
TYPE = "connect.type"
INTERNAL_TYPE = "connect.internal.type"
FIXED_SIZE = "connect.fixed.size"
DECIMAL_PRECISION = "connect.decimal.precision"
DEFAULT_PRECISION = 64

LOGICAL = "__logicalType"
"""The property in which `reading.parse` keeps a logical type, so that the library ignores it."""

_VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroOptions:
    """The format's own options.

    `connect_meta_data`: names, versions, docs and parameters are written as properties.
    `enhanced`: enums are written back as such, and union fields named in full.
    """

    connect_meta_data: bool = True
    enhanced: bool = False
    scrub_invalid_names: bool = False
    allow_optional_map_keys: bool = False


def avro_name(name: str, options: AvroOptions) -> str:
    """Return a simple name that Avro allows; DataException if it would have to be changed."""
    if _VALID.fullmatch(name):
        return name
    if not options.scrub_invalid_names:
        raise DataException(
            f"'{name}' is not a name in Avro: letters, digits and underscores only, no digit "
            "first. Set 'scrub.invalid.names' to true to have it changed"
        )
    scrubbed = _INVALID_CHARACTER.sub("_", quote_plus(name))
    return scrubbed if _VALID.fullmatch(scrubbed) else f"x{scrubbed}"


def full_avro_name(name: str, options: AvroOptions) -> str:
    """Return a name with its namespace, each part as Avro allows it."""
    return ".".join(avro_name(part, options) for part in name.split("."))


Json: TypeAlias = object
"""A value that `json.dumps` accepts."""

PRIMITIVES: Mapping[Type, str] = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL_TYPES = {DATE_NAME: "date", TIME_NAME: "time-millis", TIMESTAMP_NAME: "timestamp-millis"}


def avro_schema(schema: Schema, options: AvroOptions) -> Json:
    """Return the Avro schema of values of `schema`; raise DataException if none exists."""
    return _Derivation(options).of(schema)


def is_string_map(schema: Schema, options: AvroOptions) -> bool:
    """Return whether a MAP schema is a map in Avro, too."""
    key = schema.key_schema
    return (
        key is not None
        and key.type is Type.STRING
        and (not key.optional or options.allow_optional_map_keys)
    )


class RecordNames:
    """Names of the records of one schema, in the order of their first use."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._counts: dict[str, int] = {}

    def of_struct(self, schema: Schema) -> str:
        """Return the full name of a struct's record."""
        if schema.name is not None:
            return full_avro_name(schema.name, self._options)
        return self._numbered(DEFAULT_RECORD)

    def of_entry(self, schema: Schema) -> str:
        """Return the full name of the record of a map's entries."""
        if schema.name is not None:
            return full_avro_name(schema.name, self._options)
        return self._numbered(MAP_ENTRY)

    def _numbered(self, name: str) -> str:
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return f"{NAMESPACE}.{name}{count if count > 1 else ''}"


class _Derivation:
    """The derivation of one schema, which remembers the records that it has named."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._names = RecordNames(options)
        self._defined: dict[str, Schema] = {}

    def of(self, schema: Schema) -> Json:
        """Return the schema; it is a union with null if it is optional."""
        if schema.name == UNION:
            branches = [self._base(field.schema) for field in schema.fields]
            return ["null", *branches] if schema.optional else branches
        base = self._base(schema)
        if not schema.optional:
            return base
        return ["null", base] if schema.default is None else [base, "null"]

    def _base(self, schema: Schema) -> Json:
        match schema.type:
            case Type.STRUCT:
                return self._record(schema)
            case Type.ARRAY:
                return self._described(schema, {"type": "array", "items": self._element(schema)})
            case Type.MAP:
                return self._map(schema)
        parameters = schema.parameters or {}
        if self._options.enhanced and ENUM_PARAMETER in parameters:
            full_name = full_avro_name(parameters[ENUM_PARAMETER], self._options)
            if full_name in self._defined:
                return full_name
            self._defined[full_name] = schema
            start = f"{ENUM_PARAMETER}."
            symbols = [value for name, value in parameters.items() if name.startswith(start)]
            return self._described(schema, {"type": "enum", "name": full_name, "symbols": symbols})
        base: dict[str, Json] = {"type": PRIMITIVES[schema.type]}
        if schema.name == DECIMAL_NAME:
            precision = int(parameters.get(DECIMAL_PRECISION, DEFAULT_PRECISION))
            base |= {"logicalType": "decimal", "precision": precision, "scale": scale_of(schema)}
        elif schema.name in _LOGICAL_TYPES:
            base["logicalType"] = _LOGICAL_TYPES[schema.name]
        elif schema.type in (Type.INT8, Type.INT16):
            base[TYPE] = schema.type.value
        described = self._described(schema, base)
        return described["type"] if len(described) == 1 else described

    def _element(self, schema: Schema) -> Json:
        if schema.value_schema is None:
            raise DataException(f"The schema of the elements of {schema} is not known")
        return self.of(schema.value_schema)

    def _map(self, schema: Schema) -> Json:
        if schema.key_schema is None:
            raise DataException(f"The schema of the keys of {schema} is not known")
        if is_string_map(schema, self._options):
            return self._described(schema, {"type": "map", "values": self._element(schema)})
        namespace, _, name = self._names.of_entry(schema).rpartition(".")
        entry = {
            "type": "record",
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "fields": [
                {"name": "key", "type": self.of(schema.key_schema)},
                {"name": "value", "type": self._element(schema)},
            ],
            INTERNAL_TYPE: MAP_ENTRY,
        }
        return self._described(schema, {"type": "array", "items": entry})

    def _record(self, schema: Schema) -> Json:
        full_name = self._names.of_struct(schema)
        known = self._defined.get(full_name)
        if known is not None:
            if known.fields != schema.fields:
                raise DataException(
                    f"Two different structs are named {full_name}; Avro allows one record a name"
                )
            return full_name
        self._defined[full_name] = schema
        namespace, _, name = full_name.rpartition(".")
        record: dict[str, Json] = {"type": "record", "name": name}
        if namespace:
            record["namespace"] = namespace
        if schema.doc is not None:
            record["doc"] = schema.doc
        fields: list[Json] = []
        for each in schema.fields:
            field: dict[str, Json] = {
                "name": avro_name(each.name, self._options),
                "type": self.of(each.schema),
            }
            if each.schema.doc is not None:
                field["doc"] = each.schema.doc
            if each.schema.default is not None:
                field["default"] = _default(each.schema, each.schema.default)
            elif each.schema.optional:
                field["default"] = None
            fields.append(field)
        record["fields"] = fields
        return self._described(schema, record)

    def _described(self, schema: Schema, base: dict[str, Json]) -> dict[str, Json]:
        if not self._options.connect_meta_data:
            return base
        properties: dict[str, Json] = {
            DOC: schema.doc,
            VERSION: schema.version,
            PARAMETERS: dict(schema.parameters) if schema.parameters else None,
            NAME: schema.name,
        }
        described = base | {name: value for name, value in properties.items() if value is not None}
        if schema.default is not None:
            described[DEFAULT] = _default(schema, schema.default)
        return described


def _default(schema: Schema, value: object) -> Json:
    """Return a default as Avro's JSON form of it."""
    if value is None:
        return None
    if is_logical(schema):
        value = from_logical(schema, value)
    match schema.type:
        case Type.BYTES:
            assert isinstance(value, bytes)
            return value.decode("iso-8859-1")
        case Type.ARRAY:
            assert isinstance(value, list)
            element = schema.value_schema
            assert element is not None
            return [_default(element, item) for item in value]
        case Type.MAP:
            assert isinstance(value, dict)
            key, element = schema.key_schema, schema.value_schema
            assert key is not None
            assert element is not None
            if key.type is Type.STRING:
                return {name: _default(element, item) for name, item in value.items()}
            return [
                {"key": _default(key, name), "value": _default(element, item)}
                for name, item in value.items()
            ]
    return value
