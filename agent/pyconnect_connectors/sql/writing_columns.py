"""Values of records as a column takes them, so that no database changes one of them silently.

A value is converted only if nothing is lost. These conversions refuse values that a driver or
database would round, cut, pad, wrap or reinterpret without an error; values that a database
refuses are left to it.
"""

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Column, Connection, Dialect, types
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.exc import DBAPIError

from pyconnect_api.validation import to_float32
from pyconnect_connectors.sql.column_types import (
    BINARIES,
    MYSQL,
    Name,
    NumericAffinity,
    fraction_step,
    has_zone,
    is_decimal,
    most_bytes,
    stored_bytes,
)
from pyconnect_connectors.sql.database import may_pass
from pyconnect_connectors.sql.writing_postgres import (
    UNFIT,
    Convert,
    Unfit,
    array_conversion,
    bits,
    checked_json,
    checked_members,
    hstore,
    instant_of,
    interval_conversion,
    is_changed,
    json_text,
    money,
    range_conversion,
    text_of,
    uncut_text,
)

_EXACT = Context(prec=2000, traps=[Inexact, InvalidOperation])
_FAR = r"-?infinity|\d{4,}-\d\d-\d\d%s(?: BC)?"
_CLOCK = r"[ T]\d\d:\d\d:[0-5]\d(\.\d{1,6})?"
_POSTGRES_TIMES = {
    "date": re.compile(_FAR % ""),
    "timestamp": re.compile(_FAR % _CLOCK),
    "timestamptz": re.compile(_FAR % (_CLOCK + r"[+-]\d\d(:\d\d){0,2}")),
}
"""Forms of times that PostgreSQL has and Python does not."""
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "0": "\0"}
"""Escapes in members of ENUM and SET, which SQLAlchemy does not resolve."""
_EXACT_FLOAT = 2**53
_NUMBER = re.compile(r"-?(0|[1-9]\d*)?(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
"""Texts that can only be numbers: 007 or +49 may be a code, whose digits count."""
_SQLITE_NUMBER = re.compile(r"[ \t-\r]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t-\r]*", re.ASCII)


class WriteColumn:
    """A column to write; null stays null. `becomes_null`: so does a value that does not fit.

    `is_key`: rows are found by the column, so that null is refused, which is equal to nothing.
    """

    def __init__(
        self,
        column: Column[Any],
        dialect: Dialect,
        zone: ZoneInfo,
        *,
        becomes_null: bool = False,
        is_key: bool = False,
        connection: Connection | None = None,
    ) -> None:
        """`connection` is used to ask PostgreSQL how it reads texts of unknown types."""
        self._connection = connection
        self._form, self._is_strict = column.info.get("server", (None, False))
        self.name = column.name
        self.target = (self._form or type(column.type).__name__).upper()
        self.becomes_null = becomes_null
        self._null_fault = "null in a key, which finds no row," if is_key else None
        is_numbered = (
            isinstance(column.type, types.Integer) and [*column.table.primary_key] == [column]
            if dialect.name == "sqlite"
            else dialect.name in MYSQL and column.autoincrement is True
        )
        if is_numbered and not is_key:
            self._null_fault = "null, which would become the next number,"
        if isinstance(column.type, mysql.TIMESTAMP) and not column.nullable:
            self._null_fault = "null, which would become the time of now,"
        self._same, self._convert = _conversion(column.type, dialect, zone)
        self._longest: int | None = None
        if isinstance(column.type, types.String) and dialect.name != "sqlite":
            self._longest = column.type.length
            if self._longest is None and dialect.name in MYSQL:
                self._longest = most_bytes(column.type) // 4  # the most bytes of a character

    def values(self, found: Sequence[Any]) -> Sequence[Any]:
        """Return the values of many rows; raise one of `UNFIT` if any does not fit."""
        if self._null_fault is not None and None in found:
            raise Unfit(self._null_fault)
        if (
            self._same is not None
            and self._form is None
            and set(map(type, found)) <= {self._same, type(None)}
            and (
                self._longest is None
                or max((len(text) for text in found if text is not None), default=0)
                <= self._longest
            )
        ):
            return found
        convert = self._convert
        values: list[Any] = []
        for value in found:
            try:
                values.append(None if value is None else convert(value))
            except UNFIT:
                if not self.becomes_null:
                    raise
                values.append(None)
        if self._connection is None or self._form is None:
            return values
        for row, text in enumerate(self._read_back(self._connection, values)):
            if text is not None and is_changed(values[row], text, strict=self._is_strict):
                if not self.becomes_null:
                    raise Unfit("a text that the column would change")
                values[row] = None
        return values

    def _read_back(self, connection: Connection, texts: Sequence[str]) -> Sequence[str | None]:
        """Return the texts as PostgreSQL has them; none if it refuses one, as the write will."""
        form = (self._form or "").replace("%", "%%")
        given = "unnest(%s::text[]) WITH ORDINALITY given (v, n)"
        query = f"SELECT v::{form}::text FROM {given} ORDER BY n"  # noqa: S608  PostgreSQL's own
        try:
            with connection.begin_nested() if connection.in_transaction() else connection.begin():
                return connection.exec_driver_sql(query, (texts,)).scalars().all()
        except UnicodeError:
            return []
        except DBAPIError as error:
            if may_pass(error):
                raise
            return []


def _conversion(  # noqa: C901  one case a type
    found: types.TypeEngine[Any], dialect: Dialect, zone: ZoneInfo
) -> tuple[type | None, Convert]:
    """Return the class whose values stay as they are, and the conversion of other values."""
    name = dialect.name
    if is_decimal(found):
        return None, _decimals(found, name)
    match found:
        case postgresql.JSONB():
            return None, lambda v: checked_members(_json(v, check=False))
        case types.JSON():
            return None, lambda v: _json(v, check=name == "sqlite")
        case types.DateTime():
            return None, _datetimes(found, name, zone)
        case types.Date():
            return None, lambda v: _date(v, name, zone)
        case types.Time():
            return None, _times(found, name)
        case types.Boolean():
            return bool, _boolean
        case mysql.YEAR():
            return None, _year
        case types.Integer():
            return (int if name != "sqlite" else None), lambda v: _integer(v, _most(name))
        case types.Float():
            narrow = isinstance(found, mysql.FLOAT) or (
                isinstance(found, types.REAL) and name == "postgresql"
            )
            scale = getattr(found, "scale", None)
            return (
                float if name == "postgresql" and not narrow else None,
                lambda v: _float(v, name, narrow=narrow, scale=scale),
            )
        case _ if isinstance(found, BINARIES):
            exact = found.length if isinstance(found, types.BINARY) and name in MYSQL else None
            return (None if exact else bytes), lambda v: _bytes(v, exact)
        case mysql.BIT():
            return (
                int,
                lambda v: (
                    int.from_bytes(v, "big") if isinstance(v, bytes) else _integer(v, 2**64 - 1)
                ),
            )
        case mysql.ENUM() | mysql.SET():
            texts = found.enums if isinstance(found, mysql.ENUM) else found.values
            members = frozenset(
                _ESCAPED.sub(lambda m: _ESCAPES.get(m[1], m[1]), text) for text in texts
            )
            return None, lambda v: _members(v, members, many=isinstance(found, mysql.SET))
        case types.String() if name != "sqlite" and found.length is not None:
            length, pads = found.length, isinstance(found, types.CHAR)
            # JDBC reads the value of a CHAR of PostgreSQL with all its spaces.
            filled = length if name == "postgresql" else None
            return (None if pads else str), lambda v: _short_text(v, length, pads, filled)
        case types.String() if name in MYSQL:
            return str, lambda v: _uncut(v, found)
        case postgresql.ARRAY():
            return None, array_conversion(
                _conversion(found.item_type, dialect, zone)[1], found.item_type
            )
        case postgresql.INTERVAL():
            return None, interval_conversion(found.precision, found.fields)
        case postgresql.DATERANGE() | postgresql.DATEMULTIRANGE():
            return None, range_conversion(clock=False)
        case postgresql.TSRANGE() | postgresql.TSMULTIRANGE():
            return None, range_conversion(zone=False)
        case postgresql.TSTZRANGE() | postgresql.TSTZMULTIRANGE():
            return None, range_conversion(zone=None if zone.key == "UTC" else True)
        case postgresql.BIT():
            return None, bits
        case postgresql.HSTORE():
            return None, hstore
        case postgresql.MONEY():
            return None, money
        case postgresql.OID():
            return None, lambda v: _integer(v, 2**32 - 1, least=0)
        case Name():
            return None, lambda v: uncut_text(v, found.longest_bytes)
        case types.NullType() if name == "sqlite":
            return None, _any_number if isinstance(found, NumericAffinity) else _any
    return str, text_of


# Conversions. None of them returns a value other than the record's.


def _json(value: Any, *, check: bool) -> str:
    """Return a value as JSON; a text is JSON already, as sources of JSON columns have it."""
    text = value if isinstance(value, str) else json_text(value)
    if check and re.fullmatch(r"\s*-?\d[\d.eE+-]*\s*", checked_json(text)):
        # SQLite turns the text into a number, which may lose digits.
        _decimals(types.Numeric(), "sqlite")(text.strip())
    return text


def _datetimes(found: Any, dialect: str, zone: ZoneInfo) -> Convert:
    local = UTC if isinstance(found, mysql.TIMESTAMP) else zone
    step = fraction_step(found, dialect)
    form = _POSTGRES_TIMES["timestamptz" if found.timezone else "timestamp"]

    def convert(value: Any) -> Any:
        if isinstance(value, str):
            try:
                moment = datetime.fromisoformat(value) if _ISO.fullmatch(value) else None
            except ValueError:
                moment = None
            if moment is None:
                matched = form.fullmatch(value) if dialect == "postgresql" else None
                if matched is None:
                    raise Unfit("a text that is not a time of ISO 8601")
                if int(f"{(matched[1] or '.0')[1:]:0<6}") % step:
                    raise Unfit("a fraction of a second with more digits than the column")
                return value
            value = moment
        elif isinstance(value, date) and not isinstance(value, datetime) and not has_zone(found):
            value = datetime.combine(value, time.min)
        if not isinstance(value, datetime):
            raise Unfit("a value that is not a time")
        if value.microsecond % step:
            raise Unfit("a fraction of a second with more digits than the column")
        if dialect == "postgresql" and found.timezone:
            return value if value.tzinfo is not None else instant_of(value, zone)
        if value.tzinfo is not None:
            value = value.astimezone(local).replace(tzinfo=None)
            if value.fold:
                raise Unfit("a time within the hour that clocks repeat")
        return value.isoformat(" ", "microseconds") if dialect == "sqlite" else value

    return convert


def _date(value: Any, dialect: str, zone: ZoneInfo) -> Any:
    if isinstance(value, str):
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", value) or value.startswith("0000"):
            if dialect == "postgresql" and _POSTGRES_TIMES["date"].fullmatch(value):
                return value
            raise Unfit("a text that is not a date")
        try:
            value = date.fromisoformat(value)
        except ValueError:
            raise Unfit("a date that does not exist") from None
    if isinstance(value, datetime):
        local = value if value.tzinfo is None else value.astimezone(zone)
        if local.time() != time.min:
            raise Unfit("a time of day")
        value = local.date()
    if not isinstance(value, date):
        raise Unfit("a value that is not a date")
    return value.isoformat() if dialect == "sqlite" else value


def _times(found: Any, dialect: str) -> Convert:
    step = fraction_step(found, dialect)
    digits = 6 - round(math.log10(step))
    longer = r"-?\d{2,3}" if dialect in MYSQL else r"\d\d"
    zone = r"([+-]\d\d(:\d\d){0,2})?" if found.timezone else ""
    form = re.compile(longer + r":\d\d:[0-5]\d(\.(\d{1,6}))?" + zone)

    def convert(value: Any) -> Any:
        if isinstance(value, str):
            matched = form.fullmatch(value)
            if matched is None:
                raise Unfit("a text that is not a time of day")
            if len((matched[2] or "").rstrip("0")) > digits:
                raise Unfit("a fraction of a second with more digits than the column")
            return value
        if value.__class__ is not time:
            raise Unfit("a value that is not a time of day")
        if value.microsecond % step:
            raise Unfit("a fraction of a second with more digits than the column")
        return value.isoformat("microseconds") if dialect == "sqlite" else value

    return convert


def _boolean(value: Any) -> bool:
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise Unfit("a value that is neither true nor false")


def _year(value: Any) -> str:
    """Return a year of four digits; MariaDB would make 2069 of 69."""
    text = f"{value:04d}" if value.__class__ is int else value
    if isinstance(text, str) and re.fullmatch(r"0000|19\d\d|2[01]\d\d", text):
        return text
    raise Unfit("a value that is not a year of four digits")


def _most(dialect: str) -> int:
    """Return the highest integer that a driver takes; PostgreSQL itself refuses some of them."""
    return 2**63 - 1 if dialect == "sqlite" else 2**64 - 1


def _integer(value: Any, most: int, least: int = -(2**63)) -> int:
    number = value
    match value:
        case int():
            number = int(value)
        case str() if re.fullmatch(r"0|-?[1-9]\d{,99}", value, re.ASCII):
            number = int(value)
        case Decimal() if value.is_finite() and value.adjusted() < 100:
            number = int(value)
        case float() if abs(value) <= _EXACT_FLOAT:
            number = int(value)
        case _:
            raise Unfit("a value that is not a whole number")
    if not isinstance(value, str) and number != value:
        raise Unfit("a number with a fraction")
    if not least <= number <= most:
        raise Unfit("a whole number of more than 64 bits" if least else "a number out of range")
    return number


def _float(value: Any, dialect: str, *, narrow: bool, scale: int | None = None) -> float:
    """Return a float that the column gives back with the same digits."""
    is_usual = isinstance(value, float) and math.isfinite(value) and scale is None
    if is_usual and (not narrow or to_float32(value) == value):
        return float(value)
    exact = _exact_number(value)
    number = float(exact)
    if not exact.is_finite():
        if dialect in MYSQL or (dialect == "sqlite" and exact.is_nan()):
            raise Unfit("NaN (not a number)" if exact.is_nan() else "infinity")
        return number
    held = to_float32(number) if narrow else number
    digits = len(exact.as_tuple().digits)
    if digits <= (6 if narrow else 15):
        shown = f"{held:.{digits - 1}e}"
    elif narrow and math.isfinite(held):
        # The shortest text that means the same in 4 bytes, as `repr` returns it for 8.
        texts = (f"{held:.{precision}g}" for precision in range(6, 10))
        shown = next(text for text in texts if to_float32(float(text)) == held)
    else:
        shown = repr(held)
    if Decimal(shown) != exact:
        raise Unfit(f"a number with more digits than a float of {4 if narrow else 8} bytes has")
    if scale is not None and round(exact, scale) != exact:
        raise Unfit("a number with more digits than the column's scale")
    # The column holds this value: a key of 4 bytes is not equal to another number of 8.
    return held


def _exact_number(value: Any) -> Decimal:
    """Return a number with all its digits; PostgreSQL and Java name NaN and infinity alike."""
    if isinstance(value, str):
        if value not in ("NaN", "Infinity", "-Infinity") and not _NUMBER.fullmatch(value):
            raise Unfit("a text that is not a number")
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Unfit("a value that is not a number")
    try:
        return Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise Unfit("a text that is not a number") from None


def _decimals(found: Any, dialect: str) -> Convert:
    scale = getattr(found, "scale", None)

    def convert(value: Any) -> Any:
        number = _exact_number(value)
        if not number.is_finite():
            if dialect == "postgresql":
                return number
            raise Unfit("NaN (not a number)" if number.is_nan() else "infinity")
        if scale is not None:
            try:
                number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
            except ArithmeticError:
                raise Unfit("a number with more digits than the column's scale") from None
        if dialect != "sqlite":
            return number
        whole = number == number.to_integral_value() and abs(number) < 2**63
        if not whole and Decimal(repr(float(number))) != number:
            raise Unfit("a number with more digits than SQLite keeps in a column of numbers")
        return f"{number:f}"

    return convert


def _bytes(value: Any, exact: int | None) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise Unfit("a value that is not bytes")
    if exact is not None and len(value) < exact:
        raise Unfit("fewer bytes than the column has, which would be filled up")
    return bytes(value)


def _members(value: Any, members: frozenset[str], *, many: bool) -> str:
    """Return a text of members; the database would read another text as a member's number."""
    if not isinstance(value, str):
        raise Unfit("a value that is not a text")
    texts = value.split(",") if many and value else [value]
    if not (set(texts) <= members or (many and not value)):
        raise Unfit("a text that is not one of the column's")
    if len(set(texts)) < len(texts):
        raise Unfit("a member twice, of which the column keeps one,")
    return value


def _short_text(value: Any, length: int, pads: bool, filled: int | None) -> str:
    """Return a text of at most `length`; databases cut spaces at the end without an error."""
    text = text_of(value)
    if len(text) > length:
        raise Unfit(f"a text of more than {length} characters")
    if pads and text.endswith(" ") and len(text) != filled:
        raise Unfit("a text with spaces at the end, which the column does not keep")
    return text


def _uncut(value: Any, found: types.String) -> str:
    """Return a text; MariaDB cuts spaces at the end of a longer one without an error."""
    text = text_of(value)
    if text[-1:] == " " and stored_bytes(text, found) > most_bytes(found):
        raise Unfit(f"a text of more than {most_bytes(found)} bytes, whose end would be cut,")
    return text


def _any(value: Any) -> Any:
    """Return a value as SQLite stores it in a column without a type."""
    match value:
        case float():
            return _float(value, "sqlite", narrow=False)
        case bool() | int():
            return _integer(value, _most("sqlite"))
        case bytes():
            return value
    return text_of(value)


def _any_number(value: Any) -> Any:
    """Return a value as SQLite stores it in a column that turns texts of numbers into numbers."""
    if isinstance(value, Decimal):
        return _decimals(types.Numeric(), "sqlite")(value)
    if isinstance(value, str) and _SQLITE_NUMBER.fullmatch(value):
        raise Unfit("a text that SQLite would make a number of")
    return _any(value)
