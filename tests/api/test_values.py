"""Conversions of values, their texts, and guesses of the value that a text means."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_api import (
    DATE_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    NULL,
    STRING_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
    decimal_schema,
    values,
)
from pyconnect_api.values import parse_string
from tests.support.cases import cases

NOON = datetime(2020, 2, 29, 12, tzinfo=UTC)


@cases(
    "text, schema, value",
    ("true", Schema(Type.BOOLEAN), True),
    (" false ", Schema(Type.BOOLEAN), False),
    ("127", INT8_SCHEMA, 127),
    ("128", INT16_SCHEMA, 128),
    ("1e3", INT16_SCHEMA, 1000),
    ("1.0", INT8_SCHEMA, 1),
    ("2147483647", INT32_SCHEMA, 2147483647),
    ("-9223372036854775808", INT64_SCHEMA, -(2**63)),
    ("9223372036854775808", decimal_schema(0), Decimal(2**63)),
    ("3.14159265", FLOAT32_SCHEMA, 3.1415927410125732),
    ("1e300", FLOAT64_SCHEMA, 1e300),
    ("1e400", decimal_schema(-400), Decimal("1e400")),
    ("2020-02-29", DATE_SCHEMA, date(2020, 2, 29)),
    ("12:00:00.000Z", TIME_SCHEMA, time(12)),
    ("12\\:00\\:00.000Z", TIME_SCHEMA, time(12)),
    ("2020-02-29T12:00:00.000Z", TIMESTAMP_SCHEMA, NOON),
    ("[]", Schema(Type.ARRAY), []),
    ("{}", Schema(Type.MAP), {}),
    ("[1, 300]", Schema(Type.ARRAY, value_schema=INT16_SCHEMA), [1, 300]),
    ("[1, 2.5]", Schema(Type.ARRAY, value_schema=FLOAT32_SCHEMA), [1.0, 2.5]),
    ('["a", 1]', Schema(Type.ARRAY), ["a", 1]),
    ('{"a":null}', Schema(Type.MAP, key_schema=STRING_SCHEMA), {"a": None}),
    ("{[1]:2}", None, {(1,): 2}),
)
def test_texts_are_read_as_the_narrowest(text: str, schema: Schema | None, value: object) -> None:
    """The text alone decides schema and value."""
    found = parse_string(text)
    assert (type(found.value), found.value) == (type(value), value)
    assert schema is None or found.schema == schema


@cases("text", None, "null", " null ")
def test_no_text_and_null_have_no_value(text: str | None) -> None:
    """No text and the text `null` have neither schema nor value."""
    assert parse_string(text) == NULL


@cases(
    "text",
    "", " ", "abc", "True", "1,2", "8080:tcp", "[1]x", "[1", "[,1]", "[1 2]", "[a]", "[1,null]",
    "{a:1}", "{null:1}", '{"a"}', '"a"', "2020-02-30", "-", "1_0", "٣", "1e99999999999", "[" * 9999,
)  # fmt: skip
def test_any_other_text_is_a_string_as_a_whole(text: str) -> None:
    """A text that is not a value as a whole is a string with all its characters."""
    assert parse_string(text) == (STRING_SCHEMA, text)


@given(st.text())
def test_parsing_never_fails(text: str) -> None:
    """Any text is accepted, because headers come from any producer."""
    parse_string(text)


@given(
    st.recursive(
        st.booleans() | st.integers(-(2**63), 2**63 - 1),
        lambda inner: (
            st.lists(inner, min_size=1) | st.dictionaries(st.just("k"), inner, min_size=1)
        ),
        max_leaves=8,
    )
)
def test_texts_of_integers_and_booleans_survive_the_round_trip(value: object) -> None:
    """Exact values with a syntax of their own come back equal."""
    text = values.convert_to_string(None, value)
    assert parse_string(text).value == value


def test_the_text_form_quotes_inside_only() -> None:
    """Strings have quotes and escapes only inside of arrays, maps and structs."""
    schema = (
        SchemaBuilder.struct()
        .field("a", SchemaBuilder.int32().default(7))
        .field("b", SchemaBuilder.string().optional())
        .build()
    )
    cases: list[tuple[object, str | None]] = [
        (None, None),
        ('a"\\', 'a"\\'),
        (['a"\\', None, 1.0], '["a\\"\\\\",null,1.0]'),
        ({"k": True}, '{"k":true}'),
        (b"ab", "YWI="),
        ([b"ab"], '["YWI="]'),
        (Struct(schema), '{"a":7,"b":null}'),
        (Decimal("1.50"), "1.50"),
        (date(2020, 2, 29), "2020-02-29"),
        (NOON, "2020-02-29T12:00:00.000Z"),
    ]
    assert [values.convert_to_string(None, value) for value, _ in cases] == [t for _, t in cases]


@cases(
    "convert, value, expected",
    (values.convert_to_byte, 300, 44),
    (values.convert_to_short, "70000.9", 4464),
    (values.convert_to_integer, 2**31, -(2**31)),
    (values.convert_to_long, 1e300, 2**63 - 1),
    (values.convert_to_long, float("nan"), 0),
    (values.convert_to_long, Decimal("-1.9"), -1),
    (values.convert_to_long, NOON, 1582977600000),
    (values.convert_to_boolean, "true", True),
    (values.convert_to_boolean, "0", False),
    (values.convert_to_boolean, 0.5, False),
    (values.convert_to_float, 0.1, 0.10000000149011612),
    (values.convert_to_double, "0.1", 0.1),
    (values.convert_to_list, "[1,2]", [1, 2]),
    (values.convert_to_map, '{"a":1}', {"a": 1}),
    (values.convert_to_date, NOON, date(2020, 2, 29)),
    (values.convert_to_date, 1, date(1970, 1, 2)),
    (values.convert_to_time, NOON, time(12)),
    (values.convert_to_time, "12:00:00.000Z", time(12)),
    (values.convert_to_timestamp, date(2020, 2, 29), datetime(2020, 2, 29, tzinfo=UTC)),
    (values.convert_to_timestamp, time(1), datetime(1970, 1, 1, 1, tzinfo=UTC)),
    (values.convert_to_timestamp, 1582977600000, NOON),
)
def test_values_are_converted_as_kafka_does(
    convert: Callable[[Schema | None, object], object], value: object, expected: object
) -> None:
    """Narrowing keeps the low bits, fractions are cut, texts are parsed."""
    assert convert(None, value) == expected


def test_decimals_come_from_numbers_texts_and_bytes() -> None:
    """Bytes need a scale; numbers and texts do not."""
    assert values.convert_to_decimal(None, 2**60, 5) == 2**60
    assert str(values.convert_to_decimal(None, "1.50", 0)) == "1.50"
    assert str(values.convert_to_decimal(None, 1.0, 0)) == "1.0"
    assert str(values.convert_to_decimal(None, b"\x01\x8f\xc9", 4)) == "10.2345"


@cases(
    "number, expected",
    ("1E+999999999", 0), ("-7E+64", 0), ("1E+63", (10**63 + 2**63) % 2**64 - 2**63),
    ("1E-999999999", 0), ("-0.9", 0), ("12345678901234567890.5", 12345678901234567890 - 2**64),
)  # fmt: skip
def test_numbers_of_many_digits_are_narrowed_unmade(number: str, expected: int) -> None:
    """As in Java's BigDecimal.longValue, a large exponent does not keep the task busy."""
    assert values.convert_to_long(None, Decimal(number)) == expected
    assert values.convert_to_long(None, number) == expected


@cases(
    "convert, value",
    (values.convert_to_long, "abc"),
    (values.convert_to_long, True),
    (values.convert_to_double, [1]),
    (values.convert_to_list, "abc"),
    (values.convert_to_list, None),
    (values.convert_to_map, [1]),
    (values.convert_to_struct, {"a": 1}),
    (values.convert_to_date, time(1)),
    (values.convert_to_date, None),
    (values.convert_to_time, date(2020, 1, 1)),
    (lambda schema, value: values.convert_to_decimal(schema, value, 0), float("nan")),
)
def test_values_that_cannot_be_converted_are_refused(
    convert: Callable[[Schema | None, object], object], value: object
) -> None:
    """The message names the value's type and the type that it cannot become."""
    with pytest.raises(DataException, match="Unable to convert"):
        convert(None, value)
