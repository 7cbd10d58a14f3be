"""Text of values as Java writes them."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from struct import pack, unpack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyconnect_api import FLOAT32_SCHEMA, DataException, SchemaBuilder, Struct
from pyconnect_api.java_text import (
    decimal_text,
    decimal_to_float32,
    double_text,
    float_text,
    temporal_text,
    to_string,
)
from pyconnect_api.validation import to_float32
from tests.support.cases import cases


def float32_of_bits(bits: int) -> float:
    value: float = unpack(">f", pack(">I", bits))[0]
    return value


@cases(
    "value, expected",
    (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (0.001, "0.001"), (0.00099, "9.9E-4"),
    (9999999.0, "9999999.0"), (1e7, "1.0E7"), (1e23, "1.0E23"), (1.5e-5, "1.5E-5"),
    (5e-324, "4.9E-324"), (1.7976931348623157e308, "1.7976931348623157E308"), (float("nan"), "NaN"),
    (float("inf"), "Infinity"), (float("-inf"), "-Infinity"),
)  # fmt: skip
def test_doubles_have_javas_text(value: float, expected: str) -> None:
    """Decimal form from 0.001 up to ten million, else one digit before the point and E."""
    assert double_text(value) == expected


@cases(
    "value, expected",
    (0.1, "0.1"), (3.1415927, "3.1415927"), (1044242240.0, "1.04424224E9"),
    (16777216.0, "1.6777216E7"), (1e10, "1.0E10"), (1.401298464324817e-45, "1.4E-45"),
    (3.4028234663852886e38, "3.4028235E38"), (100.0, "100.0"), (-0.0, "-0.0"),
    (float("nan"), "NaN"),
)  # fmt: skip
def test_floats_have_the_shortest_digits_of_binary32(value: float, expected: str) -> None:
    """The digits identify the binary32 value, not the binary64 one that holds it."""
    assert float_text(to_float32(value)) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_is_the_same_number(value: float) -> None:
    """A reader gets exactly the number that was written."""
    assert float(double_text(value)) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_is_the_same_number(value: float) -> None:
    """The text of a float has at most nine digits and gives the same binary32 value when read."""
    text = float_text(value)
    assert to_float32(float(text)) == value
    digits = text.partition("E")[0].replace("-", "").replace(".", "").strip("0")
    assert len(digits) <= 9


@given(
    st.integers(0x00800000, 0x7F7FFFFE),
    st.fractions(min_value=Fraction(0), max_value=Fraction(1), max_denominator=10**9),
)
@example(0x00800000, Fraction(1, 2))
def test_decimals_are_rounded_to_binary32_once(bits: int, share: Fraction) -> None:
    """A decimal becomes the nearest binary32 value, however close it is to the middle of two."""
    low, high = float32_of_bits(bits), float32_of_bits(bits + 1)
    exact = Fraction(low) + (Fraction(high) - Fraction(low)) * share
    decimal = Decimal(exact.numerator) / Decimal(exact.denominator)
    distance = {
        candidate: abs(Fraction(candidate) - Fraction(decimal)) for candidate in (low, high)
    }
    assert distance[decimal_to_float32(decimal)] == min(distance.values())


def test_decimals_have_javas_text_and_rounding() -> None:
    """A decimal is rounded without a binary64 value in between; zero has no sign."""
    assert decimal_to_float32(Decimal("16777217.0000000000000001")) == 16777218.0
    assert decimal_to_float32(Decimal(16777217)) == 16777216.0
    assert decimal_to_float32(Decimal("1e39")) == float("inf")
    texts = {"1.50": "1.50", "1E+3": "1E+3", "-0.0": "0.0", "0.0000001": "1E-7"}
    assert {text: decimal_text(Decimal(text)) for text in texts} == texts


def test_temporals_have_iso_text_in_utc() -> None:
    """A time has exactly three digits of milliseconds."""
    assert temporal_text(date(2020, 2, 29)) == "2020-02-29"
    assert temporal_text(time(1, 2, 3, 4567)) == "01:02:03.004Z"
    moment = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert temporal_text(moment) == "1969-12-31T23:59:59.999Z"


def test_collections_have_the_text_of_javas_to_string() -> None:
    """Elements are not quoted, numbers follow their schema; bytes have no text."""
    assert to_string(None, [1, None, "a", True, {"k": 0.5}]) == "[1, null, a, true, {k=0.5}]"
    floats = SchemaBuilder.map(FLOAT32_SCHEMA, SchemaBuilder.array(FLOAT32_SCHEMA)).build()
    third = to_float32(1 / 3)
    assert to_string(floats, {third: [third]}) == "{0.33333334=[0.33333334]}"
    struct_schema = SchemaBuilder.struct().field("f", FLOAT32_SCHEMA).build()
    assert to_string(None, [Struct(struct_schema).put("f", third)]) == "[Struct{f=0.33333334}]"
    for value in (b"x", [b"x"], object()):
        with pytest.raises(DataException, match="no text form"):
            to_string(None, value)
