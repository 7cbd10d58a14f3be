"""Text of values as Java writes them: numbers, temporals, collections.

Corresponds to `Float.toString`, `Double.toString`, `BigDecimal.toString` and `toString` of Java's
collections and of `Struct`. Needed wherever text or bytes are compared with a Java worker's.

Floating point numbers get the shortest digits that identify the value, as Java 19 and later
write them. Java 17 gives some numbers more digits (2e23 is written `1.9999999999999998E23`,
1e23 `9.999999999999999E22`; JDK-4511638): readers get the same number, but the text differs.
"""

from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import isfinite, isnan, nextafter
from struct import Struct as BinaryLayout

from pyconnect_api.errors import DataException
from pyconnect_api.logical import timestamp_from_milliseconds, timestamp_to_milliseconds
from pyconnect_api.schema import Schema, StructValue, Type
from pyconnect_api.validation import to_float32

_BINARY64 = BinaryLayout(">d")
_BINARY64_BITS = BinaryLayout(">Q")
_SMALLEST_NORMAL_FLOAT32 = 2.0**-126


def double_text(value: float) -> str:
    """Return the result of `Double.toString` of Java 19 or later."""
    magnitude = abs(value)
    if 1e-3 <= magnitude < 1e7 or magnitude == 0:
        return repr(value)
    if not isfinite(value):
        return _not_finite_text(value)
    text = repr(value)
    if len(text.partition("e")[0].lstrip("-")) == 1:
        # Java takes the nearest of the two-digit texts, not the one that ends in 0.
        text = f"{value:.1e}"
    return _scientific(Decimal(text))


def float_text(value: float) -> str:
    """Return the result of `Float.toString` of Java 19 or later for a binary32 value."""
    if not isfinite(value):
        return _not_finite_text(value)
    if value == 0:
        return repr(value)
    digits = _shortest_float32(value)
    if 1e-3 <= abs(value) < 1e7:
        text = f"{digits:f}"
        return text if "." in text else text + ".0"
    return _scientific(digits)


def decimal_text(value: Decimal) -> str:
    """Return the result of `BigDecimal.toString`; a negative zero becomes zero."""
    return str(abs(value)) if value.is_zero() else str(value)


def decimal_to_float32(value: Decimal) -> float:
    """Return the binary32 value nearest to the decimal, without rounding twice."""
    nearest = float(value)
    if not isfinite(nearest):
        return nearest
    exact = Decimal(nearest)
    if exact == value:
        return to_float32(nearest)
    # Round to odd first, so that the second rounding cannot mistake it for a tie.
    # Not `abs`, which rounds to the context's precision.
    if exact.copy_abs() > value.copy_abs():
        nearest = nextafter(nearest, 0.0)
    bits = _BINARY64_BITS.unpack(_BINARY64.pack(nearest))[0] | 1
    odd: float = _BINARY64.unpack(_BINARY64_BITS.pack(bits))[0]
    return to_float32(odd)


def temporal_text(value: date | time | datetime) -> str:
    """Return `yyyy-MM-dd`, `HH:mm:ss.SSSZ` or `yyyy-MM-ddTHH:mm:ss.SSSZ`, in UTC."""
    if isinstance(value, datetime):
        utc = timestamp_from_milliseconds(timestamp_to_milliseconds(value))
        return f"{utc.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
    if isinstance(value, date):
        return value.isoformat()
    return f"{value.isoformat(timespec='milliseconds')}Z"


def base64_text(value: bytes | bytearray | memoryview) -> str:
    """Return the padded base64 text of the bytes."""
    return b64encode(value).decode("ascii")


def refuse_bytes(value: bytes) -> str:
    """Raise DataException: Java's text of bytes is a memory address."""
    raise DataException(
        f"Bytes have no text form ({len(value)} bytes); use the ByteArrayConverter for them"
    )


def to_string(
    schema: Schema | None, value: object, bytes_text: Callable[[bytes], str] = refuse_bytes
) -> str:
    """Return the result of `toString` of the value's Java class.

    Differs from Java for temporals (see `temporal_text`) and bytes, whose text `bytes_text` makes.
    Texts of members and elements are neither quoted nor escaped.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int():
            return str(value)
        case float():
            is_float32 = schema is not None and schema.type is Type.FLOAT32
            return float_text(value) if is_float32 else double_text(value)
        case bytes() | bytearray() | memoryview():
            return bytes_text(bytes(value))
        case list() | tuple():
            element_schema = part_schema(schema, Type.ARRAY)
            return f"[{', '.join(to_string(element_schema, e, bytes_text) for e in value)}]"
        case dict():
            value_schema = part_schema(schema, Type.MAP)
            is_map = schema is not None and schema.type is Type.MAP
            key_schema = schema.key_schema if schema is not None and is_map else None
            entries = (
                f"{to_string(key_schema, k, bytes_text)}={to_string(value_schema, v, bytes_text)}"
                for k, v in value.items()
            )
            return f"{{{', '.join(entries)}}}"
        case StructValue():
            members = (
                f"{field.name}={to_string(field.schema, member, bytes_text)}"
                for field, member in zip(value.schema.fields, value.stored_values(), strict=True)
                if member is not None
            )
            return f"Struct{{{','.join(members)}}}"
        case Decimal():
            return decimal_text(value)
        case date() | time():
            return temporal_text(value)
    raise DataException(f"A value of class {type(value).__qualname__} has no text form")


def part_schema(schema: Schema | None, expected: Type) -> Schema | None:
    """Return the schema of elements or values, None unless the schema is of that type."""
    return None if schema is None or schema.type is not expected else schema.value_schema


def _not_finite_text(value: float) -> str:
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _scientific(digits: Decimal) -> str:
    """Return `d.dddE±n` with at least one digit after the point and no plus sign."""
    sign, figures, _ = digits.as_tuple()
    text = "".join(map(str, figures)).rstrip("0") or "0"
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{digits.adjusted()}"


def _shortest_float32(value: float) -> Decimal:
    """Return the shortest decimal that reads back as this binary32 value."""
    # A normal value has at least 6 significant decimal digits, so shorter ones show as zeros.
    first, exact = 6 if abs(value) >= _SMALLEST_NORMAL_FLOAT32 else 1, Decimal(value)
    for precision in range(first, 9):
        # The decimals of that precision next to the value, the nearest first.
        around = [
            Context(prec=precision, rounding=rounding).plus(exact)
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        ]
        for candidate in sorted(around, key=lambda candidate: abs(candidate - exact)):
            if decimal_to_float32(candidate) == value:
                if precision == 1:
                    return Decimal(f"{value:.1e}")
                return candidate.normalize()
    return Decimal(f"{value:.8e}").normalize()
