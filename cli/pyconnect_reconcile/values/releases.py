"""Functions of values that differ between Spark's releases.

Spark 3.5 has no type for JSON: `canonical` writes JSON in the form of Spark 4 in plain Python.
Spark ships it to executors by value, so it uses the standard library alone.
"""

import json
import sys
from collections.abc import Callable
from functools import cache

import pyspark
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as sql

IS_3 = pyspark.__version__.startswith("3.")
"""Whether this is Spark 3.5, the only supported line before 4.0."""


def canonical_json(text: Column) -> Column:
    """Return JSON with sorted members and without spaces; null where a text does not parse."""
    return _in_python()(text) if IS_3 else sql.to_json(sql.try_parse_json(text))


def member_of_first(text: Column, member: str) -> Column:
    """Return a member of the first element of a JSON array, in the form of `canonical_json`."""
    if IS_3:
        return _in_python()(text, sql.lit(member))
    parsed = sql.try_parse_json(text)
    return sql.to_json(sql.variant_get(parsed, f"$[0].{member}", "variant"))


@cache
def _in_python() -> Callable[..., Column]:
    # Executors have Python, but not this package.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    function: Callable[..., Column] = sql.udf(canonical, "string")
    return function


def is_utf8(text: Column) -> Column:
    """Return whether a text, which may hold any bytes in Spark, is valid UTF-8."""
    if not IS_3:
        return sql.is_valid_utf8(text)
    held = text.cast("binary")
    return sql.encode(sql.decode(held, "UTF-8"), "UTF-8") == held


def from_avro(body: Column, schema: str) -> Column:
    """Return the value that an Avro schema decodes; null if it cannot."""
    if IS_3:
        from pyspark.sql.avro.functions import from_avro as decoded

        return decoded(body, schema, {"mode": "PERMISSIVE"})
    permissive = sql.create_map(sql.lit("mode"), sql.lit("PERMISSIVE"))
    return sql.call_function("from_avro", body, sql.lit(schema), permissive)


def canonical(text: str | None, member: str | None = None) -> str | None:
    """Return JSON with sorted members and without spaces, as Spark 4 writes parsed JSON.

    With `member`, return that member of the first element. None for a text that is not JSON,
    repeats a member, or lacks the member.
    """

    def once_each(members: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(members)
        if len(found) != len(members):
            raise ValueError("a member occurs twice")
        # Java compares UTF-16, as Spark does.
        return dict(sorted(found.items(), key=lambda member: member[0].encode("utf-16-be")))

    def refused(constant: str) -> object:
        raise ValueError(constant)

    if text is None:
        return None
    try:
        found = json.loads(text, object_pairs_hook=once_each, parse_constant=refused)
        if member is not None:
            found = found[0][member]
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
