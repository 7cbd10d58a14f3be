"""Members of JSON texts, found without a change of what is in them.

A text that is not JSON has no members: none with something behind its value, none with a member
twice. Parsers find members in such texts, too, and round numbers on the way; `canonical` does not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.tokens import MARK
from pyconnect_reconcile.values.canonical import document, with_marked
from pyconnect_reconcile.values.extract import json_path
from pyconnect_reconcile.values.normal import with_nested

_REST = 2**31 - 1
# Parsers write numbers with points or exponents in another way, and arrays and objects.
_AS_WRITTEN = r"^[A-Za-z0-9_:/ -]+$"


def member_token(marked: Column, path: str) -> Column:
    """Return the token of a member of a marked text; null where the text is not JSON."""
    found = with_nested(sql.get_json_object(marked, json_path(path)))
    return sql.when(document(marked).isNotNull(), found)


def with_member(records: DataFrame, name: str, text: Column, path: str) -> DataFrame:
    """Return the records with a member of a JSON text as a text."""
    records = with_marked(records, text, "marked")
    found = without_mark(member_token(sql.col("marked"), path))
    return records.withColumn(name, found).drop("marked")


def with_members(
    records: DataFrame, members: Mapping[str, str], *, whole: Collection[str], exact: bool
) -> DataFrame:
    """Return the records with members of their JSON values as texts, by name of the column.

    Those in `whole` become bigint as by `whole_number`. Unless `exact`, they are null in values
    that are no plain objects: one parse with types is quicker than one that loses nothing.
    """
    text = sql.col("value").cast("string")
    if exact:
        records = with_marked(records, text, "marked")
        tokens = {name: member_token(sql.col("marked"), path) for name, path in members.items()}
        texts = {name: without_mark(token) for name, token in tokens.items()}
        columns = {n: whole_number(each) if n in whole else each for n, each in texts.items()}
        return records.withColumns(columns).drop("marked")
    fields = sorted(members.items(), key=lambda item: item[0] in whole)
    kinds = (f"`{member}` {'BIGINT' if name in whole else 'STRING'}" for name, member in fields)
    proven = reduce(and_, (_is_once(text, member) for member in members.values()), _is_plain(text))
    strict = {"allowSingleQuotes": "false"}
    parsed = sql.from_json(sql.when(proven, text), ", ".join(kinds), strict)
    records = records.withColumn("parsed", parsed)
    found = {name: sql.col("parsed")[member] for name, member in members.items()}
    columns = {
        name: each if name in whole else sql.when(each.rlike(_AS_WRITTEN), each)
        for name, each in found.items()
    }
    return records.withColumns(columns).drop("parsed")


def whole_number(text: Column) -> Column:
    """Return a text as a number; null where it is none, has a fraction or needs over 64 bits."""
    # A cast alone would cut fractions off.
    return sql.when(text.rlike(r"^\s*[+-]?\d+(\.0*)?\s*$"), text.cast("bigint"))


def _is_plain(text: Column) -> Column:
    """Return whether a text in which Spark finds an object is one without objects inside."""
    ends = text.startswith("{") & (sql.instr(text, "}") == sql.length(text))
    return ends & ~text.contains("\\")


def _is_once(text: Column, member: str) -> Column:
    name = f'"{member}"'
    rest = sql.replace(text, sql.lit(name), sql.lit(""))
    return sql.octet_length(rest) == sql.octet_length(text) - len(name)


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
