"""Compiles a schema into a function that makes its values from parsed JSON.

Corresponds to `JsonConverter.convertToConnect`. Parsed JSON is the result of `json_text.parse`:
int, Decimal, str, bool, None, list, dict.

Where Apache's converter alters data silently, this one raises DataException:

- numbers beyond the range of the type (Apache keeps the low bits, or reads infinity), and fractions
  for an integer type (Apache cuts them);
- strings and booleans for number types (Apache reads 0), non-strings for STRING (Apache reads
  null), non-booleans for BOOLEAN (Apache reads false), and non-arrays for ARRAY;
- dates and timestamps outside the years 1 to 9999, and the Time 86400000.

Without a schema a number that 64 bits would change is a Decimal (Apache rounds it, or keeps the
low bits). The texts `NaN`, `Infinity` and `-Infinity`, which the writer makes, are read for float
types. Map keys that are arrays become tuples.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from decimal import Decimal
from math import isfinite

from pyconnect_agent.builtin.converters.json_writer import ONE_OF, JsonOptions
from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Schema,
    Struct,
    Type,
)
from pyconnect_api.java_text import decimal_to_float32
from pyconnect_api.logical import (
    date_from_days,
    decimal_from_bytes,
    time_from_milliseconds,
    timestamp_from_milliseconds,
)
from pyconnect_api.validation import INTEGER_RANGES, hashable_key, kept_number

Read = Callable[[object], object]
"""Returns the value of parsed JSON; raises DataException if it does not fit the schema."""

_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def reader_for(schema: Schema | None, options: JsonOptions) -> Read:
    """Return the function that reads values of that schema; None is schemaless data."""
    if schema is None:
        return _schemaless
    logical = _LOGICAL_READERS.get(schema.name or "")
    make = _READERS[schema.type] if logical is None else logical
    read = make(schema, options)
    replaces = schema.default is not None and options.replace_null_with_default
    null_allowed = replaces or schema.optional
    null_value = schema.default if replaces else None
    type_name = schema.type

    def read_or_null(found: object) -> object:
        if found is not None:
            return read(found)
        if null_allowed:
            return null_value
        raise DataException(f"Invalid null value for required {type_name} field")

    return read_or_null


def node_type(found: object) -> str:
    """Return Jackson's name of a JSON value's kind."""
    match found:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int() | Decimal():
            return "NUMBER"
        case str():
            return "STRING"
        case list():
            return "ARRAY"
    return "OBJECT"


def _schemaless(found: object) -> object:
    # Comparing classes takes half the time of matching; the parser makes no subclasses.
    if found.__class__ is str or found is None:
        return found
    if isinstance(found, dict):
        return {name: _schemaless(member) for name, member in found.items()}
    if isinstance(found, list):
        return [_schemaless(element) for element in found]
    if found.__class__ is not bool and isinstance(found, int | Decimal):
        return kept_number(found)
    return found


def _unfit(schema: Schema, found: object) -> DataException:
    return DataException(f"Invalid type for {schema.type}: found {node_type(found)} in the JSON")


def _integer_reader(schema: Schema, _: JsonOptions) -> Read:
    lowest, highest = INTEGER_RANGES[schema.type]

    def read(found: object) -> object:
        if found.__class__ is int and lowest <= found <= highest:
            return found
        if isinstance(found, bool) or not isinstance(found, int | Decimal):
            raise _unfit(schema, found)
        # An exponent can stand for more digits than memory holds.
        if isinstance(found, Decimal) and found.adjusted() > 20:
            raise DataException(f"A number is out of range for {schema.type}")
        number = int(found)
        if number != found:
            raise DataException(f"A number has a fraction, and {schema.type} has none")
        if not lowest <= number <= highest:
            raise DataException(f"A number is out of range for {schema.type}")
        return number

    return read


def _float_reader(schema: Schema, _: JsonOptions) -> Read:
    is_float32 = schema.type is Type.FLOAT32

    def read(found: object) -> object:
        if isinstance(found, bool) or not isinstance(found, int | Decimal):
            value = _NOT_FINITE.get(found) if isinstance(found, str) else None
            if value is None:
                raise _unfit(schema, found)
            return value
        number = decimal_to_float32(Decimal(found)) if is_float32 else float(Decimal(found))
        if not isfinite(number):
            raise DataException(f"A number is out of range for {schema.type}")
        return number

    return read


def _plain_reader(wanted: type) -> Callable[[Schema, JsonOptions], Read]:
    """Return a maker of readers for values that JSON has itself."""

    def reader(schema: Schema, _: JsonOptions) -> Read:
        def read(found: object) -> object:
            if not isinstance(found, wanted):
                raise _unfit(schema, found)
            return found

        return read

    return reader


def _bytes_reader(schema: Schema, _: JsonOptions) -> Read:
    def read(found: object) -> object:
        if not isinstance(found, str):
            raise _unfit(schema, found)
        return _from_base64(found, "Invalid bytes field")

    return read


def _from_base64(text: str, message: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError) as exc:
        raise DataException(f"{message}: {exc}") from exc


def _array_reader(schema: Schema, options: JsonOptions) -> Read:
    read_element = reader_for(schema.value_schema, options)

    def read(found: object) -> object:
        if not isinstance(found, list):
            raise _unfit(schema, found)
        return [read_element(element) for element in found]

    return read


def _map_reader(schema: Schema, options: JsonOptions) -> Read:
    key_schema = schema.key_schema
    read_key = reader_for(key_schema, options)
    read_value = reader_for(schema.value_schema, options)

    def read_object(found: object) -> object:
        if not isinstance(found, dict):
            raise DataException(
                "Maps with string fields should be encoded as JSON objects, but found "
                + node_type(found)
            )
        return {name: read_value(member) for name, member in found.items()}

    def read_pairs(found: object) -> object:
        if not isinstance(found, list):
            raise DataException(
                "Maps with non-string fields should be encoded as JSON array of tuples, but found "
                + node_type(found)
            )
        entries = {}
        for pair in found:
            if not isinstance(pair, list):
                raise DataException(
                    f"Found invalid map entry instead of array tuple: {node_type(pair)}"
                )
            if len(pair) != 2:
                raise DataException(
                    f"Found invalid map entry, expected length 2 but found :{len(pair)}"
                )
            entries[hashable_key(read_key(pair[0]))] = read_value(pair[1])
        return entries

    def read_entries(found: object) -> object:
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise _unfit(schema, found)
        return {
            hashable_key(read_key(entry.get("key"))): read_value(entry.get("value"))
            for entry in found
        }

    is_object = key_schema is None or key_schema.type is Type.STRING
    if options.registry_forms and key_schema is not None and (key_schema.optional or not is_object):
        return read_entries
    return read_object if is_object else read_pairs


def _struct_reader(schema: Schema, options: JsonOptions) -> Read:
    members = [(field.name, reader_for(field.schema, options)) for field in schema.fields]

    def read_one_of(found: object) -> object:
        for index, (_, read_branch) in enumerate(members):
            values: list[object] = [None] * len(members)
            try:
                values[index] = read_branch(found)
            except DataException:
                continue
            return Struct.of_checked(schema, values)
        raise _unfit(schema, found)

    def read(found: object) -> object:
        if not isinstance(found, dict):
            raise DataException(
                f"Structs should be encoded as JSON objects, but found {node_type(found)}"
            )
        member = found.get
        return Struct.of_checked(
            schema, [read_member(member(name)) for name, read_member in members]
        )

    return read_one_of if options.registry_forms and schema.name == ONE_OF else read


def _decimal_reader(schema: Schema, _: JsonOptions) -> Read:
    def read(found: object) -> object:
        if isinstance(found, str):
            return decimal_from_bytes(
                schema, _from_base64(found, "Invalid bytes for Decimal field")
            )
        if isinstance(found, bool) or not isinstance(found, int | Decimal):
            raise DataException(
                "Invalid type for Decimal, underlying representation should be numeric or bytes "
                f"but was {node_type(found)}"
            )
        return Decimal(found)

    return read


def _base_integer(name: str, kind: str, found: object) -> int:
    if isinstance(found, bool) or not isinstance(found, int):
        raise _wrong_base(name, kind, found)
    return found


def _wrong_base(name: str, kind: str, found: object) -> DataException:
    return DataException(
        f"Invalid type for {name}, underlying representation should be {kind} but was "
        f"{node_type(found)}"
    )


def _int32(name: str, found: object) -> int:
    lowest, highest = INTEGER_RANGES[Type.INT32]
    days_or_milliseconds = _base_integer(name, "integer", found)
    if not lowest <= days_or_milliseconds <= highest:
        raise _wrong_base(name, "integer", found)
    return days_or_milliseconds


_READERS: dict[Type, Callable[[Schema, JsonOptions], Read]] = {
    **dict.fromkeys(INTEGER_RANGES, _integer_reader),
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), _float_reader),
    Type.BOOLEAN: _plain_reader(bool),
    Type.STRING: _plain_reader(str),
    Type.BYTES: _bytes_reader,
    Type.ARRAY: _array_reader,
    Type.MAP: _map_reader,
    Type.STRUCT: _struct_reader,
}

_LOGICAL_READERS: dict[str, Callable[[Schema, JsonOptions], Read]] = {
    DECIMAL_NAME: _decimal_reader,
    DATE_NAME: lambda _schema, _options: lambda found: date_from_days(_int32("Date", found)),
    TIME_NAME: lambda _schema, _options: (
        lambda found: time_from_milliseconds(_int32("Time", found))
    ),
    TIMESTAMP_NAME: lambda _schema, _options: (
        lambda found: timestamp_from_milliseconds(_base_integer("Timestamp", "integral", found))
    ),
}
