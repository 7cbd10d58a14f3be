"""Extractions, which are short texts for values of a record, as columns of Spark.

header:NAME         the last header of that name, as text
json:PATH           a member of the JSON value: `$.id`, or `id` for short
avro:PATH           a member of the Avro value; `Bench.records` has decoded it
key  key.json:PATH  the key as text, or a member of the JSON key
text  regex:RE      the value as text, or the first group of a pattern in it
timestamp           the record's timestamp in ms

A text that is not JSON has no members, nor has JSON with a repeated member or with more text behind
its value. Parsers find members in such texts, too, and round numbers; `canonical` does not.
"""

import re
from collections.abc import Collection, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.data_sides import MARK
from pyconnect_reconcile.document import check_extraction
from pyconnect_reconcile.values.canonical import document, with_marked
from pyconnect_reconcile.values.kinds import with_nested
from pyconnect_reconcile.values.releases import is_utf8

JSON_IN = {"json": "value", "key.json": "key"}
"""The column whose JSON has the members of an extraction."""
PARTITION_HEADER = "pyconnect.source.partition"
OFFSET_HEADER = "pyconnect.source.offset"
SEQUENCE_HEADER = "pyconnect.source.seq"
EPOCH_HEADER = "pyconnect.source.epoch"
_MEMBER = re.compile(r"json:(?:\$\.)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
_REST = 2**31 - 1
# Parsers change the form of numbers with points or exponents, and of arrays and objects.
_AS_WRITTEN = r"^[A-Za-z0-9_:/ -]+$"


def needs_headers(*extractions: str | None) -> bool:
    """Return whether one of the extractions needs headers."""
    return any(each is not None and each.startswith("header:") for each in extractions)


def with_text(records: DataFrame, name: str, extraction: str) -> DataFrame:
    """Return the records with an extracted value as text in a column; null without a value."""
    kind, _, path = extraction.partition(":")
    if kind not in JSON_IN:
        return records.withColumn(name, text_of(extraction))
    records = with_marked(records, sql.col(JSON_IN[kind]), "marked")
    found = without_mark(member_token(sql.col("marked"), path))
    return records.withColumn(name, found).drop("marked")


def text_of(extraction: str) -> Column:
    """Return the column of `with_text` for an extraction that is not a member of JSON."""
    check_extraction(extraction)
    kind, _, argument = extraction.partition(":")
    match kind:
        case "header":
            named = sql.filter("headers", lambda header: header["key"] == sql.lit(argument))
            return sql.element_at(named, -1)["value"].cast("string")
        case "avro":
            # The column is used once: Spark may compute its expression for each use.
            return sql.regexp_replace(f"`{extraction}`", f"^{MARK}[sj]?", "")
        case "regex":
            text = sql.col("value").cast("string")
            found = sql.regexp_extract(text, argument, 1)
            # Java reads bytes that are not UTF-8 as one replacement character.
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

    Texts in `whole` become bigint; a text that is not a whole number becomes null. One parse reads
    all members of the JSON value. Unless `exact`, the members of values that are not plain objects
    are null, too: one parse with types is faster than one that loses nothing.
    """
    members = {
        name: found["name"]
        for name, extraction in extractions.items()
        if (found := _MEMBER.fullmatch(extraction))
    }
    for name in extractions.keys() - members.keys():
        records = with_text(records, name, extractions[name])
        if name in whole:
            records = records.withColumn(name, _whole_number(sql.col(name)))
    if not members:
        return records
    text = sql.col("value").cast("string")
    if exact:
        records = with_marked(records, text, "marked")
        tokens = {name: member_token(sql.col("marked"), path) for name, path in members.items()}
        texts = {name: without_mark(token) for name, token in tokens.items()}
        columns = {n: _whole_number(each) if n in whole else each for n, each in texts.items()}
        return records.withColumns(columns).drop("marked")
    fields = sorted(members.items(), key=lambda item: item[0] in whole)
    kinds = (f"`{member}` {'BIGINT' if name in whole else 'STRING'}" for name, member in fields)
    # An object that ends at the only `}` of the text has no objects inside.
    ends = text.startswith("{") & (sql.instr(text, "}") == sql.length(text))
    proven = ends & ~text.contains("\\")
    for member in members.values():
        rest = sql.replace(text, sql.lit(f'"{member}"'), sql.lit(""))
        # The member must occur only once.
        proven &= sql.octet_length(rest) == sql.octet_length(text) - len(f'"{member}"')
    strict = {"allowSingleQuotes": "false"}
    parsed = sql.from_json(sql.when(proven, text), ", ".join(kinds), strict)
    records = records.withColumn("parsed", parsed)
    parts = {name: sql.col("parsed")[member] for name, member in members.items()}
    columns = {
        name: each if name in whole else sql.when(each.rlike(_AS_WRITTEN), each)
        for name, each in parts.items()
    }
    return records.withColumns(columns).drop("parsed")


def _whole_number(text: Column) -> Column:
    """Return a text as a number; null for other texts, fractions and numbers of over 64 bits."""
    # A cast alone would cut fractions off.
    return sql.when(text.rlike(r"^\s*[+-]?\d+(\.0*)?\s*$"), text.cast("bigint"))


def member_token(marked: Column, path: str) -> Column:
    """Return the token of a member of a marked text; null where the text is not JSON."""
    found = with_nested(sql.get_json_object(marked, json_path(path)))
    return sql.when(document(marked).isNotNull(), found)


def without_mark(token: Column) -> Column:
    """Return the text of a token; that of an array or object keeps its mark."""
    return (
        sql.when(token == f"{MARK}t", "true")
        .when(token == f"{MARK}f", "false")
        .when(token.startswith(f"{MARK}s"), token.substr(3, _REST))
        .when(token.startswith(f"{MARK}j"), token)
        .when(token.startswith(MARK), token.substr(2, _REST))
        .otherwise(token)
    )


def json_path(argument: str) -> str:
    """Return a path in Spark's form."""
    return argument if argument.startswith("$") else f"$.{argument}"
