"""The compared part of values, as columns of Spark: documents as a whole, or tokens of columns.

A side is its content, columns of texts (`canonical` says which), and what does not parse. A value
that does not parse is compared by its bytes. The last column, `rest`, is null where the columns
before it say all: else it holds bytes that do not parse, or the fields that have no column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from pyconnect_reconcile.data_sides import CORRUPT, DOCUMENT, HELD, MARK, NUMERIC, TIME, TOKENS
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import ColumnRule
from pyconnect_reconcile.values import canonical
from pyconnect_reconcile.values.canonical import INTEGRAL, Step, member_name, nested
from pyconnect_reconcile.values.decimals import decoded
from pyconnect_reconcile.values.flat import FlatObjects, with_flat_objects
from pyconnect_reconcile.values.releases import canonical_json

MARKED, PARSED, KEYS = "pyconnect_marked", "pyconnect_parsed", "pyconnect_keys"
WRONG = "pyconnect_wrong"
MOST_MEMBERS = 10_000
END = f"{MARK}end"
NUMBER_TYPES = re.compile(r"(tiny|small|big)?int|float|double|decimal.*|numeric|number")
_UNITS = {"timestamp_ms": 3, "timestamp_s": 6, "timestamp_us": 0, "timestamp": 3}
# `$` would match before a line end, too: such a text is another one.
_ISO = r"^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6}0*)?)?(?:Z|[+-]\d\d:\d\d)?)?\z"
CLOCK = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?\z"
_SIX = "[A-Za-z0-9+/]"
# Without bits behind the last byte: two texts would be one value.
_BASE64 = rf"^(?:{_SIX}{{4}})*(?:{_SIX}[AQgw]==|{_SIX}{{2}}[AEIMQUYcgkosw048]=)?\z"
_PLAIN_NUMBER = r"^(?:-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?|NaN|-?Infinity)\z"
_REST = 2**31 - 1
_INTEGER = f"^{MARK}-?[0-9]+$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One column that is compared.

    `kind` is its type: that of the rule, else that of the side that has types. `untyped` is a
    column of texts that may stand for numbers (CSV). `held` is the type of the sink's own column.
    `nested` is the type of arrays and objects with leaves that JSON has not, such as instants;
    `base64`: decimals in them are Base64.
    """

    rule: ColumnRule
    kind: str
    nested: DataType | None = None
    base64: bool = False
    untyped: bool = False
    held: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that are compared; `closed`: a field without a column is a difference."""

    all: tuple[Compared, ...] = ()
    closed: bool = False

    @property
    def known(self) -> list[str]:
        return [each.rule.path for each in self.all]


def _none() -> Column:
    return sql.array().cast("array<string>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The rows of a side with what is compared of them.

    `unheld` are the names of fields whose values the sink's columns cannot hold.
    """

    frame: DataFrame
    columns: list[Column]
    unparsable: Column
    unheld: Column = field(default_factory=_none)


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
    found = [
        sql.when(flat.holds, flat.token(each.rule.path)).when(~wrong, _member(each.rule))
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
    others = sql.coalesce(sql.split(without_column, ", "), _none())
    return sql.array_union(sql.array_compact(sql.array(*names, sql.lit(None))), others)


def is_held(found: Column, held: str) -> Column:
    """Return whether a column of a type can hold a value; null counts as held."""
    if held == DOCUMENT:
        return sql.lit(True)
    number = found.rlike(f"^{MARK}-?[0-9]")
    digits = found.substr(2, _REST)
    if held in INTEGRAL:
        most = 2 ** (INTEGRAL[held] - 1)
        fits = digits.cast("decimal(38,0)").between(sql.lit(-most), sql.lit(most - 1))
        can = found.rlike(_INTEGER) & (sql.length(digits) <= 20) & fits
    elif held.startswith("decimal"):
        precision, _, scale = held[8:-1].partition(",")
        whole = int(precision) - int(scale or 0)
        can = found.rlike(
            f"^{MARK}-?(0|[0-9]{{{min(whole, 1)},{whole}}})"
            f"([.][0-9]{{1,{max(int(scale or 0), 1)}}})?$"
        ) & (~found.contains(".") if int(scale or 0) == 0 else sql.lit(True))
    elif held in {"double", "float"}:
        shown = canonical.number_text(canonical.shortest(held, digits.cast(held).cast("string")))
        can = (number & (shown == digits)) | found.rlike(f"^{MARK}[-NI]+[a-zA-Z]")
    else:
        first = {
            "boolean": "[tf]", "timestamp": "i", "timestamp_ntz": "i", "date": "d", "binary": "b",
            TIME: "c", NUMERIC: "[-0-9NI]",
        }.get(held, "[js]")  # fmt: skip
        can = found.rlike(f"^{MARK}{first}")
        if held == "string":
            can = ~found.startswith(MARK) | found.startswith(f"{MARK}s")
    return sql.coalesce(can, sql.lit(True))


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


def _member(rule: ColumnRule) -> Column:
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
    named = [each.rule.name for each in columns]
    found = [declared_steps(frame, name) for name in named]
    steps = [list(before) for _, before in found]
    if TOKENS in frame.columns:
        for name, before in zip(named, steps, strict=True):
            before.append(partial(or_own_token, name))
    return with_tokens(frame, [each for each, _ in found], columns, before=steps)


def declared_steps(frame: DataFrame, name: str) -> tuple[Column, list[Step]]:
    """Return a column and the steps to its token, for the type that its database has declared."""
    column, kind = field_of(frame, name)
    match held_type(frame, name):
        case "numeric":
            return column, [partial(_of_untyped, NUMERIC)]
        case "document":
            return column, [canonical.json_text]
    return canonical.token_steps(column, kind)


def held_type(frame: DataFrame, name: str) -> str:
    """Return the type of a column: that of the database where Spark lacks it."""
    metadata = frame.schema[name].metadata if name in frame.schema.names else {}
    return str(metadata.get(HELD) or field_of(frame, name)[1].simpleString())


def or_own_token(name: str, found: Column) -> Column:
    return sql.coalesce(sql.col(TOKENS)[name], found)


def with_tokens(
    frame: DataFrame,
    found: Sequence[Column],
    columns: Sequence[Compared],
    *,
    before: Sequence[Sequence[Step]] | None = None,
) -> tuple[DataFrame, list[Column]]:
    """Return the frame with a column of tokens for each compared column, and these columns.

    `before` are steps that make tokens of what was found.
    """
    names = canonical.token_names(len(columns))
    first = before or [[] for _ in columns]
    steps = [[*made, *kind_steps(column)] for made, column in zip(first, columns, strict=True)]
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


def kind_steps(column: Compared) -> list[Step]:
    """Return the steps from a member's or a column's token to that in a column of this kind.

    It stays as it is where it is not of the kind: then it is equal to none that is.
    """
    kind = column.kind
    steps: list[Step] = [with_nested]
    if "struct<" in kind:
        steps.append(_without_null_members)
    if column.rule.null is not None:
        steps.append(partial(_without, column.rule.null))
    if column.untyped:
        steps.append(partial(_of_untyped, kind))
    steps += _leaf_steps(kind)
    if column.nested is not None:
        steps.append(partial(_with_read_leaves, column.nested, column.base64))
    return steps


def _leaf_steps(kind: str) -> list[Step]:
    """Return the step that reads what JSON has in place of a value of a kind."""
    if kind in _UNITS:
        return [partial(_instant, kind)]
    found: dict[str, Step] = {"date": _date, TIME: clock, "binary": _bytes}
    return [found[kind]] if kind in found else []


def leaves_to_read(kind: DataType) -> bool:
    """Return whether a type has leaves that JSON writes as texts or numbers."""
    match kind:
        case StructType():
            return any(leaves_to_read(field.dataType) for field in kind)
        case ArrayType():
            return leaves_to_read(kind.elementType)
        case MapType():
            return leaves_to_read(kind.valueType)
    return isinstance(kind, DecimalType) or bool(_leaf_steps(_leaf_kind(kind)))


def _leaf_kind(kind: DataType) -> str:
    return "timestamp" if isinstance(kind, TimestampNTZType) else kind.simpleString()


def _with_read_leaves(kind: DataType, base64: bool, found: Column) -> Column:
    """Return the token of a nested value with leaves that are read as their types say.

    A value that has more than the type, or another form, stays as it is.
    """
    text = canonical.without_nulls(found.substr(3, _REST))
    parsed = sql.from_json(text, _with_texts(kind))
    same = canonical_json(sql.to_json(parsed)) == text
    read = nested(sql.to_json(_read(parsed, kind, base64)))
    return sql.when(found.startswith(f"{MARK}j") & same, read).otherwise(found)


def _with_texts(kind: DataType) -> DataType:
    """Return a type with texts as its leaves; names are those in a marked text."""
    match kind:
        case StructType():
            return StructType(
                [StructField(member_name(each.name), _with_texts(each.dataType)) for each in kind]
            )
        case ArrayType():
            return ArrayType(_with_texts(kind.elementType))
        case MapType():
            return MapType(StringType(), _with_texts(kind.valueType))
    return StringType()


def _read(value: Column, kind: DataType, base64: bool) -> Column:
    match kind:
        case StructType():
            fields = [
                _read(value[name := member_name(each.name)], each.dataType, base64).alias(name)
                for each in kind
            ]
            return sql.when(value.isNotNull(), sql.struct(*fields))
        case ArrayType():
            return sql.transform(value, lambda each: _read(each, kind.elementType, base64))
        case MapType():
            return sql.transform_values(value, lambda _, each: _read(each, kind.valueType, base64))
        case DecimalType() if base64:
            return of_base64(value, kind.scale)
    for step in _leaf_steps(_leaf_kind(kind)):
        value = step(value)
    return value


def of_base64(found: Column, scale: int) -> Column:
    """Return the token of a decimal whose digits are in Base64; a number stays what it is."""
    number = canonical.once(decoded(found, scale), canonical.number_token)
    return sql.when(found.rlike(_BASE64), number).otherwise(found)


def with_nested(found: Column) -> Column:
    return sql.when(found.substr(1, 1).isin("{", "["), nested(found)).otherwise(found)


def _without_null_members(found: Column) -> Column:
    return sql.when(found.startswith(f"{MARK}j"), canonical.without_nulls(found)).otherwise(found)


def _without(null: str, value: Column) -> Column:
    return sql.when(value != null, value)


def _date(value: Column) -> Column:
    days = sql.concat(sql.lit(f"{MARK}d"), value.substr(2, _REST))
    read = sql.when(value.rlike(r"^\d{4}-\d\d-\d\d\z"), value.cast("date"))
    text = sql.concat(sql.lit(f"{MARK}d"), sql.unix_date(read).cast("string"))
    return sql.when(value.rlike(_INTEGER), days).otherwise(sql.coalesce(text, value))


def clock(value: Column) -> Column:
    """Return the token of a time of day: a text, or a number of milliseconds since midnight."""
    moment = sql.concat(sql.lit("1970-01-01 "), value).cast("timestamp")
    micros = sql.when(value.rlike(CLOCK), sql.unix_micros(moment).cast("string"))
    text = sql.concat(sql.lit(f"{MARK}c"), micros)
    zeros = sql.when(value == f"{MARK}0", "").otherwise("000")
    number = sql.concat(sql.lit(f"{MARK}c"), value.substr(2, _REST), zeros)
    return sql.when(value.rlike(_INTEGER), number).otherwise(sql.coalesce(text, value))


def _bytes(value: Column) -> Column:
    hexed = sql.concat(sql.lit(f"{MARK}b"), sql.hex(sql.unbase64(value)))
    return sql.when(value.rlike(_BASE64), hexed).otherwise(value)


def _of_untyped(kind: str, value: Column) -> Column:
    """Return one token for what texts of this kind stand for and what is of the kind."""
    if NUMBER_TYPES.fullmatch(kind):
        digits = sql.regexp_replace(value, "^(-?)0+(?=[0-9])", "$1")
        number = canonical.number_token(digits)
        return sql.when(value.rlike(_PLAIN_NUMBER), number).otherwise(value)
    if kind == "boolean":
        truth = sql.when(value == "true", f"{MARK}t").when(value == "false", f"{MARK}f")
        return truth.otherwise(value)
    if kind == "string":
        return (
            sql.when(value == f"{MARK}t", "true")
            .when(value == f"{MARK}f", "false")
            .when(value.rlike(f"^{MARK}[-0-9NI]"), value.substr(2, _REST))
            .otherwise(value)
        )
    return value


def _instant(kind: str, value: Column) -> Column:
    micros = sql.concat(value, sql.lit("0" * _UNITS[kind])).substr(2, _REST)
    read = sql.when(value.rlike(_ISO), value.cast("timestamp"))
    instant = (
        sql.when(value == f"{MARK}0", "0")
        .when(value.rlike(_INTEGER), micros)
        .otherwise(sql.unix_micros(read).cast("string"))
    )
    return sql.coalesce(sql.concat(sql.lit(f"{MARK}i"), instant), value)
