"""Logical types: Decimal, Date, Time and Timestamp on top of BYTES, INT32 and INT64.

Corresponds to `org.apache.kafka.connect.data.Decimal`, `Date`, `Time` and `Timestamp`. Only the
name of a schema makes its type logical.

| name      | base  | Python value                      | base value                             |
|-----------|-------|-----------------------------------|----------------------------------------|
| Decimal   | BYTES | `Decimal`, scale as the schema's  | unscaled, big-endian two's complement  |
| Date      | INT32 | `date`                            | days since 1970-01-01                  |
| Time      | INT32 | `time`, naive                     | milliseconds since midnight            |
| Timestamp | INT64 | `datetime`, aware, kept in UTC    | milliseconds since the epoch           |

Digits below a millisecond are cut, towards the past.
"""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from pyconnect_api.errors import DataException
from pyconnect_api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema
from pyconnect_api.schema_builder import SchemaBuilder

SCALE_PARAMETER = "scale"
MILLISECONDS_PER_DAY = 86_400_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MILLISECOND = timedelta(milliseconds=1)
_LOGICAL_NAMES = frozenset({DECIMAL_NAME, DATE_NAME, TIME_NAME, TIMESTAMP_NAME})


def decimal_builder(scale: int) -> SchemaBuilder:
    """Start a Decimal schema; `scale` digits follow the point, or zeros precede it if negative."""
    return (
        SchemaBuilder.bytes().name(DECIMAL_NAME).parameter(SCALE_PARAMETER, str(scale)).version(1)
    )


def date_builder() -> SchemaBuilder:
    return SchemaBuilder.int32().name(DATE_NAME).version(1)


def time_builder() -> SchemaBuilder:
    return SchemaBuilder.int32().name(TIME_NAME).version(1)


def timestamp_builder() -> SchemaBuilder:
    return SchemaBuilder.int64().name(TIMESTAMP_NAME).version(1)


def decimal_schema(scale: int) -> Schema:
    """Return the required Decimal schema of that scale."""
    return decimal_builder(scale).build()


DATE_SCHEMA = date_builder().build()
TIME_SCHEMA = time_builder().build()
TIMESTAMP_SCHEMA = timestamp_builder().build()


def is_logical(schema: Schema | None) -> bool:
    """Return whether the schema is of one of the four logical types."""
    return schema is not None and schema.name in _LOGICAL_NAMES


def from_logical(schema: Schema, value: object) -> bytes | int:
    """Return the base value (bytes or int) of a logical value.

    DataException when the value is not of the schema's logical type or scale.
    """
    match schema.name, value:
        case str(name), Decimal() if name == DECIMAL_NAME:
            return decimal_to_bytes(schema, value)
        case str(name), datetime() if name == TIMESTAMP_NAME:
            return timestamp_to_milliseconds(value)
        case str(name), date() if name == DATE_NAME:
            return date_to_days(value)
        case str(name), time() if name == TIME_NAME:
            return time_to_milliseconds(value)
    raise DataException(
        f"Requested conversion of a {type(value).__qualname__} object but the schema does not "
        f"match: {schema}"
    )


def to_logical(schema: Schema, value: object) -> Decimal | date | time | datetime:
    """Return the logical value of a base value; DataException when there is none."""
    match schema.name, value:
        case str(name), bytes() if name == DECIMAL_NAME:
            return decimal_from_bytes(schema, value)
        case str(name), int() if name == TIMESTAMP_NAME:
            return timestamp_from_milliseconds(value)
        case str(name), int() if name == DATE_NAME:
            return date_from_days(value)
        case str(name), int() if name == TIME_NAME:
            return time_from_milliseconds(value)
    raise DataException(
        f"Requested conversion of a {type(value).__qualname__} object but the schema does not "
        f"match: {schema}"
    )


def decimal_scale(value: Decimal) -> int:
    """Return the number of digits after the point; negative for zeros before the point."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise DataException(f"Decimal value {value} is not finite and has no scale")
    return -exponent


def scale_of(schema: Schema) -> int:
    """Return the scale a Decimal schema declares."""
    text = None if schema.parameters is None else schema.parameters.get(SCALE_PARAMETER)
    if text is None:
        raise DataException("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError as exc:
        raise DataException(f"Invalid scale parameter found in Decimal schema: {text}") from exc


def decimal_to_bytes(schema: Schema, value: Decimal) -> bytes:
    """Return the unscaled value as the shortest big-endian two's complement."""
    schema_scale, value_scale = scale_of(schema), decimal_scale(value)
    if value_scale != schema_scale:
        raise DataException(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {schema_scale}, value has scale {value_scale}."
        )
    return unscaled_bytes(unscaled_value(value))


def decimal_from_bytes(schema: Schema, data: bytes) -> Decimal:
    """Return the decimal whose unscaled value these bytes are."""
    if not data:
        raise DataException("Invalid bytes for Decimal field: no bytes")
    return decimal_of(int.from_bytes(data, "big", signed=True), scale_of(schema))


def unscaled_value(value: Decimal) -> int:
    """Return the digits of the value as an integer."""
    sign, digits, _ = value.as_tuple()
    # Through text: the default context of Decimal arithmetic would round beyond 28 digits.
    magnitude = int("".join(map(str, digits)) or "0")
    return -magnitude if sign else magnitude


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return unscaled * 10^-scale with exactly that scale, for any number of digits."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((1 if unscaled < 0 else 0, digits, -scale))


def unscaled_bytes(unscaled: int) -> bytes:
    """Return the shortest big-endian two's complement, as Java's `BigInteger.toByteArray`."""
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


def date_to_days(value: date) -> int:
    """Return days since the epoch; a datetime must be at midnight."""
    if isinstance(value, datetime) and value.time() != time.min:
        raise DataException(
            "Kafka Connect Date type should not have any time fields set to non-zero values."
        )
    return value.toordinal() - _EPOCH_DAY


def date_from_days(days: int) -> date:
    """Return the day; DataException outside the years 1 to 9999."""
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        # The texts of these errors quote the value.
        raise DataException("A Date is outside the years 1 to 9999") from None


def time_to_milliseconds(value: time) -> int:
    """Return milliseconds since midnight."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_from_milliseconds(milliseconds: int) -> time:
    """Return the time of day; unlike Kafka, 86400000 (midnight of the next day) is refused."""
    if not 0 <= milliseconds < MILLISECONDS_PER_DAY:
        raise DataException(
            "Time values must use number of milliseconds greater than 0 and less than 86400000"
        )
    seconds, rest = divmod(milliseconds, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return time(hour, minute, second, rest * 1000)


def timestamp_to_milliseconds(value: datetime) -> int:
    """Return milliseconds since the epoch; the datetime must have a time zone."""
    if value.utcoffset() is None:
        raise DataException(
            "A Timestamp needs a datetime with a time zone; use datetime.timezone.utc"
        )
    return (value - _EPOCH) // _MILLISECOND


def timestamp_from_milliseconds(milliseconds: int) -> datetime:
    """Return the moment in UTC; DataException outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        # The text of the error quotes the value.
        raise DataException("A Timestamp is outside the years 1 to 9999") from None
