"""Compiles a Connect schema and a message type into a function that fills messages.

Corresponds to `ProtobufData.fromConnectData`. The message type may be another than the schema's own
(`use.latest.version`): fields are found by name, and one it lacks is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from pyconnect_agent.builtin.converters.protobuf import names
from pyconnect_agent.builtin.converters.protobuf.writing import is_map_field
from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Field,
    Schema,
    Type,
    validate_value,
)
from pyconnect_api.logical import decimal_to_bytes
from pyconnect_api.schema import StructValue

Fill = Callable[[Any, Any], None]
"""Puts a value that is not None into a message."""


def filler(schema: Schema, descriptor: Any) -> Fill:
    """Return the function that fills messages of `descriptor` with structs of `schema`."""
    members: list[tuple[str, bool, Fill]] = []
    for field in schema.fields:
        if (field.schema.name or "").startswith(names.UNION_PREFIX):
            members.append((field.name, True, filler(field.schema, descriptor)))
        else:
            required = not field.schema.optional and field.schema.default is None
            members.append((field.name, not required, _setter(field, descriptor)))

    def fill(message: Any, value: Any) -> None:
        if not isinstance(value, StructValue):
            raise DataException(f"Invalid type for STRUCT: class {type(value).__qualname__}")
        if value.schema is not schema and value.schema != schema:
            raise DataException("Mismatching schema.")
        for field, (name, may_be_missing, put), stored in zip(
            schema.fields, members, value.stored_values(), strict=True
        ):
            found = field.schema.default if stored is None else stored
            if found is not None:
                put(message, found)
            elif not may_be_missing:
                raise DataException(f"Invalid value: null used for required field: {name}")

    return fill


def _setter(field: Field, descriptor: Any) -> Fill:
    target = descriptor.fields_by_name.get(field.name)
    if target is None:
        raise DataException(f"The message {descriptor.full_name} has no field {field.name}")
    name, schema = field.name, field.schema
    if schema.type is Type.ARRAY:
        return _array(name, schema, target)
    if schema.type is Type.MAP:
        return _map(name, schema, target)
    if target.message_type is not None:
        fill = _message(schema, target.message_type)

        def put_message(message: Any, value: Any) -> None:
            # Unset and empty are not the same.
            part = getattr(message, name)
            part.SetInParent()
            fill(part, value)

        return put_message

    def put(message: Any, value: Any) -> None:
        setattr(message, name, validate_value(schema, value, name))

    return put


def _message(schema: Schema, descriptor: Any) -> Fill:
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        return lambda message, value: logical(schema, message, value)
    if schema.type is Type.STRUCT:
        return filler(schema, descriptor)

    def wrap(message: Any, value: Any) -> None:
        message.value = validate_value(schema, value)

    return wrap


def _array(name: str, schema: Schema, target: Any) -> Fill:
    element = schema.value_schema
    assert element is not None
    fill = None if target.message_type is None else _message(element, target.message_type)

    def put(message: Any, value: Any) -> None:
        repeated = getattr(message, name)
        for item in value:
            if item is None:
                raise DataException(f"Protobuf has no nulls in lists, as in field {name}")
            if fill is None:
                repeated.append(validate_value(element, item, name))
            else:
                fill(repeated.add(), item)

    return put


def _map(name: str, schema: Schema, target: Any) -> Fill:
    entry = target.message_type
    key, value_schema = schema.key_schema, schema.value_schema
    assert key is not None
    assert value_schema is not None
    if not is_map_field(schema):
        set_key = _setter(Field("key", 0, key), entry)
        set_value = _setter(Field("value", 1, value_schema), entry)

        def put_entries(message: Any, value: Any) -> None:
            for entry_key, item in value.items():
                added = getattr(message, name).add()
                for put_part, part in ((set_key, entry_key), (set_value, item)):
                    if part is not None:
                        put_part(added, part)

        return put_entries
    value_type = entry.fields_by_name["value"].message_type
    fill = None if value_type is None else _message(value_schema, value_type)

    def put(message: Any, value: Any) -> None:
        entries = getattr(message, name)
        for entry_key, item in value.items():
            if item is None:
                raise DataException(f"Protobuf has no nulls in maps, as in field {name}")
            validate_value(key, entry_key, name)
            if fill is None:
                entries[entry_key] = validate_value(value_schema, item, name)
            else:
                fill(entries[entry_key], item)

    return put


def _decimal(schema: Schema, message: Any, value: Any) -> None:
    if not isinstance(value, Decimal):
        raise DataException(f"Invalid type for Decimal: class {type(value).__qualname__}")
    message.value = decimal_to_bytes(schema, value)
    parameters = schema.parameters or {}
    precision = parameters.get("connect.decimal.precision", names.DEFAULT_PRECISION)
    message.precision = int(precision)
    message.scale = int(parameters["scale"])


def _date(_: Schema, message: Any, value: Any) -> None:
    if not isinstance(value, date):
        raise DataException(f"Invalid type for Date: class {type(value).__qualname__}")
    message.year, message.month, message.day = value.year, value.month, value.day


def _time(_: Schema, message: Any, value: Any) -> None:
    if not isinstance(value, time):
        raise DataException(f"Invalid type for Time: class {type(value).__qualname__}")
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond // 1000 * 1_000_000


def _timestamp(schema: Schema, message: Any, value: Any) -> None:
    moment = validate_value(schema, value)
    assert isinstance(moment, datetime)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    message.seconds = delta.days * 86_400 + delta.seconds
    message.nanos = delta.microseconds // 1000 * 1_000_000


_LOGICAL: dict[str, Callable[[Schema, Any, Any], None]] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: _date,
    TIME_NAME: _time,
    TIMESTAMP_NAME: _timestamp,
}
