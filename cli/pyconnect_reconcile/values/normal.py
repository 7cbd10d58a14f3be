"""Values under a declared normalisation, as columns of Spark.

bytes, text    as they are
json           canonical: members sorted, numbers without needless zeros; a JSON string is its text
connect-json   the payload in the envelope of JsonConverter with schemas, as `json`
columns        each cast to its type: decimals to their scale, times to microseconds
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.spec import ColumnRule

PARSED, REST = "parsed", "pyconnect_unparsed"
# Read as such from JSON: as texts they would be written again, one by one.
QUICK_TYPES = frozenset({"bigint", "int", "smallint", "boolean", "double"})


def normal_value(form: str, value: str = "value") -> Column:
    """Return a value in its normal form, as bytes; null where it is null or does not parse."""
    if form in {"bytes", "text"}:
        return sql.col(value).cast("binary")
    return sql.expr(_canonical(_variant(form, value))).cast("binary")


def is_unparsable(form: str, value: str = "value") -> Column:
    """Return whether a value is there and does not parse."""
    if form in {"bytes", "text"}:
        return sql.lit(False)
    return sql.col(value).isNotNull() & sql.expr(f"{_variant(form, value)} IS NULL")


def _variant(form: str, value: str) -> str:
    parsed = f"try_parse_json(CAST(`{value}` AS STRING))"
    return f"variant_get({parsed}, '$.payload', 'variant')" if form == "connect-json" else parsed


def _canonical(variant: str) -> str:
    return (
        f"CASE WHEN schema_of_variant({variant}) = 'STRING'"
        f" THEN variant_get({variant}, '$', 'string') ELSE to_json({variant}) END"
    )


def with_json_columns(
    frame: DataFrame, form: str, rules: Sequence[ColumnRule]
) -> tuple[DataFrame, list[Column], Column]:
    """Return the frame with its JSON parsed, the columns that rules name, and which do not parse.

    Values are parsed once for all columns; only paths into nested objects are looked up one by one.
    """
    text = sql.col("value").cast("string")
    if form == "connect-json":
        text = sql.get_json_object(text, "$.payload")
    if any("." in rule.path for rule in rules):
        columns = [
            normal_column(rule, sql.get_json_object(text, f"$.{rule.path}")) for rule in rules
        ]
        return frame, columns, is_unparsable(form)
    quick = _parsed(text, [(rule.path, _read_as(rule)) for rule in rules])
    # Numbers in texts, and such that do not fit, are no numbers for the quick parse.
    careful = _parsed(text, [(rule.path, _decimal_or_text(rule.type)) for rule in rules])
    parsed = frame.withColumn(PARSED, quick)
    content = sql.col(PARSED)
    if any(_read_as(rule) != _decimal_or_text(rule.type) for rule in rules):
        done = content.isNotNull() & content[REST].isNull()
        kind = ", ".join(
            [*(f"`{rule.path}`: {_read_as(rule)}" for rule in rules), f"{REST}: STRING"]
        )
        again = careful.cast(f"STRUCT<{kind}>")
        parsed = parsed.withColumn(PARSED, sql.when(done, content).otherwise(again))
    wrong = sql.col("value").isNotNull() & (content.isNull() | content[REST].isNotNull())
    return parsed, [normal_column(rule, content[rule.path]) for rule in rules], wrong


def _parsed(text: Column, fields: Sequence[tuple[str, str]]) -> Column:
    schema = ", ".join([*(f"`{path}` {kind}" for path, kind in fields), f"`{REST}` STRING"])
    return sql.from_json(text, schema, {"columnNameOfCorruptRecord": REST})


def _decimal_or_text(kind: str) -> str:
    """Decimals are read as such: as texts they would pass through a floating-point number."""
    return kind if kind.startswith("decimal") else "STRING"


def _read_as(rule: ColumnRule) -> str:
    """Return the type for the quick parse: one that gives what a cast of the text would give."""
    if rule.type in QUICK_TYPES and rule.null is None:
        return rule.type
    return _decimal_or_text(rule.type)


def normal_column(rule: ColumnRule, column: Column) -> Column:
    """Return a column in the normal form of its type."""
    if rule.null is not None:
        column = sql.when(column.cast("string") != rule.null, column)
    match rule.type:
        case "timestamp_ms":
            return column.cast("bigint") * 1000
        case "timestamp":
            return sql.unix_micros(column.cast("timestamp"))
        case other:
            return column.cast(other)
