"""Checks of values against their schemas."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from pyconnect_api import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    DATE_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
    decimal_schema,
    validate_value,
)
from tests.support.cases import cases

ARRAY = SchemaBuilder.array(FLOAT32_SCHEMA).build()
MAP = SchemaBuilder.map(STRING_SCHEMA, BYTES_SCHEMA).build()
PAIR = SchemaBuilder.struct().field("a", INT32_SCHEMA).build()


@cases("schema, bits", (INT8_SCHEMA, 8), (INT16_SCHEMA, 16), (INT32_SCHEMA, 32), (INT64_SCHEMA, 64))
def test_integers_must_be_in_range(schema: Schema, bits: int) -> None:
    """An integer is checked against the range of its type, because a Python int has no bounds."""
    for limit in (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1):
        assert validate_value(schema, limit) == limit
    for beyond in (-(2 ** (bits - 1)) - 1, 2 ** (bits - 1)):
        with pytest.raises(DataException, match="is out of range"):
            validate_value(schema, beyond)


@cases(
    "schema, value",
    (INT32_SCHEMA, True), (INT32_SCHEMA, 1.0), (INT32_SCHEMA, "1"), (BOOLEAN_SCHEMA, 1),
    (FLOAT64_SCHEMA, 1), (FLOAT64_SCHEMA, True), (STRING_SCHEMA, b"x"), (BYTES_SCHEMA, "x"),
    (ARRAY, {1.0}), (MAP, [("a", b"b")]), (PAIR, {"a": 1}),
    (DATE_SCHEMA, datetime(2020, 1, 1, tzinfo=UTC)), (DATE_SCHEMA, 1), (TIME_SCHEMA, 1),
    (TIMESTAMP_SCHEMA, date(2020, 1, 1)), (decimal_schema(0), 1),
)  # fmt: skip
def test_a_value_of_another_class_is_refused(schema: Schema, value: object) -> None:
    """The check converts no value; a bool is not a number and a datetime is not a date."""
    with pytest.raises(DataException, match="Invalid object for schema"):
        validate_value(schema, value)


def test_the_message_names_schema_class_and_place() -> None:
    """The message has the path to the wrong field."""
    schema = SchemaBuilder.int32().name("Age").build()
    with pytest.raises(DataException) as refused:
        validate_value(schema, "x", "age")
    expected = 'Invalid object for schema "Age" with type INT32: class str for field: "age"'
    assert str(refused.value) == expected
    with pytest.raises(DataException, match=r"for element of array value$"):
        validate_value(ARRAY, ["x"])
    with pytest.raises(DataException, match=r'for key of map field: "m"$'):
        validate_value(MAP, {1: b""}, "m")


def test_none_needs_an_optional_schema_even_with_a_default() -> None:
    """A default does not make None valid."""
    assert validate_value(OPTIONAL_STRING_SCHEMA, None) is None
    with pytest.raises(DataException) as refused:
        validate_value(SchemaBuilder.int32().default(1).build(), None)
    assert str(refused.value) == ("Invalid value: null used for required value, schema type: INT32")
    with pytest.raises(DataException, match='null used for required field: "f", schema type'):
        validate_value(INT32_SCHEMA, None, "f")


def test_float32_values_are_rounded_to_binary32() -> None:
    """A float32 value is rounded when it is stored, as it would be when it is sent."""
    assert validate_value(FLOAT32_SCHEMA, 0.1) == 0.10000000149011612
    assert validate_value(ARRAY, [0.1]) == [0.10000000149011612]
    assert validate_value(FLOAT32_SCHEMA, float("inf")) == float("inf")
    with pytest.raises(DataException, match="out of range"):
        validate_value(FLOAT32_SCHEMA, 1e39)


def test_values_become_one_class_per_type_without_needless_copies() -> None:
    """Bytes-like values become bytes and tuples lists; other values are not copied."""
    assert validate_value(BYTES_SCHEMA, bytearray(b"ab")) == b"ab"
    assert type(validate_value(BYTES_SCHEMA, memoryview(b"ab"))) is bytes
    assert validate_value(MAP, {"a": bytearray(b"x")}) == {"a": b"x"}
    assert validate_value(SchemaBuilder.array(INT32_SCHEMA).build(), (1, 2)) == [1, 2]
    for schema, value in [(MAP, {"a": b"x"}), (ARRAY, [1.0]), (STRING_SCHEMA, "x" * 100)]:
        assert validate_value(schema, value) == value
    entries: dict[str, object] = {"a": b"x"}
    assert validate_value(MAP, entries) is entries


def test_keys_and_elements_need_schemas_that_hold_them() -> None:
    """An array as a map's key is a tuple; a schema without element or key schema is refused."""
    arrays = SchemaBuilder.map(SchemaBuilder.array(INT32_SCHEMA), INT32_SCHEMA).build()
    assert validate_value(arrays, {(1, 2): 3}) == {(1, 2): 3}
    with pytest.raises(DataException, match="No schema defined for element of array value"):
        validate_value(Schema(Type.ARRAY), [])
    with pytest.raises(DataException, match="No schema defined for key of map value"):
        validate_value(Schema(Type.MAP), {})


def test_structs_need_the_same_schema_and_valid_members() -> None:
    """A struct is checked by its own schema, which must equal the declared one."""
    assert validate_value(PAIR, Struct(PAIR).put("a", 1))
    with pytest.raises(DataException, match=r"Struct schemas do not match\."):
        validate_value(PAIR, Struct(SchemaBuilder.struct().build()))
    with pytest.raises(DataException, match='required field: "a"'):
        validate_value(PAIR, Struct(PAIR))


def test_logical_values_have_the_right_zone_and_are_finite() -> None:
    """A Timestamp has a zone, a Time has none, and a Decimal is finite."""
    validate_value(TIMESTAMP_SCHEMA, datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(DataException, match="needs a datetime with a time zone"):
        validate_value(TIMESTAMP_SCHEMA, datetime(2020, 1, 1))  # noqa: DTZ001
    with pytest.raises(DataException, match="has no time zone"):
        validate_value(TIME_SCHEMA, time(1, tzinfo=UTC))
    with pytest.raises(DataException, match="not a finite decimal"):
        validate_value(decimal_schema(0), Decimal("NaN"))
