"""`org.apache.kafka.connect.transforms.Cast`: other primitive types for fields or a whole value.

A field loses its schema's name. Unlike in Kafka, a whole value of a logical type loses it too,
because the new value is not of that type. Single values are cast as Java casts them (`castTo…`):

| from      | to integers                    | to floats     | to boolean      | to string |
|-----------|--------------------------------|---------------|-----------------|-----------|
| integer   | low bits                       | nearest       | not 0           | digits    |
| float     | cut, limited to 32 or 64 bits  | nearest       | not 0 when cut  | Java's    |
| Decimal   | cut, low bits                  | nearest       | not 0 when cut  | Java's    |
| boolean   | 1, 0                           | 1.0, 0.0      | itself          | name      |
| string    | digits in the type's range     | Java's syntax | is it `true`?   | itself    |
| bytes     | refused                        | refused       | refused         | base64    |

Temporals are cast as days or milliseconds, to a string as their ISO text. Error messages do not
contain the value that failed, because records' values must not be in logs (Kafka's messages do).
"""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import partial
from math import isfinite, isnan, trunc

from pyconnect_agent.builtin.transforms.base import (
    OneSideTransformation,
    Options,
    SchemaWithValue,
    both_sides,
    split_at_colons,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.schemas import (
    ChangedStruct,
    SchemaCache,
    copied_basics,
    require_map,
    require_struct,
)
from pyconnect_api import (
    ConfigException,
    ConnectRecord,
    DataException,
    LambdaValidator,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
)
from pyconnect_api.configdef import invalid_value
from pyconnect_api.java_text import base64_text, decimal_to_float32, to_string
from pyconnect_api.logical import SCALE_PARAMETER, from_logical, is_logical
from pyconnect_api.schema import DATE_NAME, TIME_NAME, TIMESTAMP_NAME, renamed_schema
from pyconnect_api.validation import INTEGER_RANGES, to_float32
from pyconnect_api.values import convert_to_long

OUTPUT_TYPES = (*INTEGER_RANGES, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING)
INPUT_TYPES = (*OUTPUT_TYPES, Type.BYTES)

_TEMPORAL_NAMES = frozenset({DATE_NAME, TIME_NAME, TIMESTAMP_NAME})
_BLANKS = "".join(map(chr, range(0x21)))
_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(
    r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
    r"|([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_FLOAT_WORD = re.compile(r"[+-]?(?:NaN|Infinity)[fFdD]")
_EXACT_IN_FLOAT64 = 2**53

ValueCast = Callable[[object], object]
"""Casts a value that is not None."""


def schema_cast(schema: Schema, target: Type) -> ValueCast:
    """Return the cast of values of that schema; raise DataException if none exists."""
    _check_input(schema.type)
    if target is Type.STRING:
        return lambda value: to_string(schema, value, base64_text)
    cast = _CASTS[target]
    if schema.name in _TEMPORAL_NAMES:
        return lambda value: cast(from_logical(schema, value))
    return cast


def schemaless_cast(target: Type) -> ValueCast:
    """Return the cast of values without a schema; it refuses values that are not of basic types."""
    cast: ValueCast = (
        _CASTS[target]
        if target is not Type.STRING
        else lambda value: to_string(None, value, base64_text)
    )

    def checked(value: object) -> object:
        if value.__class__ not in _BASIC_CLASSES:
            inferred = next((kind for cls, kind in _INFERRED if isinstance(value, cls)), None)
            if inferred is None:
                raise DataException(
                    f"Cast transformation was passed a value of type class "
                    f"{type(value).__qualname__} which is not supported by Connect's data API"
                )
            _check_input(inferred)
        return cast(value)

    return checked


def _check_input(source: Type) -> None:
    if source not in INPUT_TYPES:
        raise DataException(
            f"Cast transformation does not support casting from {source}; "
            f"supported types are {types_text(INPUT_TYPES)}"
        )


def types_text(types: tuple[Type, ...]) -> str:
    """Return a list of types as error messages show it."""
    return f"[{', '.join(map(str, types))}]"


def _integer_cast(target: Type) -> ValueCast:
    """Return the cast to an integer type; it looks first for integers, the most frequent input."""
    lowest, highest = INTEGER_RANGES[target]
    floats_lowest, floats_highest = INTEGER_RANGES[
        Type.INT64 if target is Type.INT64 else Type.INT32
    ]

    def narrowed(number: int) -> int:
        if lowest <= number <= highest:
            return number
        return (number - lowest & (highest - lowest)) + lowest

    def cast(value: object) -> object:
        match value:
            case int() if value.__class__ is not bool:
                return narrowed(value)
            case bool():
                return 1 if value else 0
            case str():
                try:
                    number = int(value) if _INTEGER.fullmatch(value) else None
                except ValueError:  # more digits than Python reads
                    number = None
                if number is None or not lowest <= number <= highest:
                    raise _out_of_range(target)
                return number
            case float():
                if isnan(value):
                    return 0
                limited = max(floats_lowest, min(floats_highest, value))
                return narrowed(trunc(limited))
            case Decimal():
                return narrowed(convert_to_long(None, value) or 0)
        raise _unexpected(value)

    return cast


def _to_float64(value: object) -> object:
    match value:
        case bool():
            return 1.0 if value else 0.0
        case int() | float() | Decimal():
            return float(value)
        case str():
            return _parsed_float64(value, Type.FLOAT64)
    raise _unexpected(value)


def _to_float32(value: object) -> object:
    match value:
        case bool():
            return 1.0 if value else 0.0
        case float():
            return to_float32(value)
        case int() if abs(value) <= _EXACT_IN_FLOAT64:
            return to_float32(float(value))
        case int() | Decimal():
            return decimal_to_float32(Decimal(value))
        case str():
            nearest = _parsed_float64(value, Type.FLOAT32)
            if not isfinite(nearest) or nearest == 0:
                return nearest
            try:
                # The text of the number is used, so that it is rounded only once.
                return decimal_to_float32(Decimal(value.strip(_BLANKS).rstrip("fFdD")))
            except InvalidOperation:
                return to_float32(nearest)
    raise _unexpected(value)


def _parsed_float64(text: str, target: Type) -> float:
    trimmed = text.strip(_BLANKS)
    match = _FLOAT.fullmatch(trimmed)
    if match is None or _FLOAT_WORD.fullmatch(trimmed):
        raise _out_of_range(target)
    decimal, hexadecimal = match.groups()
    if hexadecimal is None:
        return float(decimal)
    try:
        return float.fromhex(hexadecimal)
    except OverflowError:
        return float("-inf" if hexadecimal.startswith("-") else "inf")


def _to_boolean(value: object) -> object:
    match value:
        case bool():
            return value
        case int():
            return value != 0
        case float():
            return not isnan(value) and abs(value) >= 1
        case Decimal():
            return convert_to_long(None, value) != 0
        case str():
            return value.lower() == "true"
    raise _unexpected(value)


def _out_of_range(target: Type) -> DataException:
    return DataException(f"Value was out of range for requested data type {target}")


def _unexpected(value: object) -> DataException:
    return DataException(
        f"Unexpected type in Cast transformation: class {type(value).__qualname__}"
    )


_BASIC_CLASSES = frozenset({int, float, bool, str, bytes})
_INFERRED = (
    (list | tuple, Type.ARRAY),
    (dict, Type.MAP),
    (Struct, Type.STRUCT),
    (bytearray | memoryview, Type.BYTES),
)
"""The types that Kafka infers for schemaless values outside the basic classes."""

_CASTS: dict[Type, ValueCast] = {
    **{kind: _integer_cast(kind) for kind in INTEGER_RANGES},
    Type.FLOAT32: _to_float32,
    Type.FLOAT64: _to_float64,
    Type.BOOLEAN: _to_boolean,
}

SPEC = "spec"
_PURPOSE = "cast types"
_TABLE = """
spec  LIST  HIGH  !
    Fields and their new types as field:type, or one type for the whole value. Types are int8,
    int16, int32, int64, float32, float64, boolean and string; binary data can become a string only
    (base64).
"""


def _parsed_spec(entries: object) -> dict[str | None, Type]:
    """Return target types by field; the key None means the whole value."""
    if not entries:
        raise ConfigException("Must specify at least one field to cast.")
    assert isinstance(entries, list)
    targets: dict[str | None, Type] = {}
    for entry in entries:
        parts = split_at_colons(entry)
        if len(parts) not in {1, 2}:
            # This is Kafka's text, which names another transformation.
            raise invalid_value("renames", entries, f"Invalid rename mapping: {entry}")
        field = parts[0].strip() if len(parts) == 2 else None
        target = Type.__members__.get(parts[-1].strip().upper())
        if target is None:
            raise ConfigException(f"Invalid type found in casting spec: {parts[-1].strip()}")
        if target not in OUTPUT_TYPES:
            raise ConfigException(
                f"Cast transformation does not support casting to {target}; "
                f"supported types are {types_text(OUTPUT_TYPES)}"
            )
        targets[field] = target
    if None in targets and len(entries) > 1:
        raise ConfigException(
            "Cast transformations that specify a type to cast the entire value to may only "
            "specify a single cast in their spec"
        )
    return targets


class Cast(OneSideTransformation):
    """Casts the fields of a struct or map, or the whole value, to the types in `spec`."""

    KEEPS_NONE = True
    CONFIG_DEF = with_null_key(
        _TABLE,
        {
            SPEC: LambdaValidator(
                lambda _, value: _parsed_spec(value), "list of pairs field:type, e.g. foo:int32"
            )
        },
    )

    _targets: dict[str, Type]
    _map_casts: tuple[tuple[str, ValueCast], ...]
    _whole_map_cast: ValueCast | None
    _struct_casts: SchemaCache[ChangedStruct]
    _whole_casts: SchemaCache[tuple[Schema, ValueCast]] | None

    def configured(self, options: Options) -> None:
        targets = _parsed_spec(options.values[SPEC])
        whole_target = targets.get(None)
        self._targets = {name: target for name, target in targets.items() if name is not None}
        self._map_casts = tuple(
            (name, schemaless_cast(target)) for name, target in self._targets.items()
        )
        self._whole_map_cast = None if whole_target is None else schemaless_cast(whole_target)
        self._struct_casts = SchemaCache(self._casts_for)
        self._whole_casts = None
        if whole_target is not None:
            self._whole_casts = SchemaCache(partial(_whole_cast, whole_target))

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        if self._whole_map_cast is not None:
            return self._whole_map_cast(value)
        updated = dict(require_map(value, _PURPOSE))
        for name, cast in self._map_casts:
            found = updated.get(name)
            updated[name] = None if found is None else cast(found)
        return updated

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        if self._whole_casts is not None:
            target, cast = self._whole_casts.of(schema)
            return target, cast(value)
        struct = require_struct(value, _PURPOSE)
        updated = self._struct_casts.of(struct.schema).struct(struct)
        return updated.schema, updated

    def _casts_for(self, schema: Schema) -> ChangedStruct:
        changes: dict[str, tuple[Schema, ValueCast]] = {}
        for name, target in self._targets.items():
            field = schema.field(name)
            if field is not None:
                cast = _deferred(field.schema, target)
                # Only the optionality and the default are kept, and the default is cast as well.
                builder = SchemaBuilder(target)
                if field.schema.optional:
                    builder.optional()
                if field.schema.default is not None:
                    builder.default(cast(field.schema.default))
                changes[name] = (builder.build(), cast)
        return ChangedStruct(schema, changes, replace_null_with_default=self.with_default)


def _deferred(schema: Schema, target: Type) -> ValueCast:
    """Return the cast; a missing one fails with the first value only, as in Kafka."""
    try:
        return schema_cast(schema, target)
    except DataException as error:
        refusal = error

    def refuse(_value: object) -> object:
        raise DataException(*refusal.args)

    return refuse


def _whole_cast(target: Type, schema: Schema) -> tuple[Schema, ValueCast]:
    """Return the schema that whole values of `schema` get, and their cast."""
    cast = _deferred(schema, target)
    basics = copied_basics(schema, SchemaBuilder(target)).build()
    if is_logical(schema):
        parameters = dict(schema.parameters or {})
        parameters.pop(SCALE_PARAMETER, None)
        basics = Schema(target, doc=schema.doc, parameters=parameters)
    default = None if schema.default is None else cast(schema.default)
    described = renamed_schema(
        basics, name=basics.name, version=basics.version, optional=schema.optional, default=default
    )
    return described, cast


CastKey, CastValue = both_sides(Cast)
