"""Schemas: the immutable description of keys, values and headers.

Corresponds to `org.apache.kafka.connect.data.Schema`, `ConnectSchema`, `Field` and
`SchemaAndValue`. Building is in `schema_builder`, checking values in `validation`.
Schemas are immutable and may be shared by threads.

Python values by type: the INT types `int`, FLOAT32 and FLOAT64 `float`, BOOLEAN `bool`,
STRING `str`, BYTES `bytes`, ARRAY `list`, MAP `dict`, STRUCT `Struct`; logical types as in
`logical`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from pyconnect_api.errors import DataException


class Type(Enum):
    """Kind of a schema; the value is Kafka's lower-case name of it."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    # Enum's own hash is slow Python code; members are singletons, so identity is enough.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.name

    @property
    def is_primitive(self) -> bool:
        return self not in _COMPLEX_TYPES


_COMPLEX_TYPES = (Type.ARRAY, Type.MAP, Type.STRUCT)

# Only the name of a schema makes its type logical; see `logical`.
DECIMAL_NAME = "org.apache.kafka.connect.data.Decimal"
DATE_NAME = "org.apache.kafka.connect.data.Date"
TIME_NAME = "org.apache.kafka.connect.data.Time"
TIMESTAMP_NAME = "org.apache.kafka.connect.data.Timestamp"


@dataclass(frozen=True, slots=True)
class Field:
    """Named member of a STRUCT schema; `index` is its position, from 0."""

    name: str
    index: int
    schema: "Schema"


class Schema:
    """Type of a value, whether it may be None, and its meaning.

    Equality and hash cover every attribute, documentation and defaults included.
    `parameters` is None rather than an empty mapping.
    """

    __slots__ = (
        "_fields",
        "_fields_by_name",
        "_hash",
        "_key_schema",
        "_value_schema",
        "default",
        "doc",
        "name",
        "optional",
        "parameters",
        "type",
        "version",
    )

    type: Type
    optional: bool
    default: object
    name: str | None
    version: int | None
    doc: str | None
    parameters: Mapping[str, str] | None
    _fields: tuple[Field, ...]
    _fields_by_name: dict[str, Field]
    _key_schema: "Schema | None"
    _value_schema: "Schema | None"
    _hash: int

    def __init__(
        self,
        type: Type,
        *,
        optional: bool = False,
        default: object = None,
        name: str | None = None,
        version: int | None = None,
        doc: str | None = None,
        parameters: Mapping[str, str] | None = None,
        fields: Iterable[Field] = (),
        key_schema: "Schema | None" = None,
        value_schema: "Schema | None" = None,
    ) -> None:
        """Take the parts without checks; `SchemaBuilder` checks them."""
        members = tuple(fields)
        frozen_parameters = MappingProxyType(dict(parameters)) if parameters else None
        # The default counts only for equality, because a list or a dict has no hash.
        hashed = None if frozen_parameters is None else frozenset(frozen_parameters.items())
        own_hash = hash(
            (type, optional, name, version, doc, hashed, members, key_schema, value_schema)
        )
        for attribute, part in (
            ("type", type),
            ("optional", optional),
            ("default", default),
            ("name", name),
            ("version", version),
            ("doc", doc),
            ("parameters", frozen_parameters),
            ("_fields", members),
            ("_fields_by_name", {member.name: member for member in members}),
            ("_key_schema", key_schema),
            ("_value_schema", value_schema),
            ("_hash", own_hash),
        ):
            object.__setattr__(self, attribute, part)

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        raise AttributeError(f"{self} is immutable; build another one to change {attribute!r}")

    def __delattr__(self, attribute: str) -> NoReturn:
        raise AttributeError(f"{self} is immutable; {attribute!r} cannot be removed")

    @property
    def fields(self) -> tuple[Field, ...]:
        """Members of a STRUCT in order; DataException for other types."""
        if self.type is not Type.STRUCT:
            raise DataException("Cannot list fields on non-struct type")
        return self._fields

    def field(self, field_name: str) -> Field | None:
        """Return the member of that name or None; DataException unless STRUCT."""
        if self.type is not Type.STRUCT:
            raise DataException("Cannot look up fields on non-struct type")
        return self._fields_by_name.get(field_name)

    @property
    def key_schema(self) -> "Schema | None":
        """Schema of a MAP's keys, None when it could not be inferred from text."""
        if self.type is not Type.MAP:
            raise DataException("Cannot look up key schema on non-map type")
        return self._key_schema

    @property
    def value_schema(self) -> "Schema | None":
        """Schema of a MAP's values or an ARRAY's elements, None when it could not be inferred."""
        if self.type is not Type.MAP and self.type is not Type.ARRAY:
            raise DataException("Cannot look up value schema on non-array and non-map type")
        return self._value_schema

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Schema):
            return NotImplemented
        return (
            self._hash == other._hash
            and self._identity() == other._identity()
            and self.default == other.default
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return (
            f"Schema{{{self.type}}}" if self.name is None else f"Schema{{{self.name}:{self.type}}}"
        )

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        parts: dict[str, Any] = {
            "type": self.type,
            "optional": self.optional,
            "default": self.default,
            "name": self.name,
            "version": self.version,
            "doc": self.doc,
            "parameters": None if self.parameters is None else dict(self.parameters),
            "fields": self._fields,
            "key_schema": self._key_schema,
            "value_schema": self._value_schema,
        }
        return partial(Schema, **parts), ()

    def _identity(self) -> tuple[object, ...]:
        return (
            self.type,
            self.optional,
            self.name,
            self.version,
            self.doc,
            self.parameters,
            self._fields,
            self._key_schema,
            self._value_schema,
        )


class StructValue:
    """The part of a struct that schemas and validation use; `Struct` implements it."""

    __slots__ = ()

    @property
    def schema(self) -> Schema:
        raise NotImplementedError

    def stored_values(self) -> Sequence[object]:
        """Return the fields' values in order, None where there is none; do not change them."""
        raise NotImplementedError

    def validate(self) -> None:
        """Raise DataException unless every field holds a value its schema allows."""
        raise NotImplementedError


class SchemaAndValue(NamedTuple):
    """Value with the schema that describes it; schema None means schemaless data."""

    schema: Schema | None
    value: object


pair_of: Callable[[tuple[Schema | None, object]], SchemaAndValue] = partial(
    tuple.__new__, SchemaAndValue
)
"""Same as `SchemaAndValue(*pair)` in a third of the time, for converters' hot paths."""

NULL = SchemaAndValue(None, None)
"""The schema and value of a Kafka null: neither."""


def renamed_schema(
    schema: Schema,
    *,
    name: str | None,
    version: int | None,
    optional: bool | None = None,
    default: object = None,
) -> Schema:
    """Return the schema with another name, version and default; `optional` None keeps its own.

    There are no checks, so a default that is a Struct, which a builder refuses, is possible.
    """
    is_container = schema.type in {Type.ARRAY, Type.MAP}
    return Schema(
        schema.type,
        optional=schema.optional if optional is None else optional,
        default=default,
        name=name,
        version=version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=schema.fields if schema.type is Type.STRUCT else (),
        key_schema=schema.key_schema if schema.type is Type.MAP else None,
        value_schema=schema.value_schema if is_container else None,
    )


INT8_SCHEMA = Schema(Type.INT8)
INT16_SCHEMA = Schema(Type.INT16)
INT32_SCHEMA = Schema(Type.INT32)
INT64_SCHEMA = Schema(Type.INT64)
FLOAT32_SCHEMA = Schema(Type.FLOAT32)
FLOAT64_SCHEMA = Schema(Type.FLOAT64)
BOOLEAN_SCHEMA = Schema(Type.BOOLEAN)
STRING_SCHEMA = Schema(Type.STRING)
BYTES_SCHEMA = Schema(Type.BYTES)
OPTIONAL_INT8_SCHEMA = Schema(Type.INT8, optional=True)
OPTIONAL_INT16_SCHEMA = Schema(Type.INT16, optional=True)
OPTIONAL_INT32_SCHEMA = Schema(Type.INT32, optional=True)
OPTIONAL_INT64_SCHEMA = Schema(Type.INT64, optional=True)
OPTIONAL_FLOAT32_SCHEMA = Schema(Type.FLOAT32, optional=True)
OPTIONAL_FLOAT64_SCHEMA = Schema(Type.FLOAT64, optional=True)
OPTIONAL_BOOLEAN_SCHEMA = Schema(Type.BOOLEAN, optional=True)
OPTIONAL_STRING_SCHEMA = Schema(Type.STRING, optional=True)
OPTIONAL_BYTES_SCHEMA = Schema(Type.BYTES, optional=True)
