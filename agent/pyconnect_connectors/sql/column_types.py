"""Column types of databases and schemas of Connect, in both directions.

SQLite keeps decimals as numbers or texts and has no type of its own for them: there, decimal
columns are read and bound as texts, which loses no digit.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from sqlalchemy import Column, Dialect, Table, types
from sqlalchemy.dialects import mysql, postgresql

from pyconnect_api import (
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
    date_builder,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_api.logical import scale_of
from pyconnect_api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME

Convert: TypeAlias = Callable[[Any], Any]  # values of a driver are of any class
ConvertColumn: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
_UTC = ZoneInfo("UTC")
_EXACT = Context(prec=2000)


def prepare_types(table: Table, dialect: Dialect) -> None:
    """Prepare a reflected table, so that the driver's values are of the schema's classes.

    SQLite would make binary floats of decimals, MariaDB and MySQL decimals of binary floats.
    """
    for column in table.columns:
        if dialect.name == "sqlite" and _is_decimal(column.type):
            column.info["scale"] = getattr(column.type, "scale", None)
            column.type = types.String()
        elif isinstance(column.type, types.Float):
            column.type.asdecimal = False


def has_zone(found: types.TypeEngine[Any]) -> bool:
    """Return whether values of a column are instants: TIMESTAMP of MariaDB is one in UTC."""
    return isinstance(found, types.DateTime) and (
        found.timezone or isinstance(found, mysql.TIMESTAMP)
    )


def schema_of(column: Column[Any], dialect: Dialect) -> Schema:
    """Return the schema of a column's values."""
    builder = _builder(column, dialect)
    # SQLite says of its integer keys that they may be null, which they are not.
    optional = column.nullable and not column.primary_key
    return (builder.optional() if optional else builder).build()


def reading(
    column: Column[Any], zone: ZoneInfo, dialect: Dialect, driver_type: object
) -> ConvertColumn | None:
    """Return a conversion from the driver's values to the schema's, None when they are the same.

    It takes a column of many rows; null stays null. `zone` is that of timestamps without one,
    `driver_type` is the driver's code of the column's type.
    """
    found = column.type
    if isinstance(found, types.DateTime):
        if dialect.name == "sqlite":
            return lambda values: _parsed_timestamps(values, zone, str(column))
        if dialect.name == "postgresql" and found.timezone:
            # The session's zone is UTC.
            return None
    process = found.dialect_impl(dialect).result_processor(dialect, driver_type)
    convert = _convert(column, zone)
    if process is None and convert is None:
        return None

    def read(values: Sequence[Any]) -> Sequence[Any]:
        if process is not None:
            values = list(map(process, values))
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        return values

    return read


def _convert(column: Column[Any], zone: ZoneInfo) -> Convert | None:
    found, name = column.type, str(column)
    if "scale" in column.info or _is_decimal(found):
        scale = column.info.get("scale", getattr(found, "scale", None))
        return str if scale is None else lambda value: _decimal(value, scale, name)
    match found:
        case types.DateTime() if zone.key == "UTC" or has_zone(found):
            return _aware_in_utc
        case types.DateTime():
            return lambda value: _aware(value, zone)
        case types.Time() if found.timezone:
            return lambda value: str(value.isoformat())
        case types.JSON():
            return lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        case mysql.BIT():
            size = ((found.length or 1) + 7) // 8
            return lambda value: value.to_bytes(size, "big")
        case types.LargeBinary() | types.BINARY() | types.VARBINARY():
            return bytes
        case (
            types.Boolean()
            | types.Integer()
            | types.Float()
            | types.Date()
            | types.Time()
            | types.String()
        ):
            return None
    return str


def _parsed_timestamps(values: Sequence[Any], zone: ZoneInfo, column: str) -> list[datetime | None]:
    """Parse the texts that SQLite stores."""
    parse = datetime.fromisoformat
    try:
        if zone.key == "UTC":
            # To parse a zone costs less than to add one afterwards.
            return [None if value is None else parse(value + "+00:00") for value in values]
        return [None if value is None else _aware(parse(value), zone) for value in values]
    except (TypeError, ValueError):
        # Some have a zone of their own, or no time.
        return [
            None if value is None else _aware(_parsed_timestamp(value, column), zone)
            for value in values
        ]


def _parsed_timestamp(value: object, column: str) -> datetime:
    try:
        return datetime.fromisoformat(value)  # type: ignore[arg-type]  # of any class in SQLite
    except (TypeError, ValueError) as error:
        raise DataException(f"A value of column {column} is not a timestamp") from error


def _builder(column: Column[Any], dialect: Dialect) -> SchemaBuilder:
    found = column.type
    if "scale" in column.info or _is_decimal(found):
        scale = column.info.get("scale", getattr(found, "scale", None))
        return SchemaBuilder.string() if scale is None else decimal_builder(scale)
    match found:
        case types.Boolean():
            return SchemaBuilder.boolean()
        case types.Integer():
            return _integer(found, dialect)
        case types.REAL() if dialect.name != "sqlite":
            return SchemaBuilder.float32()
        case types.Float():
            return SchemaBuilder.float64()
        case types.DateTime():
            return timestamp_builder()
        case types.Date():
            return date_builder()
        case types.Time() if not found.timezone:
            return time_builder()
        case types.LargeBinary() | types.BINARY() | types.VARBINARY() | mysql.BIT():
            return SchemaBuilder.bytes()
    return SchemaBuilder.string()


def _is_decimal(found: types.TypeEngine[Any]) -> bool:
    return isinstance(found, types.Numeric) and not isinstance(found, types.Float)


def _integer(found: types.Integer, dialect: Dialect) -> SchemaBuilder:
    wide = dialect.name == "sqlite" or isinstance(found, types.BigInteger)
    unsigned = bool(getattr(found, "unsigned", False))
    if wide or (unsigned and not isinstance(found, types.SmallInteger)):
        return SchemaBuilder.int64()
    if isinstance(found, types.SmallInteger) and not unsigned:
        return SchemaBuilder.int16()
    return SchemaBuilder.int32()


def _decimal(value: object, scale: int, column: str) -> Decimal:
    try:
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    except InvalidOperation as error:
        raise DataException(
            f"A value of column {column} is not a decimal with {scale} digits"
        ) from error


def _aware(value: datetime, zone: ZoneInfo) -> datetime:
    if value.tzinfo is None:
        value = value.replace(tzinfo=zone)
    return value.astimezone(UTC)


def _aware_in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_BASE_TYPES: Mapping[Type, type[types.TypeEngine[Any]]] = {
    Type.INT8: types.SmallInteger,
    Type.INT16: types.SmallInteger,
    Type.INT32: types.Integer,
    Type.INT64: types.BigInteger,
    Type.FLOAT32: types.REAL,
    Type.FLOAT64: types.Double,
    Type.BOOLEAN: types.Boolean,
    Type.BYTES: types.LargeBinary,
    Type.STRING: types.Text,
}


def column_type(schema: Schema, *, is_key: bool) -> types.TypeEngine[Any]:
    """Return the type of a column that the sink creates for a field."""
    match schema.name:
        case str(name) if name == DECIMAL_NAME:
            decimal = types.Numeric(38, scale_of(schema))
            return decimal.with_variant(types.Text(), "sqlite")
        case str(name) if name == TIMESTAMP_NAME:
            stamp = types.DateTime(timezone=True)
            return stamp.with_variant(mysql.DATETIME(fsp=3), "mysql", "mariadb")
        case str(name) if name == DATE_NAME:
            return types.Date()
        case str(name) if name == TIME_NAME:
            return types.Time()
    if schema.type is Type.STRING and is_key:
        return types.Text().with_variant(types.String(255), "mysql", "mariadb")
    base = _BASE_TYPES.get(schema.type)
    if base is None:
        return types.JSON().with_variant(postgresql.JSONB(), "postgresql")
    return base()


def writing(column: Column[Any], schema: Schema | None, zone: ZoneInfo) -> Convert | None:
    """Return a conversion from a record's value to the driver's, None when they are the same.

    `schema` is None for values without one. Null is not converted.
    """
    kind = None if schema is None else schema.type
    nested = kind in (None, Type.ARRAY, Type.MAP, Type.STRUCT)
    match column.type:
        case types.JSON():
            return plain
        case types.DateTime() if not column.type.timezone:
            local = _UTC if has_zone(column.type) else zone
            if local.key == "UTC":
                return _naive_in_utc
            return lambda value: _naive(value, local)
        case types.String() if nested or kind is Type.BYTES:
            return _text
    return None


def plain(value: object) -> object:
    """Return a value of JSON's types."""
    match value:
        case Struct():
            names = (field.name for field in value.schema.fields)
            return dict(zip(names, map(plain, value.stored_values()), strict=True))
        case Mapping():
            return {str(key): plain(entry) for key, entry in value.items()}
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case str():
            return value
        case Sequence():
            return list(map(plain, value))
    return value


def _naive(value: object, zone: ZoneInfo) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(zone).replace(tzinfo=None)
    return value


def _naive_in_utc(value: object) -> object:
    """Return an instant without its zone; most are in UTC already."""
    if value.__class__ is datetime and value.tzinfo is UTC:
        return value.replace(tzinfo=None)
    return _naive(value, _UTC)


def _text(value: object) -> object:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Struct | Mapping | list):
        return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False)
    return value
