"""Checks that a value fits its schema.

Corresponds to `ConnectSchema.validateValue`. Beyond the class of a value, ranges are checked too,
because a Python `int` has none. A default does not make None valid here.
"""

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Context, Decimal
from math import isfinite, isinf
from struct import Struct as BinaryLayout

from pyconnect_api.errors import DataException
from pyconnect_api.schema import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    Schema,
    StructValue,
    Type,
)

INTEGER_RANGES = {
    Type.INT8: (-(2**7), 2**7 - 1),
    Type.INT16: (-(2**15), 2**15 - 1),
    Type.INT32: (-(2**31), 2**31 - 1),
    Type.INT64: (-(2**63), 2**63 - 1),
}
"""Lowest and highest value of each integer type."""

_BINARY32 = BinaryLayout(">f")


def validate_value(schema: Schema, value: object, field: str | None = None) -> object:
    """Return the value in the form that records have, or raise DataException.

    `bytearray` and `memoryview` become `bytes`, tuples lists, FLOAT32 values are rounded to
    binary32; other values are returned unchanged. `field` names the place in the message.
    """
    return _validated(schema, value, "value" if field is None else f'field: "{field}"')


def fits_class(schema: Schema, value: object) -> bool:
    """Return whether the value's class is one of the schema's, logical or base; elements count not.

    `value` is not None.
    """
    logical = _LOGICAL_CLASSES.get(schema.name or "")
    if logical is not None and _is_instance(value, logical):
        return True
    return _is_instance(value, _BASE_CLASSES[schema.type])


def hashable_key(key: object) -> object:
    """Return the form in which a value can be a map's key: arrays become tuples.

    DataException for a map, which has no such form.
    """
    if isinstance(key, list | tuple):
        return tuple(map(hashable_key, key))
    if isinstance(key, dict):
        raise DataException("A map cannot be the key of a map")
    return key


def to_float32(value: float) -> float:
    """Return the nearest binary32 value, infinite when there is none."""
    try:
        result: float = _BINARY32.unpack(_BINARY32.pack(value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return result


def _validated(schema: Schema, value: object, location: str) -> object:
    if value is None:
        if schema.optional:
            return None
        raise DataException(
            f"Invalid value: null used for required {location}, schema type: {schema.type}"
        )
    classes = _LOGICAL_CLASSES.get(schema.name) if schema.name is not None else None
    if classes is not None:
        if not _is_instance(value, classes):
            raise _unfit(schema, value, location)
        return _checked_logical(schema, value, location)
    if not _is_instance(value, _BASE_CLASSES[schema.type]):
        raise _unfit(schema, value, location)
    check = _CHECKS.get(schema.type)
    return value if check is None else check(schema, value, location)


def _is_instance(value: object, classes: tuple[type, ...]) -> bool:
    # In Python bool is an int, and datetime a date; in Kafka they are not.
    found = value.__class__
    if found is bool or found is datetime:
        return found in classes
    return isinstance(value, classes) and not isinstance(value, bool | datetime)


def _unfit(schema: Schema, value: object, location: str) -> DataException:
    name = "" if schema.name is None else f' "{schema.name}"'
    return DataException(
        f"Invalid object for schema{name} with type {schema.type}: "
        f"class {value.__class__.__qualname__} for {location}"
    )


def _checked_logical(schema: Schema, value: object, location: str) -> object:
    if isinstance(value, Decimal) and not value.is_finite():
        raise DataException(f"Invalid value: {value} is not a finite decimal number for {location}")
    if isinstance(value, datetime | time):
        aware = value.utcoffset() is not None
        if schema.name == TIMESTAMP_NAME and not aware:
            raise DataException(
                f"Invalid value: a Timestamp needs a datetime with a time zone for {location}; "
                "use datetime.timezone.utc"
            )
        if schema.name == TIME_NAME and aware:
            raise DataException(f"Invalid value: a Time has no time zone for {location}")
    return value


def _checked_integer(schema: Schema, value: object, location: str) -> object:
    lowest, highest = INTEGER_RANGES[schema.type]
    if not lowest <= value <= highest:  # type: ignore[operator]  # an int, as checked before
        raise DataException(
            f"Invalid value: a number is out of range for schema type {schema.type} for {location}"
        )
    return value


def _checked_float32(schema: Schema, value: object, location: str) -> object:
    given = float(value)  # type: ignore[arg-type]  # a float, as checked before
    rounded = to_float32(given)
    if isinf(rounded) and isfinite(given):
        raise DataException(
            f"Invalid value: a number is out of range for schema type {schema.type} for {location}"
        )
    return rounded


def _checked_array(schema: Schema, value: object, location: str) -> object:
    element_location = f"element of array {location}"
    element_schema = _required_schema(schema.value_schema, element_location)
    elements: list[object] = value  # type: ignore[assignment]  # a list or tuple
    checked = [_validated(element_schema, element, element_location) for element in elements]
    unchanged = value.__class__ is list and all(map(_is, checked, elements))
    return value if unchanged else checked


def _checked_map(schema: Schema, value: object, location: str) -> object:
    key_location = f"key of map {location}"
    value_location = f"value of map {location}"
    key_schema = _required_schema(schema.key_schema, key_location)
    value_schema = _required_schema(schema.value_schema, value_location)
    entries: dict[object, object] = value  # type: ignore[assignment]  # as checked before
    checked = {
        hashable_key(_validated(key_schema, key, key_location)): _validated(
            value_schema, entry, value_location
        )
        for key, entry in entries.items()
    }
    unchanged = all(map(_is, checked, entries)) and all(
        map(_is, checked.values(), entries.values())
    )
    return value if unchanged else checked


def _is(left: object, right: object) -> bool:
    return left is right


def _checked_struct(schema: Schema, value: object, _location: str) -> object:
    struct: StructValue = value  # type: ignore[assignment]  # as checked before
    if struct.schema != schema:
        raise DataException("Struct schemas do not match.")
    struct.validate()
    return struct


def _required_schema(schema: Schema | None, location: str) -> Schema:
    if schema is None:
        raise DataException(f"No schema defined for {location}")
    return schema


_BASE_CLASSES: dict[Type, tuple[type, ...]] = {
    **dict.fromkeys(INTEGER_RANGES, (int,)),
    Type.FLOAT32: (float,),
    Type.FLOAT64: (float,),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.ARRAY: (list, tuple),
    Type.MAP: (dict,),
    Type.STRUCT: (StructValue,),
}

_LOGICAL_CLASSES: dict[str, tuple[type, ...]] = {
    DECIMAL_NAME: (Decimal,),
    DATE_NAME: (date,),
    TIME_NAME: (time,),
    TIMESTAMP_NAME: (datetime,),
}

_CHECKS: dict[Type, Callable[[Schema, object, str], object]] = {
    **dict.fromkeys(INTEGER_RANGES, _checked_integer),
    Type.FLOAT32: _checked_float32,
    Type.BYTES: lambda _, value, __: value if value.__class__ is bytes else bytes(value),  # type: ignore[call-overload]  # bytes-like
    Type.ARRAY: _checked_array,
    Type.MAP: _checked_map,
    Type.STRUCT: _checked_struct,
}


def kept_number(digits: Decimal | int) -> float | int | Decimal:
    """Return a schemaless number as Connect has it: as a Decimal if 64 bits would change it."""
    if isinstance(digits, int):
        lowest, highest = INTEGER_RANGES[Type.INT64]
        return digits if lowest <= digits <= highest else Decimal(digits)
    number, count = float(digits), len(digits.as_tuple().digits)
    # The nearest double keeps up to 15 digits.
    if count <= 15 and -300 < digits.adjusted() < 300:
        return number
    # More digits are kept if they are the shortest digits of the double, or its first ones.
    is_kept = digits in (Decimal(repr(number)), Context(prec=count).plus(Decimal(number)))
    return number if is_kept else digits
