"""Values under a declared normalisation, as columns of Spark.

bytes, text    as they are
json           canonical: members sorted, numbers without needless zeros; a JSON string is its text
connect-json   the payload in the envelope of JsonConverter with schemas, as `json`
columns        each cast to its type: decimals to their scale, times to microseconds
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sql

from pyconnect_reconcile.spec import ColumnRule


def normal_value(form: str, value: str = "value") -> Column:
    """Return a value in its normal form, as bytes; null where it is null or does not parse."""
    if form in {"bytes", "text"}:
        return sql.col(value).cast("binary")
    return sql.expr(_canonical(_variant(form, value))).cast("binary")


def is_unparsable(form: str, value: str = "value") -> Column:
    """Tell whether a value is there and does not parse."""
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


def json_columns(form: str, rules: Sequence[ColumnRule], value: str = "value") -> list[Column]:
    """Return the columns that rules name in a JSON value."""
    text = f"CAST(`{value}` AS STRING)"
    if form == "connect-json":
        text = f"get_json_object({text}, '$.payload')"
    if all("." not in rule.path for rule in rules):
        # One parse for all columns: numbers keep their text as strings.
        fields = ", ".join(f"`{rule.path}` STRING" for rule in rules)
        parsed = sql.from_json(sql.expr(text), fields)
        return [normal_column(rule, parsed[rule.path]) for rule in rules]
    return [
        normal_column(rule, sql.get_json_object(sql.expr(text), f"$.{rule.path}")) for rule in rules
    ]


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
