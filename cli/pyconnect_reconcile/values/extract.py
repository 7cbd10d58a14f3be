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
from pyconnect_reconcile.tokens import MARK

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MEMBER = re.compile(r"json:(?:\$\.)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
JSON_IN = {"json": "value", "key.json": "key"}
"""The column whose JSON has the members of an extraction."""
PARTITION_HEADER = "pyconnect.source.partition"
OFFSET_HEADER = "pyconnect.source.offset"
SEQUENCE_HEADER = "pyconnect.source.seq"
EPOCH_HEADER = "pyconnect.source.epoch"


def needs_headers(*extractions: str | None) -> bool:
    """Return whether one of them looks into headers."""
    return any(each is not None and each.startswith("header:") for each in extractions)


def with_text(records: DataFrame, name: str, extraction: str) -> DataFrame:
    """Return the records with an extracted value as text in a column; null where there is none."""
    from pyspark.sql import functions as sql

    from pyconnect_reconcile.values.members import with_member

    kind, _, path = extraction.partition(":")
    if held := JSON_IN.get(kind):
        return with_member(records, name, sql.col(held), path)
    return records.withColumn(name, text_of(extraction))


def text_of(extraction: str) -> Column:
    """Return what `with_text` has, except for members of JSON, which are found in steps."""
    from pyspark.sql import functions as sql

    from pyconnect_reconcile.values.releases import is_utf8

    check_extraction(extraction)
    kind, _, argument = extraction.partition(":")
    match kind:
        case "header":
            named = sql.filter("headers", lambda header: header["key"] == sql.lit(argument))
            return sql.element_at(named, -1)["value"].cast("string")
        case "avro":
            # One use of the column: Spark may write what makes it once for each.
            return sql.regexp_replace(f"`{extraction}`", f"^{MARK}[sj]?", "")
        case "regex":
            text = sql.col("value").cast("string")
            found = sql.regexp_extract(text, argument, 1)
            # Java reads one character in place of any bytes that are no UTF-8.
            same = ~found.contains("\ufffd") | is_utf8(text)
            return sql.when((found != "") & same, found)
        case "key":
            return sql.col("key").cast("string")
        case "text":
            return sql.col("value").cast("string")
        case _:
            return sql.col("timestamp_ms").cast("string")


def with_texts(
    records: DataFrame,
    extractions: Mapping[str, str],
    *,
    whole: Collection[str] = (),
    exact: bool = True,
) -> DataFrame:
    """Return the records with extracted texts as columns of these names.

    Those in `whole` are expected to be whole numbers and become bigint; a text that is none becomes
    null. Members of the JSON value itself are read by one parse of it, however many they are; they
    are null in values that are no plain objects, too, unless `exact`.
    """
    from pyspark.sql import functions as sql

    from pyconnect_reconcile.values.members import whole_number, with_members

    members = {
        name: found["name"]
        for name, extraction in extractions.items()
        if (found := _MEMBER.fullmatch(extraction))
    }
    for name in extractions.keys() - members.keys():
        records = with_text(records, name, extractions[name])
        if name in whole:
            records = records.withColumn(name, whole_number(sql.col(name)))
    return with_members(records, members, whole=whole, exact=exact) if members else records


def json_path(argument: str) -> str:
    """Return a path in Spark's form."""
    return argument if argument.startswith("$") else f"$.{argument}"
