"""Functions of values that Spark's releases do not have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pyspark
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as sql

from pyconnect_reconcile.values import json_text

IS_3 = pyspark.__version__.startswith("3.")
"""Whether this is Spark 3.5, the only line before 4.0 that audits run on."""


def canonical_json(text: Column) -> Column:
    """Return JSON with sorted members and without spaces; null where a text does not parse."""
    return _in_python()(text) if IS_3 else sql.to_json(sql.try_parse_json(text))


def member_of_first(text: Column, member: str) -> Column:
    """Return a member of the first element of a JSON array, as `canonical_json` does."""
    if IS_3:
        return _in_python()(text, sql.lit(member))
    parsed = sql.try_parse_json(text)
    return sql.to_json(sql.variant_get(parsed, f"$[0].{member}", "variant"))


@cache
def _in_python() -> Callable[..., Column]:
    # Executors have Python, but not this package.
    cloudpickle.register_pickle_by_value(json_text)
    function: Callable[..., Column] = sql.udf(json_text.canonical, "string")
    return function


def is_utf8(text: Column) -> Column:
    """Return whether a text, which may hold any bytes in Spark, is one of UTF-8."""
    if not IS_3:
        return sql.is_valid_utf8(text)
    held = text.cast("binary")
    return sql.encode(sql.decode(held, "UTF-8"), "UTF-8") == held


def from_avro(body: Column, schema: str) -> Column:
    """Return what an Avro schema decodes; null where it cannot."""
    if IS_3:
        from pyspark.sql.avro.functions import from_avro as decoded

        return decoded(body, schema, {"mode": "PERMISSIVE"})
    permissive = sql.create_map(sql.lit("mode"), sql.lit("PERMISSIVE"))
    return sql.call_function("from_avro", body, sql.lit(schema), permissive)
