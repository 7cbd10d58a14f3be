"""Logical values and their base values."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_api import (
    DATE_SCHEMA,
    INT32_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    DataException,
    SchemaBuilder,
    date_builder,
    decimal_schema,
    from_logical,
    is_logical,
    to_logical,
)
from pyconnect_api.logical import unscaled_bytes
from tests.support.cases import cases


@cases(
    "unscaled, expected",
    (0, "00"), (1, "01"), (127, "7f"), (128, "0080"), (-1, "ff"), (-128, "80"), (-129, "ff7f"),
    (255, "00ff"), (256, "0100"), (102345, "018fc9"),
)  # fmt: skip
def test_unscaled_values_have_javas_shortest_twos_complement(unscaled: int, expected: str) -> None:
    """The bytes are those of `BigInteger.toByteArray`."""
    assert unscaled_bytes(unscaled).hex() == expected


@given(st.integers(min_value=-(10**60), max_value=10**60), st.integers(-20, 40))
def test_decimals_survive_the_round_trip_with_all_digits(unscaled: int, scale: int) -> None:
    """No digit is lost beyond the precision of Python's decimal context, and the scale stays."""
    schema = decimal_schema(scale)
    sign, digits, _ = Decimal(unscaled).as_tuple()
    value = Decimal((sign, digits, -scale))
    back = to_logical(schema, from_logical(schema, value))
    assert isinstance(back, Decimal)
    assert back.as_tuple() == value.as_tuple()


def test_a_decimal_needs_a_schema_of_its_scale() -> None:
    """A decimal of another scale is refused, because rounding it is the caller's decision."""
    with pytest.raises(DataException) as refused:
        from_logical(decimal_schema(2), Decimal("1.5"))
    assert str(refused.value) == (
        "Decimal value has mismatching scale for given Decimal schema. "
        "Schema has scale 2, value has scale 1."
    )
    name = "org.apache.kafka.connect.data.Decimal"
    with pytest.raises(DataException, match="scale parameter not found"):
        from_logical(SchemaBuilder.bytes().name(name).build(), Decimal(1))
    with pytest.raises(DataException, match="Invalid scale parameter"):
        to_logical(SchemaBuilder.bytes().name(name).parameter("scale", "x").build(), b"\x01")


@given(st.dates())
def test_dates_survive_the_round_trip(value: date) -> None:
    """Every date of Python's calendar survives."""
    assert to_logical(DATE_SCHEMA, from_logical(DATE_SCHEMA, value)) == value


def test_logical_types_keep_days_and_moments() -> None:
    """Days before 1970 are negative; a timestamp keeps its moment and loses its zone."""
    assert from_logical(DATE_SCHEMA, date(1970, 1, 1)) == 0
    assert from_logical(DATE_SCHEMA, date(1969, 12, 31)) == -1
    value = datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert from_logical(TIMESTAMP_SCHEMA, value) == 1577836800000


@given(st.times())
def test_times_are_cut_to_milliseconds(value: time) -> None:
    """A time loses only the digits below a millisecond."""
    expected = value.replace(microsecond=value.microsecond // 1000 * 1000, fold=0)
    assert to_logical(TIME_SCHEMA, from_logical(TIME_SCHEMA, value)) == expected


@given(st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)))  # noqa: DTZ001
def test_timestamps_are_cut_towards_the_past(value: datetime) -> None:
    """A timestamp becomes the millisecond before it, also before 1970."""
    back = to_logical(TIMESTAMP_SCHEMA, from_logical(TIMESTAMP_SCHEMA, value))
    assert isinstance(back, datetime)
    assert timedelta(0) <= value - back < timedelta(milliseconds=1)


@cases(
    "schema, base",
    (TIME_SCHEMA, -1), (TIME_SCHEMA, 86_400_000), (DATE_SCHEMA, 2**31 - 1),
    (TIMESTAMP_SCHEMA, 2**63 - 1), (TIMESTAMP_SCHEMA, -(2**63)), (decimal_schema(0), b""),
)  # fmt: skip
def test_base_values_without_a_logical_value_are_refused(schema: object, base: object) -> None:
    """Base values beyond the years 1 to 9999, or beyond 24 hours, are refused."""
    with pytest.raises(DataException):
        to_logical(schema, base)  # type: ignore[arg-type]


def test_a_value_must_be_of_the_schemas_logical_type() -> None:
    """A value of another logical type is refused; optional schemas are logical types too."""
    for schema, value in [(DATE_SCHEMA, time(1)), (INT32_SCHEMA, date(2020, 1, 1))]:
        with pytest.raises(DataException, match="the schema does not match"):
            from_logical(schema, value)
    with pytest.raises(DataException, match="the schema does not match"):
        to_logical(INT32_SCHEMA, 1)
    assert is_logical(date_builder().optional().build())
    assert not is_logical(INT32_SCHEMA)
    assert not is_logical(None)
