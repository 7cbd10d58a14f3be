"""Extractions, which are short texts for values of a record, as columns of Spark.

header:NAME         the last header of that name, as text
json:PATH           a member of the JSON value: `$.id`, or `id` for short
avro:PATH           a member of the Avro value; `Bench.records` has decoded it
key  key.json:PATH  the key as text, or a member of the JSON key
text  regex:RE      the value as text, or the first group of a pattern in it
timestamp           the record's timestamp in ms
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyconnect_reconcile.extractions import check_extraction

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MEMBER = re.compile(r"json:(?:\$\.)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
PARTITION_HEADER = "pyconnect.source.partition"
OFFSET_HEADER = "pyconnect.source.offset"
SEQUENCE_HEADER = "pyconnect.source.seq"
EPOCH_HEADER = "pyconnect.source.epoch"


def needs_headers(*extractions: str | None) -> bool:
    """Return whether one of them looks into headers."""
    return any(each is not None and each.startswith("header:") for each in extractions)


def text_of(extraction: str) -> Column:
    """Return the extracted value as text; null where there is none."""
    from pyspark.sql import functions as sql

    check_extraction(extraction)
    kind, _, argument = extraction.partition(":")
    match kind:
        case "header":
            named = sql.filter("headers", lambda header: header["key"] == sql.lit(argument))
            return sql.element_at(named, -1)["value"].cast("string")
        case "avro":
            return sql.col(f"`{extraction}`")
        case "json":
            return sql.get_json_object(sql.col("value").cast("string"), json_path(argument))
        case "key.json":
            return sql.get_json_object(sql.col("key").cast("string"), json_path(argument))
        case "regex":
            found = sql.regexp_extract(sql.col("value").cast("string"), argument, 1)
            return sql.when(found != "", found)
        case "key":
            return sql.col("key").cast("string")
        case "text":
            return sql.col("value").cast("string")
        case _:
            return sql.col("timestamp_ms").cast("string")


def with_texts(
    records: DataFrame, extractions: Mapping[str, str], *, whole: Collection[str] = ()
) -> DataFrame:
    """Return the records with extracted texts as columns of these names.

    Those in `whole` are expected to be whole numbers and become bigint; a text that is none becomes
    null. Members of the JSON value itself are read by one parse of it, however many they are.
    """
    from pyspark.sql import functions as sql

    members = {
        name: found["name"]
        for name, extraction in extractions.items()
        if (found := _MEMBER.fullmatch(extraction))
    }
    for name in extractions.keys() - members.keys():
        column = text_of(extractions[name])
        records = records.withColumn(name, _whole(column) if name in whole else column)
    if not members:
        return records
    types = {
        member: "BIGINT" if name in whole else "STRING"
        for name, member in sorted(members.items(), key=lambda item: item[0] in whole)
    }
    schema = ", ".join(f"`{member}` {kind}" for member, kind in types.items())
    text = sql.col("value").cast("string")
    # Of an array `from_json` takes the first element: it is no place of the whole value.
    value = sql.when(~text.startswith("["), text)
    records = records.withColumn("extracted", sql.from_json(value, schema))
    columns = {}
    for name, member in members.items():
        # A parse as numbers is quicker than one as texts, but takes numbers in texts for none, and
        # what it cannot take makes others null: only then it is parsed again.
        text = sql.from_json(value, f"`{member}` STRING")[member]
        again = _whole(text) if name in whole else text
        columns[name] = sql.coalesce(sql.col("extracted")[member].cast(_type(name in whole)), again)
    return records.withColumns(columns).drop("extracted")


def _whole(text: Column) -> Column:
    """Return a text as a number; null where it is none, has a fraction or needs over 64 bits."""
    from pyspark.sql import functions as sql

    # A cast alone would cut fractions off.
    return sql.when(text.rlike(r"^\s*[+-]?\d+(\.0*)?\s*$"), text.cast("bigint"))


def _type(whole: bool) -> str:
    return "bigint" if whole else "string"


def json_path(argument: str) -> str:
    """Return a path in Spark's form."""
    return argument if argument.startswith("$") else f"$.{argument}"
