"""The kinds of columns: tokens (`canonical`) of the forms that JSON has for a column's values.

JSON has no instants, dates, times and bytes: it writes texts or numbers, and JsonConverter writes
decimals as the Base64 of their digits in two's complement. Next to a column of such a kind these
forms are read strictly. A value that is not of the kind is not changed, and equals no value of it.
"""

import re
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from pyconnect_reconcile.data_sides import DOCUMENT, MARK, NUMERIC, TIME
from pyconnect_reconcile.spec import ColumnRule
from pyconnect_reconcile.values import canonical
from pyconnect_reconcile.values.canonical import INTEGRAL, Step, member_name, nested
from pyconnect_reconcile.values.releases import canonical_json

NUMBER_TYPES = re.compile(r"(tiny|small|big)?int|float|double|decimal.*|numeric|number")
_UNITS = {"timestamp_ms": 3, "timestamp_s": 6, "timestamp_us": 0, "timestamp": 3}
# `$` would also match before a line end.
_ISO = r"^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?(?:Z|[+-]\d\d:\d\d)?)?\z"
CLOCK = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?\z"
_SIX = "[A-Za-z0-9+/]"
# Bits behind the last byte must be zero: otherwise two texts would be one value.
_BASE64 = rf"^(?:{_SIX}{{4}})*(?:{_SIX}[AQgw]==|{_SIX}{{2}}[AEIMQUYcgkosw048]=)?\z"
_PLAIN_NUMBER = r"^(?:-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?|NaN|-?Infinity)\z"
_REST = 2**31 - 1
_INTEGER = f"^{MARK}-?[0-9]+$"
_BYTES_OF_38_DIGITS, _PART = 15, 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One column that is compared.

    `kind` is its type: the rule's, else that of the side that has types. `untyped` is a
    column of texts that may stand for numbers (CSV). `held` is the type of the sink's own column.
    `nested` is the type of arrays and objects with leaves that JSON lacks, such as instants;
    `base64`: decimals in them are Base64.
    """

    rule: ColumnRule
    kind: str
    nested: DataType | None = None
    base64: bool = False
    untyped: bool = False
    held: str | None = None


def is_held(found: Column, held: str) -> Column:
    """Return whether a column of a type can hold a value; null counts as held."""
    if held == DOCUMENT:
        return sql.lit(True)
    number = found.rlike(f"^{MARK}-?[0-9]")
    digits = found.substr(2, _REST)
    if held in INTEGRAL:
        most = 2 ** (INTEGRAL[held] - 1)
        fits = digits.cast("decimal(38,0)").between(sql.lit(-most), sql.lit(most - 1))
        can = found.rlike(_INTEGER) & (sql.length(digits) <= 20) & fits
    elif held.startswith("decimal"):
        precision, _, scale = held[8:-1].partition(",")
        whole = int(precision) - int(scale or 0)
        can = found.rlike(
            f"^{MARK}-?(0|[0-9]{{{min(whole, 1)},{whole}}})"
            f"([.][0-9]{{1,{max(int(scale or 0), 1)}}})?$"
        ) & (~found.contains(".") if int(scale or 0) == 0 else sql.lit(True))
    elif held in {"double", "float"}:
        shown = canonical.number_text(canonical.shortest(held, digits.cast(held).cast("string")))
        can = (number & (shown == digits)) | found.rlike(f"^{MARK}[-NI]+[a-zA-Z]")
    else:
        first = {
            "boolean": "[tf]", "timestamp": "i", "timestamp_ntz": "i", "date": "d", "binary": "b",
            TIME: "c", NUMERIC: "[-0-9NI]",
        }.get(held, "[js]")  # fmt: skip
        can = found.rlike(f"^{MARK}{first}")
        if held == "string":
            can = ~found.startswith(MARK) | found.startswith(f"{MARK}s")
    return sql.coalesce(can, sql.lit(True))


def kind_steps(column: Compared) -> list[Step]:
    """Return the steps from a member's or a column's token to its token in this kind of column.

    A token that is not of the kind is not changed: then it equals no token of the kind.
    """
    kind = column.kind
    steps: list[Step] = [with_nested]
    if "struct<" in kind:
        steps.append(
            lambda found: sql.when(
                found.startswith(f"{MARK}j"), canonical.without_nulls(found)
            ).otherwise(found)
        )
    if (null := column.rule.null) is not None:
        steps.append(lambda value: sql.when(value != null, value))
    if column.untyped:
        steps.append(partial(of_untyped, kind))
    steps += _leaf_steps(kind)
    if (nested_type := column.nested) is not None:

        def with_read_leaves(found: Column) -> Column:
            text = canonical.without_nulls(found.substr(3, _REST))
            parsed = sql.from_json(text, _with_texts(nested_type))
            # A value with more members than the type, or in another form, is not changed.
            same = canonical_json(sql.to_json(parsed)) == text
            read = nested(sql.to_json(_read(parsed, nested_type, column.base64)))
            return sql.when(found.startswith(f"{MARK}j") & same, read).otherwise(found)

        steps.append(with_read_leaves)
    return steps


def _leaf_steps(kind: str) -> list[Step]:
    """Return the step that reads JSON's form of a value of a kind; empty if none is needed."""

    def instant(value: Column) -> Column:
        micros = sql.concat(value, sql.lit("0" * _UNITS[kind])).substr(2, _REST)
        read = sql.when(value.rlike(_ISO), value.cast("timestamp"))
        number = (
            sql.when(value == f"{MARK}0", "0")
            .when(value.rlike(_INTEGER), micros)
            .otherwise(sql.unix_micros(read).cast("string"))
        )
        return sql.coalesce(sql.concat(sql.lit(f"{MARK}i"), number), value)

    def binary(value: Column) -> Column:
        hexed = sql.concat(sql.lit(f"{MARK}b"), sql.hex(sql.unbase64(value)))
        return sql.when(value.rlike(_BASE64), hexed).otherwise(value)

    def date(value: Column) -> Column:
        days = sql.concat(sql.lit(f"{MARK}d"), value.substr(2, _REST))
        read = sql.when(value.rlike(r"^\d{4}-\d\d-\d\d\z"), value.cast("date"))
        text = sql.concat(sql.lit(f"{MARK}d"), sql.unix_date(read).cast("string"))
        return sql.when(value.rlike(_INTEGER), days).otherwise(sql.coalesce(text, value))

    found = {"date": date, TIME: clock, "binary": binary, **dict.fromkeys(_UNITS, instant)}
    return [found[kind]] if kind in found else []


def leaves_to_read(kind: DataType) -> bool:
    """Return whether a type has leaves that JSON writes as texts or numbers."""
    match kind:
        case StructType():
            return any(leaves_to_read(field.dataType) for field in kind)
        case ArrayType():
            return leaves_to_read(kind.elementType)
        case MapType():
            return leaves_to_read(kind.valueType)
    return isinstance(kind, DecimalType) or bool(_leaf_steps(_leaf_kind(kind)))


def _leaf_kind(kind: DataType) -> str:
    return "timestamp" if isinstance(kind, TimestampNTZType) else kind.simpleString()


def _with_texts(kind: DataType) -> DataType:
    """Return a type with texts as its leaves; its names are those in a marked text."""
    match kind:
        case StructType():
            return StructType(
                [StructField(member_name(each.name), _with_texts(each.dataType)) for each in kind]
            )
        case ArrayType():
            return ArrayType(_with_texts(kind.elementType))
        case MapType():
            return MapType(StringType(), _with_texts(kind.valueType))
    return StringType()


def _read(value: Column, kind: DataType, base64: bool) -> Column:
    match kind:
        case StructType():
            fields = [
                _read(value[name := member_name(each.name)], each.dataType, base64).alias(name)
                for each in kind
            ]
            return sql.when(value.isNotNull(), sql.struct(*fields))
        case ArrayType():
            return sql.transform(value, lambda each: _read(each, kind.elementType, base64))
        case MapType():
            return sql.transform_values(value, lambda _, each: _read(each, kind.valueType, base64))
        case DecimalType() if base64:
            return of_base64(value, kind.scale)
    for step in _leaf_steps(_leaf_kind(kind)):
        value = step(value)
    return value


def of_base64(found: Column, scale: int) -> Column:
    """Return the token of a decimal whose digits are in Base64; a number is not changed."""
    number = sql.unbase64(found)
    short = sql.length(number) <= _BYTES_OF_38_DIGITS

    def byte(index: Column) -> Column:
        return sql.conv(sql.hex(number.substr(index, sql.lit(1))), 16, 10).cast("int")

    first = byte(sql.lit(1))
    signed = sql.when(first >= 128, first - 256).otherwise(first).cast("decimal(38,0)")
    rest = sql.filter(sql.sequence(sql.lit(1), sql.length(number)), lambda index: index > 1)
    digits = sql.aggregate(
        rest, signed, lambda total, index: (total * 256 + byte(index)).cast("decimal(38,0)")
    )
    # Spark's numbers have at most 38 digits.
    whole = sql.when(short, digits.cast("string")).otherwise(_long_number(number))
    written = sql.concat(whole, sql.lit(f"E{-scale}"))
    token = canonical.once(written, canonical.number_token)
    return sql.when(found.rlike(_BASE64), token).otherwise(found)


def with_nested(found: Column) -> Column:
    return sql.when(found.substr(1, 1).isin("{", "["), nested(found)).otherwise(found)


def clock(value: Column) -> Column:
    """Return the token of a time of day: a text, or a number of milliseconds since midnight."""
    moment = sql.concat(sql.lit("1970-01-01 "), value).cast("timestamp")
    micros = sql.when(value.rlike(CLOCK), sql.unix_micros(moment).cast("string"))
    text = sql.concat(sql.lit(f"{MARK}c"), micros)
    zeros = sql.when(value == f"{MARK}0", "").otherwise("000")
    number = sql.concat(sql.lit(f"{MARK}c"), value.substr(2, _REST), zeros)
    return sql.when(value.rlike(_INTEGER), number).otherwise(sql.coalesce(text, value))


def of_untyped(kind: str, value: Column) -> Column:
    """Return the same token for a value of this kind and for a text that stands for it."""
    if NUMBER_TYPES.fullmatch(kind):
        digits = sql.regexp_replace(value, "^(-?)0+(?=[0-9])", "$1")
        number = canonical.number_token(digits)
        return sql.when(value.rlike(_PLAIN_NUMBER), number).otherwise(value)
    if kind == "boolean":
        truth = sql.when(value == "true", f"{MARK}t").when(value == "false", f"{MARK}f")
        return truth.otherwise(value)
    if kind == "string":
        return (
            sql.when(value == f"{MARK}t", "true")
            .when(value == f"{MARK}f", "false")
            .when(value.rlike(f"^{MARK}[-0-9NI]"), value.substr(2, _REST))
            .otherwise(value)
        )
    return value


def _long_number(number: Column) -> Column:
    """Return the text of a number in two's complement, computed in parts of nine digits."""
    empty = sql.array().cast("array<bigint>")
    negative = sql.conv(sql.hex(number.substr(1, 1)), 16, 10).cast("int") >= 128

    def with_byte(parts: Column, index: Column) -> Column:
        found = sql.conv(sql.hex(number.substr(index, sql.lit(1))), 16, 10).cast("bigint")
        # Two's complement: all bits inverted, plus one at the last byte.
        last = sql.when(index == sql.length(number), 1).otherwise(0)
        added = sql.when(negative, 255 - found + last).otherwise(found)
        start = sql.struct(empty.alias("parts"), added.alias("carry"))
        return sql.aggregate(parts, start, next_part, with_carry)

    def next_part(done: Column, part: Column) -> Column:
        total = part * 256 + done["carry"]
        parts = sql.concat(done["parts"], sql.array(total % _PART))
        return sql.struct(parts.alias("parts"), sql.floor(total / _PART).alias("carry"))

    def with_carry(done: Column) -> Column:
        carried = sql.concat(done["parts"], sql.array(done["carry"]))
        return sql.when(done["carry"] > 0, carried).otherwise(done["parts"])

    indexes = sql.sequence(sql.lit(1), sql.length(number))
    parts = sql.aggregate(indexes, empty, with_byte)
    texts = sql.transform(sql.reverse(parts), lambda part: sql.lpad(part.cast("string"), 9, "0"))
    digits = sql.regexp_replace(sql.array_join(texts, ""), "^0+(?=[0-9])", "")
    return sql.concat(sql.when(negative, "-").otherwise(""), digits)
