"""Decimals as Connect writes them in JSON: Base64 of their digits in two's complement."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sql

_BYTES_OF_38_DIGITS, _PART = 15, 10**9


def decoded(text: Column, scale: int) -> Column:
    """Return the decimal of a scale whose digits, in two's complement, are in Base64."""
    number = sql.unbase64(text)
    short = sql.length(number) <= _BYTES_OF_38_DIGITS

    def byte(index: Column) -> Column:
        return sql.conv(sql.hex(number.substr(index, sql.lit(1))), 16, 10).cast("int")

    first = byte(sql.lit(1))
    signed = sql.when(first >= 128, first - 256).otherwise(first).cast("decimal(38,0)")
    rest = sql.filter(sql.sequence(sql.lit(1), sql.length(number)), lambda index: index > 1)
    digits = sql.aggregate(
        rest, signed, lambda total, index: (total * 256 + byte(index)).cast("decimal(38,0)")
    )
    # Spark's numbers end at 38 digits.
    whole = sql.when(short, digits.cast("string")).otherwise(_long_number(number))
    return sql.concat(whole, sql.lit(f"E{-scale}"))


def _long_number(number: Column) -> Column:
    """Return the text of a number in two's complement, computed in parts of nine digits."""
    empty = sql.array().cast("array<bigint>")
    negative = sql.conv(sql.hex(number.substr(1, 1)), 16, 10).cast("int") >= 128

    def with_byte(parts: Column, index: Column) -> Column:
        found = sql.conv(sql.hex(number.substr(index, sql.lit(1))), 16, 10).cast("bigint")
        # A negative number is the complement of what is one less than its opposite.
        last = sql.when(index == sql.length(number), 1).otherwise(0)
        added = sql.when(negative, 255 - found + last).otherwise(found)
        start = sql.struct(empty.alias("parts"), added.alias("carry"))
        return sql.aggregate(parts, start, _next_part, _with_carry)

    indexes = sql.sequence(sql.lit(1), sql.length(number))
    parts = sql.aggregate(indexes, empty, with_byte)
    texts = sql.transform(sql.reverse(parts), lambda part: sql.lpad(part.cast("string"), 9, "0"))
    digits = sql.regexp_replace(sql.array_join(texts, ""), "^0+(?=[0-9])", "")
    return sql.concat(sql.when(negative, "-").otherwise(""), digits)


def _next_part(done: Column, part: Column) -> Column:
    total = part * 256 + done["carry"]
    parts = sql.concat(done["parts"], sql.array(total % _PART))
    return sql.struct(parts.alias("parts"), sql.floor(total / _PART).alias("carry"))


def _with_carry(done: Column) -> Column:
    return sql.when(
        done["carry"] > 0, sql.concat(done["parts"], sql.array(done["carry"]))
    ).otherwise(done["parts"])
