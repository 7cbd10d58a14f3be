"""Values of records as JSON: structs and maps are objects, bytes base64, times ISO 8601.

JSON has no NaN, no infinities and no lone surrogates: they are null or an error, as
`values.out.of.range` says.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec

from pyconnect_api import DECIMAL_NAME, SinkRecord, Struct, Type
from pyconnect_api.java_text import double_text
from pyconnect_connectors.odd_values import OddValue, OddValues, required_default

_ENCODER = msgspec.json.Encoder(decimal_format="number")
json_of = _ENCODER.encode
"""The function that encodes the result of `plain`."""
_CHECKED = (Type.ARRAY, Type.MAP, Type.STRUCT, Type.FLOAT32, Type.FLOAT64)


def json_lines(records: Sequence[SinkRecord], policy: OddValues, place: str) -> bytes:
    """Return a line for the value of each record; DataException if one has no JSON form."""
    schema = records[0].value_schema
    # A struct of such fields needs no conversion of its values.
    is_plain = (
        schema is not None
        and schema.type is Type.STRUCT
        and not any(
            field.schema.type in _CHECKED
            or field.schema.name == DECIMAL_NAME
            or required_default(field.schema) is not None
            for field in schema.fields
        )
        and all([record.value_schema is schema for record in records])  # noqa: C419  hot
    )
    try:
        if schema is None or not is_plain:
            return _ENCODER.encode_lines([plain(r.value, OddValues.FAIL) for r in records])
        names = [field.name for field in schema.fields]
        stored: list[Any] = [record.value for record in records]
        return _ENCODER.encode_lines(
            [dict(zip(names, value.stored_values(), strict=True)) for value in stored]
        )
    except (OddValue, TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        lines = []
        for record in records:
            try:
                lines.append(bytes(json_of(plain(record.value, policy))) + b"\n")
            except OddValue as odd:
                raise odd.of(record, place) from None
            except RecursionError:
                kind = "a value that is nested too deeply"
                raise OddValue("", kind, "JSON").of(record, place) from None
        return b"".join(lines)


def plain(value: Any, policy: OddValues) -> Any:
    """Return a value in types that JSON has; raise OddValue for a part that JSON does not have."""
    match value:
        case str():
            return value if value.isascii() else _text(value, policy)
        case None | bool() | int() | date() | time():
            return value
        case float():
            return value if isfinite(value) else _null(policy, "NaN or infinity")
        case Struct():
            return {
                field.name: _member(
                    field.name, required_default(field.schema) if each is None else each, policy
                )
                for field, each in zip(value.schema.fields, value.stored_values(), strict=True)
            }
        case Mapping():
            found = {}
            for key, each in value.items():
                name = _name(key)
                found[name] = _member(name, each, policy)
            if len(found) < len(value):
                raise OddValue("", "a map with two keys of one text", "JSON")
            return found
        case list() | tuple():
            return [plain(element, policy) for element in value]
        case Decimal():
            return value if value.is_finite() else _null(policy, "NaN or infinity")
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
    raise OddValue("", f"a value of class {type(value).__name__}", "JSON")


def _member(name: str, value: Any, policy: OddValues) -> Any:
    try:
        return plain(value, policy)
    except OddValue as odd:
        raise odd.within(name) from None


def _text(value: str, policy: OddValues) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return _null(policy, "a lone surrogate")
    return value


def _null(policy: OddValues, kind: str) -> str | None:
    """Return None if the policy is `null`, or raise OddValue."""
    if policy is OddValues.NULL:
        return None
    raise OddValue("", kind, "JSON")


def _name(key: Any) -> str:
    """Return a map's key as the name of a member; a name is never null."""
    match key:
        case str():
            return str(_text(key, OddValues.FAIL))
        case bool():
            return "true" if key else "false"
        case int():
            return str(key)
        case float():
            return double_text(key)
        case Decimal():
            return f"{key:f}"
        case datetime():
            return key.isoformat().replace("+00:00", "Z")
        case date() | time():
            return key.isoformat()
        case bytes():
            return b64encode(key).decode()
    raise OddValue("", f"a key of class {type(key).__name__}", "JSON")
