"""Rows of tables as the tokens of a plan's columns (`rows`), as columns of Spark."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.data_sides import DOCUMENT, MARK, TIME
from pyconnect_reconcile.values.canonical import (
    INTEGRAL,
    Step,
    nested_text,
    number_token,
    shortest,
    text_token,
    token,
)
from pyconnect_reconcile.values.kinds import CLOCK, Compared
from pyconnect_reconcile.values.normal import (
    Content,
    column_content,
    declared_steps,
    field_of,
    held_type,
    quoted,
    with_tokens,
)
from pyconnect_reconcile.values.rows import RowColumn, RowPlan

_DAY = r"^(?!0000)\d{4}-\d\d-\d\d\z"
_MOMENT = r"^(?!0000)\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6}%s)?)?Z?)?\z"
EXACT = re.compile("tinyint|smallint|int|bigint|string|date|decimal|numeric")
"""Types whose texts are the same in Spark and in the database."""


def table_content(frame: DataFrame, plan: RowPlan, zone: str) -> Content:
    """Return the plan's columns of a table; timestamps without a zone are in `zone`."""
    found = [_of_table(frame, column, zone, writes=plan.writes) for column in plan.columns]
    texts, steps, kinds = zip(*found, strict=True) if found else ((), (), ())
    frame, tokens = with_tokens(frame, texts, kinds, before=steps)
    return column_content(frame, tokens)


def _of_table(
    frame: DataFrame, column: RowColumn, zone: str, *, writes: bool
) -> tuple[Column, Sequence[Step], Compared]:
    """Return a row's value for a column, the steps to its token, and the compared column."""
    found, type_ = field_of(frame, column.name)
    held, kind = held_type(frame, column.name), column.converted

    def instant(timestamp: Column, kind: str = "i") -> Column:
        """Return the token of an instant or a time of day; a source's is cut to milliseconds."""
        micros = sql.unix_micros(timestamp)
        whole = micros - sql.pmod(micros, sql.lit(1 if writes else 1000))
        return sql.concat(sql.lit(f"{MARK}{kind}"), whole.cast("string"))

    as_it_is = replace(kind, kind="string")
    match column.kind:
        case "timestamp" if held == "timestamp_ntz":
            return instant(sql.to_utc_timestamp(found.cast("timestamp"), zone)), [], as_it_is
        case "timestamp" if held == "timestamp":
            return instant(found), [], as_it_is
        case "timestamp" if held == "string":
            local = found.cast("timestamp_ntz").cast("timestamp")
            read = instant(sql.to_utc_timestamp(local, zone))
            form = _MOMENT % ("0*" if writes else r"\d{0,3}")
            return (
                sql.coalesce(sql.when(found.rlike(form), read), text_token(found)),
                [],
                as_it_is,
            )
        case "date" if held in {"timestamp", "timestamp_ntz", "string"}:
            day = found.cast("date")
            # A date with a time of day is not a date.
            alone = found.rlike(_DAY) if held == "string" else day.cast(held) == found
            days = sql.concat(sql.lit(f"{MARK}d"), sql.unix_date(day).cast("string"))
            return (
                sql.when(alone & day.isNotNull(), days).otherwise(token(found, type_)),
                [],
                as_it_is,
            )
        case "time" if held in {"string", TIME}:
            moment = sql.concat(sql.lit("1970-01-01 "), found).cast("timestamp")
            clock = sql.when(found.rlike(CLOCK), instant(moment, "c"))
            return sql.coalesce(clock, text_token(found)), [], as_it_is
        case "time":
            return instant(found.cast("timestamp"), "c"), [], as_it_is
        case "float" if held == "double":
            # A short float is exact in a double; its digits are those of the float.
            short = found.cast("float")
            is_short = short.cast("double") == found
            text = sql.when(is_short, shortest("float", short.cast("string")))
            text = text.otherwise(shortest("double", found.cast("string")))
            return text, [number_token], as_it_is
        case "boolean" if held in INTEGRAL:
            truth = sql.when(found == 1, f"{MARK}t").when(found == 0, f"{MARK}f")
            return truth.otherwise(token(found, type_)), [], as_it_is
        case "document" if held in {"string", DOCUMENT}:
            return nested_text(found), [], as_it_is
        case "text":
            return found.cast("string"), [text_token], as_it_is
    steps = declared_steps(frame, column.name)
    # A text stands for a number or a boolean if the records' field has that type.
    return *steps, replace(kind, untyped=held == "string" and column.kind != "string")


def row_key(frame: DataFrame, keys: Sequence[str]) -> Column:
    """Return a JSON object of the texts of a row's key; null if some text is not the database's."""
    shown = [name for name in keys if name in frame.columns and EXACT.match(held_type(frame, name))]
    if not keys or len(shown) < len(keys):
        return sql.lit(None).cast("binary")
    texts = [sql.col(quoted(name)).cast("string") for name in keys]
    whole = reduce(lambda one, other: one & other, (text.isNotNull() for text in texts))
    named = (text.alias(name) for text, name in zip(texts, keys, strict=True))
    return sql.when(whole, sql.to_json(sql.struct(*named)).cast("binary"))
