"""Values that a column takes: they stay the same, or are refused without showing the value."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, Dialect, types
from sqlalchemy.dialects import mysql, postgresql, sqlite

from pyconnect_connectors.sql.column_types import Char, Name
from pyconnect_connectors.sql.writing_columns import WriteColumn
from pyconnect_connectors.sql.writing_postgres import UNFIT, json_text
from tests.support.cases import cases

POSTGRES, MARIADB, SQLITE = postgresql.dialect(), mysql.dialect(), sqlite.dialect()
BERLIN = ZoneInfo("Europe/Berlin")


def written(
    kind: types.TypeEngine[Any], dialect: Dialect, *values: object, zone: ZoneInfo = BERLIN
) -> Sequence[Any]:
    return WriteColumn(Column("v", kind), dialect, zone, becomes_null=False).values(values)


@given(
    st.one_of(
        st.decimals().filter(lambda d: not d.is_snan()),
        st.floats(),
        st.integers(),
        st.text(max_size=20),
        st.booleans(),
    )
)
@cases("dialect", POSTGRES, MARIADB, SQLITE, ids=lambda d: d.name)
@cases(
    "kind",
    types.Integer(),
    types.Double(),
    types.Numeric(10, 2),
    types.Text(),
    types.Boolean(),
    ids=lambda kind: type(kind).__name__,
)
def test_a_number_stays_the_same_number_or_is_refused(
    kind: types.TypeEngine[Any], dialect: Dialect, value: Any
) -> None:
    """A number stays the same in a column of any class, or is refused."""
    try:
        (found,) = written(kind, dialect, value)
    except UNFIT:
        return
    if isinstance(value, str):
        if isinstance(kind, types.Text):
            assert found == value
        return
    if isinstance(kind, types.Text):
        assert isinstance(found, str)
        if isinstance(value, bool):
            assert found == str(value).lower()
            return
    expected = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    got = Decimal(repr(found)) if isinstance(found, float) else Decimal(found)
    assert got == expected or (got.is_nan() and expected.is_nan())


@cases(
    "value, expected",
    (datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 10, 27, 2, 30)),  # noqa: DTZ001
    (datetime(2024, 6, 1, 10, tzinfo=UTC), datetime(2024, 6, 1, 12)),  # noqa: DTZ001
    ("2024-06-01T10:00:00Z", datetime(2024, 6, 1, 12)),  # noqa: DTZ001
    ("2024-06-01 10:00:00", datetime(2024, 6, 1, 10)),  # noqa: DTZ001
)
def test_an_instant_becomes_the_local_time(value: object, expected: datetime) -> None:
    """An instant becomes a local time of `db.timezone` in columns without a zone."""
    assert list(written(types.DateTime(), POSTGRES, value)) == [expected]


def test_the_second_of_two_equal_local_times_is_refused() -> None:
    """A column without a zone could not tell the second of two equal local times from the first."""
    with pytest.raises(UNFIT):
        written(types.DateTime(), POSTGRES, datetime(2024, 10, 27, 1, 30, tzinfo=UTC))


def test_a_local_time_that_clocks_leave_out_is_no_instant() -> None:
    """The hour that daylight saving leaves out has no instant; those beside it have."""
    column = types.DateTime(timezone=True)
    assert written(column, POSTGRES, "2024-03-31 01:59:59", "2024-10-27 02:30:00")
    with pytest.raises(UNFIT):
        written(column, POSTGRES, "2024-03-31 02:30:00")


@cases("kind", types.Time(), types.DateTime(), ids=lambda kind: type(kind).__name__)
def test_a_sixtieth_second_is_refused(kind: types.TypeEngine[Any]) -> None:
    """PostgreSQL would make the next minute of it."""
    day = "" if isinstance(kind, types.Time) else "2024-06-01 "
    assert written(kind, POSTGRES, f"{day}10:00:59")
    with pytest.raises(UNFIT):
        written(kind, POSTGRES, f"{day}10:00:60")


@cases(
    "text",
    "2024-06-01T10:00:00.1234567",
    "20240601",
    "2024-06-01 10:00:00 BC+02",
    "soon",
    "",
    "1000",
)
@cases("dialect", POSTGRES, MARIADB, SQLITE, ids=lambda d: d.name)
def test_a_text_that_is_no_exact_time_is_refused(text: str, dialect: Dialect) -> None:
    """Databases read some inexact texts as other times."""
    with pytest.raises(UNFIT):
        written(types.DateTime(), dialect, text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_json_has_the_values_that_it_was_made_of(value: Any) -> None:
    """JSON keeps all values except infinity, which JSON does not have."""
    import json

    try:
        text = json_text(value)
    except ValueError:
        assert "inf" in repr(value)
        return
    assert json.loads(text) == value


@cases("value", math.nan, math.inf, {1: "a", "1": "b"}, {"a": [Decimal("NaN")]}, object())
def test_a_value_that_json_cannot_hold_is_refused(value: object) -> None:
    """A value that JSON cannot hold is refused, not written as Python's text."""
    with pytest.raises(ValueError, match=r"JSON|keys"):
        json_text(value)


@cases(
    "kind, value, literal",
    (types.Integer(), "[1,null]", "{1,NULL}"),
    (types.Integer(), "{1,NULL}", "{1,NULL}"),
    (types.Text(), '["NULL","a\\"b","c\\\\d"]', '{"NULL","a\\"b","c\\\\d"}'),
    (types.Integer(), [[1, 2], [3, None]], "{{1,2},{3,NULL}}"),
    (types.Numeric(), "[12345678901234567890.12345]", "{12345678901234567890.12345}"),
    (types.Numeric(10, 2), '{1.5,"2.25"}', '{1.5,"2.25"}'),
    (types.LargeBinary(), [b"\x00\xff"], '{"\\\\x00ff"}'),
    (types.Boolean(), [True], "{true}"),
    (types.Boolean(), "{t,f}", "{t,f}"),
    (types.Text(), [], "{}"),
    (postgresql.JSONB(), '[{"a": 1}, [2]]', '{"{\\"a\\":1}","[2]"}'),
    (postgresql.JSONB(), '["a"]', '{"\\"a\\""}'),
    (postgresql.JSONB(), ['"a"'], '{"\\"a\\""}'),
    (postgresql.DOUBLE_PRECISION(), "[-0]", "{-0.0}"),
    (types.NullType(), "[[1, 2.5]]", "{{1,2.5}}"),
    (postgresql.TIMESTAMP(), '["10000-01-01T00:00:00"]', '{"10000-01-01T00:00:00"}'),
)
def test_a_json_array_becomes_an_array_of_postgresql(
    kind: types.TypeEngine[Any], value: object, literal: str
) -> None:
    """The elements of a JSON array keep all digits and quotes."""
    assert written(postgresql.ARRAY(kind), POSTGRES, value) == [literal]


@cases(
    "kind, kept, changed",
    (postgresql.INTERVAL(precision=0), "1 mon 02:03:04", "1.5 seconds"),
    (postgresql.INTERVAL(fields="year to month"), "-1 years 2 mons", "1 year 5 days"),
    (postgresql.INTERVAL(fields="hour"), "1 day 02:00:00", "02:03:00"),
    (postgresql.INTERVAL(precision=3, fields="day to second"), "00:00:00.123", "0.1234 sec"),
    (postgresql.INTERVAL(), "1.5 mon 1.25 milliseconds", "1.55 years"),
    (postgresql.INTERVAL(), "P1Y2M1.5D", "P1.55Y"),
    (postgresql.ARRAY(postgresql.INTERVAL()), ["2 years"], ["0.123 decades"]),
    (postgresql.TSRANGE(), "[2024-01-01 00:00:00.123456,)", "[,2024-01-01 00:00:00.1234567)"),
    (postgresql.MONEY(), "$1,234.50", "1.005"),
    (postgresql.OID(), 2**32 - 1, -1),
    (Name(), "é" * 31, "é" * 32),
    (Char(), "a", "ab"),
    (types.CHAR(5), "abc  ", "abc "),
    (postgresql.TIMESTAMP(precision=0), "10000-01-01 00:00:00", "10000-01-01 00:00:00.6"),
    (postgresql.ARRAY(types.Numeric(10, 2)), "[1.25]", "[1.005]"),
    (postgresql.ARRAY(types.Numeric(10, 2)), "{1.25}", "{{1.005,1}}"),
    (postgresql.ARRAY(types.REAL()), "[0.1]", "[0.123456789]"),
    (postgresql.ARRAY(postgresql.TIME(precision=0)), '["10:00:00"]', '["10:00:00.6"]'),
    (postgresql.ARRAY(types.VARCHAR(3)), ["abc"], ["abc "]),
    (postgresql.ARRAY(postgresql.BYTEA()), '["\\\\x00fF",null]', '["AP8="]'),
    (postgresql.ARRAY(postgresql.BYTEA()), '{"\\\\x00ff"}', "{AP8=}"),
)
def test_what_postgresql_would_round_or_cut_is_refused(
    kind: types.TypeEngine[Any], kept: object, changed: object
) -> None:
    """The limits of a column also hold for the elements of an array."""
    assert written(kind, POSTGRES, kept)
    with pytest.raises(UNFIT):
        written(kind, POSTGRES, changed)
