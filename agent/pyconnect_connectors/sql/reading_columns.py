"""Columns of tables as fields of records: what is selected, the schema, the conversion of values.

Queries select forms that lose nothing and that no driver fails on. The database writes times,
dates, decimals and all types that Connect does not have as texts, in sessions with fixed settings
(`database.open_engine`). PostgreSQL writes arrays as JSON. SQLite stores values of any type in any
column, so that each value is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy import types
from sqlalchemy.dialects import mysql, postgresql

from pyconnect_api import Schema, SchemaBuilder, Type, date_builder, decimal_builder
from pyconnect_api.logical import time_builder, timestamp_builder
from pyconnect_connectors.odd_values import OddValues
from pyconnect_connectors.sql.column_types import BINARIES, MYSQL, has_zone, is_decimal

Convert: TypeAlias = Callable[[Any], Any]  # values of a driver are of any class
_Quick: TypeAlias = Callable[[Sequence[Any]], Sequence[Any] | None]
_EXACT = Context(prec=2000, traps=[Inexact, InvalidOperation])
_HIGHEST = 2**63 - 1
_DAY = " 00:00:00+00:00"
"""The rest of a time in UTC, for a text of SQLite that is a day only."""
_UNFIT = (ValueError, TypeError, ArithmeticError, KeyError)
"""Errors of conversions for values that do not fit; ArithmeticError includes OverflowError."""


class _Form(NamedTuple):
    """How a column is read.

    `convert` makes a field's value of a driver's, None if they are the same. `quick` converts
    many usual values; if one is not usual, it returns None or fails as `convert` does.
    """

    builder: SchemaBuilder
    convert: Convert | None = None
    quick: _Quick | None = None
    may_be_odd: bool = False
    """Whether the column can hold values that the schema cannot."""


class ReadColumn:
    """A column to read. A conversion takes many rows at once; null stays null."""

    def __init__(
        self,
        column: sa.Column[Any],
        dialect: sa.Dialect,
        zone: ZoneInfo,
        policy: OddValues,
        *,
        has_encoding: bool = True,
    ) -> None:
        """`has_encoding`: whether the database knows the encoding of its texts."""
        self.name = column.name
        self.is_key = column.primary_key
        if dialect.name == "sqlite":
            form = _sqlite_form(column.type, zone)
            may_be_odd = not (isinstance(column.type, types.Integer) and column.primary_key)
        else:
            form = _form(column.type, dialect, zone)
            may_be_odd = form.may_be_odd
        is_binary = isinstance(column.type, types.LargeBinary)
        if policy is OddValues.TEXT and may_be_odd and not is_binary:
            as_text = _sqlite_text if dialect.name == "sqlite" else _text_of
            form = _Form(SchemaBuilder.string(), as_text)
        # SQLite reports its integer keys as nullable, but they are never null.
        self._becomes_null = policy is OddValues.NULL and may_be_odd and not column.primary_key
        optional = (column.nullable and not column.primary_key) or self._becomes_null
        self.schema: Schema = (form.builder.optional() if optional else form.builder).build()
        self.selected = as_selected(column, dialect)
        self._is_bytes = not has_encoding and self.schema.type is Type.STRING
        if self._is_bytes:
            # A text that is not UTF-8 would fail the query; a cast would cut a CHAR's spaces.
            raw = sa.func.convert_to(sa.func.format("%s", self.selected), "SQL_ASCII")
            self.selected = sa.case((column.is_not(None), raw))
            if form.convert is None:
                form = _Form(form.builder, _unicode, _all_unicode)
        self._convert, self._quick = form.convert, form.quick

    @property
    def target(self) -> str:
        """The name of the field's type, for errors."""
        name = self.schema.name
        return str(self.schema.type) if name is None else name.rpartition(".")[2]

    def values(self, found: Sequence[Any], odd: dict[int, tuple[ReadColumn, str]]) -> Sequence[Any]:
        """Return the values of a batch; add the rows with odd values to `odd`, with the reason."""
        convert = self._convert
        if convert is None:
            return found
        if self._is_bytes:
            found = [v if v is None else v.decode("utf-8", "surrogateescape") for v in found]
        try:
            quick = None if self._quick is None else self._quick(found)
            if quick is not None:
                return quick
            return [None if value is None else convert(value) for value in found]
        except _UNFIT:
            values: list[Any] = [None] * len(found)
            for row, value in enumerate(found):
                try:
                    values[row] = None if value is None else convert(value)
                except _UNFIT:
                    if not self._becomes_null:
                        odd.setdefault(row, (self, kind_of(value)))
            return values


def kind_of(value: object) -> str:
    """Return the kind of an odd value, without the value."""
    if not isinstance(value, str):
        kinds: Mapping[type, str] = {
            bytes: "a value of bytes",
            bool: "a boolean",
            int: "a whole number",
            float: "a number",
            Decimal: "a number",
        }
        return kinds.get(type(value), "a value of another type")
    found = (kind for pattern, kind in _KINDS if pattern.search(value))
    return next(found, "a text of another form")


_KINDS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"[\ud800-\udfff]"), "a text that is not valid Unicode"),
    (re.compile(r"^\[-?\d+:"), "an array whose first index is not 1"),
    (re.compile(r"^\{"), "an array with a null of JSON, beside that of SQL"),
    (re.compile(r"^[+-]?inf", re.IGNORECASE), "infinity"),
    (re.compile(r"^nan$", re.IGNORECASE), "NaN (not a number)"),
    (re.compile(r" BC$"), "a year before 1"),
    (re.compile(r"^\d{5,}-"), "a year after 9999"),
    (re.compile(r"^0000-|^\d{4}-00|^\d{4}-\d\d-00"), "a zero date"),
    (re.compile(r"^\d{4}-\d\d-\d\d$"), "a date that does not exist"),
    (re.compile(r"^\d{4}-\d\d-\d\d"), "a date or time that does not exist"),
    (re.compile(r"^24:00"), "the end of a day"),
    (re.compile(r"^-?\d{2,3}:\d\d:\d\d"), "a time that is negative or longer than a day"),
)


def _form(found: types.TypeEngine[Any], dialect: sa.Dialect, zone: ZoneInfo) -> _Form:  # noqa: C901  one case a type
    """Return how a column of a server is read."""
    if is_decimal(found):
        scale = getattr(found, "scale", None)
        if scale is None:
            return _Form(SchemaBuilder.string(), _text_of)
        if dialect.name in MYSQL:
            return _Form(decimal_builder(scale))
        return _Form(decimal_builder(scale), lambda v: _scaled(v, scale), may_be_odd=True)
    unsigned = bool(getattr(found, "unsigned", False))
    match found:
        case types.Boolean():
            return _Form(SchemaBuilder.boolean())
        case types.BigInteger() if unsigned:
            return _Form(SchemaBuilder.int64(), _int64, _all_int64, may_be_odd=True)
        case types.SmallInteger():
            return _Form(SchemaBuilder.int32() if unsigned else SchemaBuilder.int16())
        case types.Integer() if not isinstance(found, mysql.YEAR):
            is_wide = unsigned or isinstance(found, types.BigInteger)
            return _Form(SchemaBuilder.int64() if is_wide else SchemaBuilder.int32())
        case types.REAL():
            return _Form(SchemaBuilder.float32())
        case types.Float():
            return _Form(SchemaBuilder.float64())
        case types.DateTime():
            return _Form(timestamp_builder(), *_instants(UTC if has_zone(found) else zone), True)
        case types.Date():
            return _Form(date_builder(), _date, may_be_odd=True)
        case types.Time() if not found.timezone:
            return _Form(time_builder(), _time, may_be_odd=True)
        case mysql.BIT():
            return _Form(SchemaBuilder.bytes(), bytes)
        case _ if isinstance(found, BINARIES):
            return _Form(SchemaBuilder.bytes(), bytes)
        case postgresql.ARRAY():
            return _Form(SchemaBuilder.string(), _array, may_be_odd=True)
    if dialect.name == "postgresql":
        # Each was selected as text.
        return _Form(SchemaBuilder.string())
    return _Form(SchemaBuilder.string(), _text_of, _all_of(str))


def _sqlite_form(found: types.TypeEngine[Any], zone: ZoneInfo) -> _Form:
    """Return how a column of SQLite is read, where any value may be odd."""
    if is_decimal(found):
        scale = getattr(found, "scale", None)
        if scale is None:
            return _Form(SchemaBuilder.string(), _number_text)
        return _Form(decimal_builder(scale), lambda value: _scaled(_number_text(value), scale))
    match found:
        case types.Boolean():
            return _Form(SchemaBuilder.boolean(), {0: False, 1: True}.__getitem__)
        case types.Integer():
            return _Form(SchemaBuilder.int64(), _int64, _all_of(int))
        case types.Float():
            return _Form(SchemaBuilder.float64(), _float, _all_of(float))
        case types.DateTime():
            return _Form(timestamp_builder(), *_instants(zone))
        case types.Date():
            return _Form(date_builder(), _date)
        case types.Time():
            return _Form(time_builder(), _time)
        case _ if isinstance(found, BINARIES):
            return _Form(SchemaBuilder.bytes(), _bytes, _all_of(bytes))
        case types.String():
            return _Form(SchemaBuilder.string(), _unicode, _all_unicode)
    # JSON columns, and expressions in views, which have no type.
    return _Form(SchemaBuilder.string(), _sqlite_value_text)


def as_selected(column: sa.ColumnElement[Any], dialect: sa.Dialect) -> sa.ColumnElement[Any]:
    """Return the expression that a query selects for a column, with all digits."""
    selected, plain = column, types.NullType()
    match dialect.name, column.type:
        case "postgresql", postgresql.ARRAY():
            text = sa.cast(column, types.Text())
            # JSON has neither bounds of arrays nor two kinds of null.
            is_odd: sa.ColumnElement[bool] = sa.func.array_dims(column).op("!~")(r"^(\[1:\d+\])+$")
            item: types.TypeEngine[Any] = column.type.item_type
            while isinstance(item, postgresql.DOMAIN):
                item = item.data_type
            if isinstance(item, types.JSON):
                is_odd = sa.or_(is_odd, text.op("~")(r'[{,]"\s*null\s*"[,}]'))
            selected = sa.case((is_odd, text), else_=sa.cast(sa.func.to_json(column), types.Text()))
        case "postgresql", postgresql.MONEY():
            # The number has no currency and no separators of a locale.
            selected = sa.cast(sa.cast(column, types.Numeric()), types.Text())
        case (
            "postgresql",
            types.LargeBinary() | types.Boolean() | types.Integer() | types.Float() | types.CHAR(),
        ):
            # A cast would cut the spaces at the end of a CHAR.
            pass
        case "postgresql", postgresql.INET():
            # A cast would add a network length to an address.
            selected = sa.case((column.is_not(None), sa.func.format("%s", column)))
        case "postgresql", _:
            selected = sa.cast(column, types.Text())
        case ("mysql" | "mariadb", types.DateTime() | types.Date() | types.Time() | mysql.YEAR()):
            selected = sa.cast(column, types.CHAR())
        case "mysql" | "mariadb", mysql.FLOAT(scale=None):
            # The server writes only six digits of a FLOAT.
            return sa.type_coerce(column, plain) * sa.literal_column("1E0", plain)
        case "mysql" | "mariadb" | "sqlite", _:
            pass
        case _:
            return column
    return sa.type_coerce(selected, plain)


# Values. Each function raises one of `_UNFIT` for a value that does not fit.


def _instants(zone: tzinfo) -> tuple[Convert, _Quick | None]:
    def instant(value: Any) -> datetime:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        if moment.tzinfo is None:
            local, moment = moment, moment.replace(tzinfo=zone)
            found = moment.astimezone(UTC)
            if zone is not UTC and found.astimezone(zone).replace(tzinfo=None) != local:
                raise ValueError("an hour that clocks leave out")
            return found
        return moment.astimezone(UTC)

    def instants(values: Sequence[Any]) -> Sequence[Any] | None:
        try:
            # Parsing a zone costs less than adding one afterwards.
            parse, day = datetime.fromisoformat, len("2024-06-01")
            return [
                None if value is None else parse(value + ("+00:00" if len(value) > day else _DAY))
                for value in values
            ]
        except _UNFIT:
            # Some texts have a zone of their own, or no time.
            return None

    return instant, instants if zone is UTC or getattr(zone, "key", "") == "UTC" else None


def _date(value: Any) -> date:
    if isinstance(value, datetime) or (isinstance(value, str) and len(value) > len("2024-06-01")):
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        if moment.time() != time.min or moment.tzinfo is not None:
            raise ValueError("a time of day")
        return moment.date()
    return value if isinstance(value, date) else date.fromisoformat(value)


def _time(value: Any) -> time:
    if isinstance(value, str):
        if value.startswith("24"):
            raise ValueError("the end of a day")
        value = time.fromisoformat(value)
    if not isinstance(value, time) or value.tzinfo is not None:
        raise TypeError("not a time of day")
    return value


def _int64(value: Any) -> int:
    if value.__class__ is not int or not -_HIGHEST - 1 <= value <= _HIGHEST:
        raise ValueError("not an integer of 64 bits")
    return int(value)


def _all_int64(values: Sequence[Any]) -> Sequence[Any]:
    if max((value for value in values if value is not None), default=0) > _HIGHEST:
        raise ValueError("not an integer of 64 bits")
    return values


def _float(value: Any) -> float:
    if isinstance(value, int) and int(float(value)) == value:
        return float(value)
    if value.__class__ is not float:
        raise TypeError("not a number")
    return float(value)


def _bytes(value: Any) -> bytes:
    if value.__class__ is not bytes:
        raise TypeError("not bytes")
    return bytes(value)


def _scaled(value: Any, scale: int) -> Decimal:
    number = value if isinstance(value, Decimal) else Decimal(value)
    if not number.is_finite():
        raise ValueError("not finite")
    if number.as_tuple().exponent == -scale:
        return number
    return number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def _number_text(value: Any) -> str:
    """Return a number as a text that has all its digits."""
    if isinstance(value, float | int):
        return repr(value)
    Decimal(_unicode(value))
    return str(value)


def _text_of(value: Any) -> str:
    """Return the text of a value of a type that Connect does not have."""
    match value:
        case str():
            return value
        case bool():
            raise TypeError("not a text")
        case int() | float() | Decimal() | UUID():
            return f"{value}"
        case datetime() | date() | time():
            return value.isoformat()
    raise TypeError("not a text")


def _array(value: Any) -> str:
    if not re.match(r"\[(?!-?\d+:)", value):
        raise ValueError("not JSON")
    return _unicode(value)


def _unicode(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    value.encode()
    return value


def _all_unicode(values: Sequence[Any]) -> Sequence[Any]:
    # This fails for values that are not texts, and for bytes that were not UTF-8.
    "".join([value for value in values if value is not None]).encode()
    return values


def _sqlite_value_text(value: Any) -> str:
    """Return the text of a value in a column without a type."""
    return repr(value) if isinstance(value, float | int) else _unicode(value)


def _sqlite_text(value: Any) -> str:
    """Return any value as a text, bytes as a literal of SQL."""
    return f"X'{value.hex().upper()}'" if isinstance(value, bytes) else _sqlite_value_text(value)


def _all_of(usual: type) -> _Quick:
    """Return a quick conversion that keeps values which are all of one class."""
    expected = {usual, type(None)}
    return lambda values: values if set(map(type, values)) <= expected else None
