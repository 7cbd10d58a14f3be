"""Compiles a schema into a function that writes its values as JSON text.

Corresponds to `JsonConverter.convertToJson`. The function is compiled once per schema, because
member names then are quoted and escaped only once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from pyconnect_agent.core.java_text import json_text
from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Schema,
    Type,
    java_text,
)
from pyconnect_api.logical import (
    date_to_days,
    decimal_to_bytes,
    time_to_milliseconds,
    timestamp_to_milliseconds,
)
from pyconnect_api.schema import StructValue
from pyconnect_api.validation import INTEGER_RANGES

Write = Callable[[object], str]
"""Returns the JSON text of a value; raises DataException if it does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """The options of writing and reading values.

    `decimals_as_numbers`: `decimal.format` is NUMERIC rather than BASE64 (writing only).
    `replace_null_with_default`: None stands for the schema's default, if it has one.
    `registry_forms`: entries of maps without text keys are objects of `key` and `value`, and a
    struct named ONE_OF is the one of its fields that has a value, as Confluent's converter has it.
    """

    decimals_as_numbers: bool = False
    replace_null_with_default: bool = True
    registry_forms: bool = False


ONE_OF = "io.confluent.connect.json.OneOf"


def writer_for(schema: Schema | None, options: JsonOptions) -> Write:
    """Return the function that writes values of that schema; None is schemaless data."""
    if schema is None:
        return json_text.text_of
    write = _value_writer(schema, options)
    required = schema  # what the closure keeps is not None

    def write_or_null(value: object) -> str:
        if value is not None:
            return write(value)
        if required.default is not None and options.replace_null_with_default:
            return write(required.default)
        if required.optional:
            return "null"
        raise DataException(
            "Conversion error: null value for field that is required and has no default value"
        )

    return write_or_null


def _value_writer(schema: Schema, options: JsonOptions) -> Write:
    """Return the function that writes values other than None."""
    logical = _LOGICAL_WRITERS.get(schema.name or "")
    if logical is not None:
        return logical(schema, options)
    return _WRITERS[schema.type](schema, options)


def _unfit(schema: Schema, value: object) -> DataException:
    return DataException(f"Invalid type for {schema.type}: class {type(value).__qualname__}")


def _integer_writer(schema: Schema, _: JsonOptions) -> Write:
    lowest, highest = INTEGER_RANGES[schema.type]

    def write(value: object) -> str:
        if value.__class__ is bool or not isinstance(value, int):
            raise _unfit(schema, value)
        if not lowest <= value <= highest:
            raise DataException(f"Invalid value for {schema.type}: it is out of range")
        return int.__repr__(value)

    return write


def _plain_writer(
    wanted: type, text: Callable[[Any], str]
) -> Callable[[Schema, JsonOptions], Write]:
    """Return a maker of writers for values of that class."""

    def writer(schema: Schema, _: JsonOptions) -> Write:
        def write(value: object) -> str:
            if not isinstance(value, wanted):
                raise _unfit(schema, value)
            return text(value)

        return write

    return writer


def _bytes_writer(schema: Schema, _: JsonOptions) -> Write:
    def write(value: object) -> str:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _unfit(schema, value)
        return f'"{java_text.base64_text(value)}"'

    return write


def _array_writer(schema: Schema, options: JsonOptions) -> Write:
    write_element = writer_for(schema.value_schema, options)

    def write(value: object) -> str:
        if not isinstance(value, list | tuple):
            raise _unfit(schema, value)
        return f"[{','.join(map(write_element, value))}]"

    return write


def _map_writer(schema: Schema, options: JsonOptions) -> Write:
    if schema.key_schema is None:
        return json_text.text_of
    write_key = writer_for(schema.key_schema, options)
    write_value = writer_for(schema.value_schema, options)
    # A None key of an optional string has the text `null`, which becomes the member's name.
    null_name = '"null"'

    before_key, between, after = (
        ('{"key":', ',"value":', "}") if options.registry_forms else ("[", ",", "]")
    )

    def write_object(value: object) -> str:
        if not isinstance(value, dict):
            raise _unfit(schema, value)
        members = []
        for key, member in value.items():
            name = write_key(key)
            members.append(f"{null_name if name == 'null' else name}:{write_value(member)}")
        return f"{{{','.join(members)}}}"

    def write_pairs(value: object) -> str:
        if not isinstance(value, dict):
            raise _unfit(schema, value)
        pairs = [
            f"{before_key}{write_key(key)}{between}{write_value(member)}{after}"
            for key, member in value.items()
        ]
        return f"[{','.join(pairs)}]"

    is_object = schema.key_schema.type is Type.STRING
    if options.registry_forms:
        is_object = is_object and not schema.key_schema.optional
    return write_object if is_object else write_pairs


def _struct_writer(schema: Schema, options: JsonOptions) -> Write:
    if options.registry_forms and schema.name == ONE_OF:
        branches = [_value_writer(field.schema, options) for field in schema.fields]

        def write_branch(value: object) -> str:
            if not isinstance(value, StructValue):
                raise _unfit(schema, value)
            for branch, stored in zip(branches, value.stored_values(), strict=True):
                if stored is not None:
                    return branch(stored)
            raise DataException(f"No field of {schema} has a value")

        return write_branch
    members = [
        (
            f"{',' if field.index else ''}{json_text.string_text(field.name)}:",
            writer_for(field.schema, options),
        )
        for field in schema.fields
    ]

    def write(value: object) -> str:
        if not isinstance(value, StructValue):
            raise _unfit(schema, value)
        if value.schema != schema:
            raise DataException("Mismatching schema.")
        texts = [
            name + write_member(member)
            for (name, write_member), member in zip(members, value.stored_values(), strict=True)
        ]
        return f"{{{''.join(texts)}}}"

    return write


def _decimal_writer(schema: Schema, options: JsonOptions) -> Write:
    def write(value: object) -> str:
        if not isinstance(value, Decimal):
            raise DataException(
                "Invalid type for Decimal, expected Decimal but was "
                f"class {type(value).__qualname__}"
            )
        if not value.is_finite():
            raise DataException(f"Invalid value for Decimal: {value} is not finite")
        if options.decimals_as_numbers:
            return java_text.decimal_text(value)
        return f'"{java_text.base64_text(decimal_to_bytes(schema, value))}"'

    return write


def _moment_writer(
    name: str, wanted: type, number: Callable[[Any], int]
) -> Callable[[Schema, JsonOptions], Write]:
    def write(value: object) -> str:
        if not isinstance(value, wanted):
            raise DataException(
                f"Invalid type for {name}, expected {wanted.__name__} but was "
                f"class {type(value).__qualname__}"
            )
        return str(number(value))

    return lambda _schema, _options: write


_WRITERS: dict[Type, Callable[[Schema, JsonOptions], Write]] = {
    **dict.fromkeys(INTEGER_RANGES, _integer_writer),
    Type.FLOAT32: _plain_writer(float, json_text.float_text),
    Type.FLOAT64: _plain_writer(float, json_text.double_text),
    Type.BOOLEAN: _plain_writer(bool, {True: "true", False: "false"}.__getitem__),
    Type.STRING: _plain_writer(str, json_text.string_text),
    Type.BYTES: _bytes_writer,
    Type.ARRAY: _array_writer,
    Type.MAP: _map_writer,
    Type.STRUCT: _struct_writer,
}

_LOGICAL_WRITERS: dict[str, Callable[[Schema, JsonOptions], Write]] = {
    DECIMAL_NAME: _decimal_writer,
    DATE_NAME: _moment_writer("Date", date, date_to_days),
    TIME_NAME: _moment_writer("Time", time, time_to_milliseconds),
    TIMESTAMP_NAME: _moment_writer("Timestamp", datetime, timestamp_to_milliseconds),
}
