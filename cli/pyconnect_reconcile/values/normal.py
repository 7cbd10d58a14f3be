"""The compared part of values, as columns of Spark: documents as a whole, or tokens of columns.

A side is its content, columns of texts (`canonical` says which), and what does not parse. A value
that does not parse is compared by its bytes. The last column, `rest`, is null where the columns
before it say all: else it holds bytes that do not parse, or the fields that have no column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from pyconnect_reconcile.data_sides import CORRUPT, HELD, MARK, NUMERIC, TOKENS
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import ColumnRule
from pyconnect_reconcile.values import canonical
from pyconnect_reconcile.values.canonical import Step, member_name
from pyconnect_reconcile.values.flat import FlatObjects, with_flat_objects
from pyconnect_reconcile.values.kinds import Compared, is_held, kind_steps, of_untyped

MARKED, PARSED, KEYS = "pyconnect_marked", "pyconnect_parsed", "pyconnect_keys"
WRONG = "pyconnect_wrong"
MOST_MEMBERS = 10_000
END = f"{MARK}end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that are compared; `closed`: a field without a column is a difference."""

    all: tuple[Compared, ...] = ()
    closed: bool = False

    @property
    def known(self) -> list[str]:
        return [each.rule.path for each in self.all]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The rows of a side with what is compared of them.

    `unheld` are the names of fields whose values the sink's columns cannot hold.
    """

    frame: DataFrame
    columns: list[Column]
    unparsable: Column
    unheld: Column = field(default_factory=lambda: sql.array().cast("array<string>"))


def whole_values(frame: DataFrame, form: str) -> Content:
    """Return values as documents in canonical form, or as their bytes."""
    if form in {"bytes", "text"}:
        return Content(frame=frame, columns=[sql.col("value")], unparsable=sql.lit(False))
    frame = canonical.with_marked(frame, sql.col("value"), MARKED)
    member = "payload" if form == "connect-json" else ""
    return documents(frame, canonical.document(sql.col(MARKED), member))


def documents(frame: DataFrame, document: Column) -> Content:
    """Return documents, and the bytes of values that have none."""
    # In a column of its own: in each place that uses it, a plan would hold all of it again.
    document, frame = sql.col(PARSED), frame.withColumn(PARSED, document)
    wrong = sql.col("value").isNotNull() & document.isNull()
    content = [document, sql.when(wrong, sql.col("value"))]
    return Content(frame=frame, columns=content, unparsable=wrong)


def json_columns(
    frame: DataFrame, form: str, columns: Columns, *, all_marked: bool = False
) -> Content:
    """Return the columns of JSON objects, which are parsed once.

    Flat objects are not parsed, nor in MARKED unless `all_marked`.
    """
    flat = FlatObjects()
    if form != "connect-json" and not all_marked:
        frame, flat = with_flat_objects(frame, columns.known, closed=columns.closed)
    frame = canonical.with_marked(frame, sql.when(~flat.holds, sql.col("value")), MARKED)
    if form == "connect-json":
        frame = frame.withColumn(PARSED, objects(sql.col(MARKED), ["payload"]))
        frame = frame.withColumn(MARKED, first_object(sql.col(PARSED))["payload"])
    names = dict.fromkeys(name for path in columns.known for name in (path, path.partition(".")[0]))
    frame = frame.withColumn(PARSED, objects(sql.col(MARKED), list(names)))
    keys = sql.json_object_keys(sql.col(MARKED))
    frame = frame.withColumn(KEYS, keys)
    keys = sql.col(KEYS)
    whole = first_object(sql.col(PARSED)).isNotNull() & (
        sql.size(keys) == sql.size(sql.array_distinct(keys))
    )
    wrong = sql.col("value").isNotNull() & ~flat.holds & ~sql.coalesce(whole, sql.lit(False))
    frame = frame.withColumn(WRONG, wrong)
    wrong = sql.col(WRONG)

    def member(rule: ColumnRule) -> Column:
        """Return a member by its whole name, else by a path."""
        found = sql.col(PARSED)[0][member_name(rule.path)]
        first, point, rest = rule.path.partition(".")
        if not point:
            return found
        inside = sql.col(PARSED)[0][member_name(first)]
        for name in rest.split("."):
            kind = StructType([StructField(member_name(name), StringType())])
            inside = sql.from_json(inside, kind)[member_name(name)]
        return sql.coalesce(found, inside)

    found = [
        sql.when(flat.holds, flat.token(each.rule.path)).when(~wrong, member(each.rule))
        for each in columns.all
    ]
    frame, kept = with_tokens(frame, found, columns.all)
    left_over = fields_without_column(columns) if columns.closed else sql.lit(None).cast("string")
    rest = (
        sql.when(sql.col("value").isNull(), sql.lit(b"null"))
        .when(wrong, sql.concat(sql.lit(b"raw "), sql.col("value").cast("binary")))
        .otherwise(left_over.cast("binary"))
    )
    return Content(
        frame=frame,
        columns=[*kept, rest],
        unparsable=wrong,
        unheld=unheld(kept, columns, left_over),
    )


def unheld(tokens: Sequence[Column], columns: Columns, without_column: Column) -> Column:
    """Return the names of fields whose values the sink's columns cannot hold, as a list."""
    names = [
        sql.when(~is_held(token, column.held), column.rule.path)
        for token, column in zip(tokens, columns.all, strict=True)
        if column.held is not None
    ]
    others = sql.coalesce(sql.split(without_column, ", "), sql.array().cast("array<string>"))
    return sql.array_union(sql.array_compact(sql.array(*names, sql.lit(None))), others)


def member_kinds(frame: DataFrame) -> dict[str, frozenset[str]]:
    """Return the members of the JSON objects in MARKED with the kinds of their values."""
    fields = sql.from_json(sql.col(MARKED), "MAP<STRING, STRING>")
    each = frame.select(sql.explode(fields).alias("name", "found"))
    kind = (
        sql.when(sql.col("found").rlike(f"^{MARK}[-0-9NI]"), "number")
        .when(sql.col("found").isin(f"{MARK}t", f"{MARK}f"), "boolean")
        .when(sql.col("found").isNotNull(), "string")
    )
    rows = each.groupBy("name").agg(sql.collect_set(kind).alias("kinds")).limit(MOST_MEMBERS)
    return {row.name.removeprefix(f"{MARK}s"): frozenset(row.kinds) for row in rows.collect()}


def fields_without_column(columns: Columns) -> Column:
    """Return the names of fields that are not null and have no column, as a text; else null."""
    known = sql.array(*(sql.lit(member_name(path)) for path in columns.known))
    more = sql.size(sql.array_except(sql.col(KEYS), known)) > 0
    fields = sql.from_json(sql.col(MARKED), "MAP<STRING, STRING>")
    others = sql.map_keys(
        sql.map_filter(
            fields, lambda name, each: each.isNotNull() & ~sql.array_contains(known, name)
        )
    )
    named = sql.array_join(sql.array_sort(others), ", ")
    return sql.when(more & (named != ""), named)


def objects(marked: Column, names: Sequence[str]) -> Column:
    """Parse JSON objects, as the first of two in a list: what is behind them would be ignored."""
    fields = [StructField(member_name(name), StringType()) for name in names]
    kind = ArrayType(StructType([*fields, StructField(END, StringType())]))
    end = ',{"\\u0001end":""}]'
    listed = sql.concat(sql.lit("["), marked, sql.lit(end))
    return sql.from_json(listed, kind, {"allowSingleQuotes": "false"})


def first_object(parsed: Column) -> Column:
    """Return the object that `objects` parsed; null where the text is not one."""
    return sql.when((sql.size(parsed) == 2) & parsed[1][END].isNotNull(), parsed[0])


def typed_columns(frame: DataFrame, columns: Columns) -> Content:
    """Return the columns of rows that have types."""
    frame, tokens = with_column_tokens(frame, columns.all)
    return column_content(frame, tokens)


def column_content(frame: DataFrame, tokens: Sequence[Column]) -> Content:
    """Return rows that have types with these tokens, and the bytes of those that do not parse."""
    rest = sql.col(CORRUPT) if CORRUPT in frame.columns else sql.lit(None)
    columns = [*tokens, rest.cast("binary")]
    return Content(frame=frame, columns=columns, unparsable=rest.isNotNull())


def with_column_tokens(
    frame: DataFrame, columns: Sequence[Compared]
) -> tuple[DataFrame, list[Column]]:
    """Return the frame with the tokens of its columns."""
    found = [declared_steps(frame, each.rule.name) for each in columns]
    texts, steps = [each for each, _ in found], [before for _, before in found]
    return with_tokens(frame, texts, columns, before=steps)


def declared_steps(frame: DataFrame, name: str) -> tuple[Column, list[Step]]:
    """Return a column and the steps to its token, for the type that its database has declared."""
    column, kind = field_of(frame, name)
    match held_type(frame, name):
        case "numeric":
            return column, [partial(of_untyped, NUMERIC)]
        case "document":
            return column, [canonical.json_text]
    return canonical.token_steps(column, kind)


def held_type(frame: DataFrame, name: str) -> str:
    """Return the type of a column: that of the database where Spark lacks it."""
    metadata = frame.schema[name].metadata if name in frame.schema.names else {}
    return str(metadata.get(HELD) or field_of(frame, name)[1].simpleString())


def with_tokens(
    frame: DataFrame,
    found: Sequence[Column],
    columns: Sequence[Compared],
    *,
    before: Sequence[Sequence[Step]] | None = None,
) -> tuple[DataFrame, list[Column]]:
    """Return the frame with a column of tokens for each compared column, and these columns.

    `before` are steps that make tokens of what was found in rows, which may have own ones (TOKENS).
    """
    names = canonical.token_names(len(columns))
    has_own = before is not None and TOKENS in frame.columns
    steps = []
    for made, column in zip(before or [()] * len(columns), columns, strict=True):
        own: list[Step] = []
        if has_own:
            own.append(partial(sql.coalesce, sql.col(TOKENS)[column.rule.name]))
        steps.append([*made, *own, *kind_steps(column)])
    return canonical.with_steps(frame, names, found, steps), [sql.col(name) for name in names]


def field_of(frame: DataFrame, name: str) -> tuple[Column, DataType]:
    """Return a column by its whole name, else by a path, and its type; ReconcileError without."""
    schema = frame.schema
    if name in schema.names:
        return sql.col(quoted(name)), schema[name].dataType
    first, *steps = name.split(".")
    if first in schema.names:
        column, kind = sql.col(quoted(first)), schema[first].dataType
        for step in steps:
            if not isinstance(kind, StructType) or step not in kind.names:
                break
            column, kind = column[step], kind[step].dataType
        else:
            return column, kind
    raise ReconcileError(
        f"there is no column `{name}`: the columns are {', '.join(schema.names)}",
        hint="name the columns that are compared: --column, or `columns` with `path`",
    )


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
