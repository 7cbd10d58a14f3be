"""The compared part of values, as columns of Spark: documents as a whole, or tokens of columns.

A side has columns of texts (`canonical` describes them) as its content. A value that does not parse
is compared by its bytes. The last column, `rest`, is null if the other columns hold everything:
otherwise it has the bytes that do not parse, or the names of fields that have no column.

A parse that loses nothing is slow. Most values do not need it (`FlatObjects`): objects whose
members are in the order of the first one, each at most once, with texts, plain numbers, booleans
and nulls. One regular expression matches only such texts as a whole and leaves one part for each
member:

    "TEXT     a text, with its escapes
    -1.5      a number as in its token: 1.50 and 1.0 lose their zeros, and -0 does not match
    t  f      a boolean
    (empty)   null, or no such member

Numbers with exponents or hundreds of digits, surrogates, arrays, objects, repeated members or
another order, and texts that are not JSON do not match: parsers read such values.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from pyconnect_reconcile.data_sides import CORRUPT, HELD, MARK, NUMERIC, TOKENS
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import ColumnRule
from pyconnect_reconcile.values import canonical
from pyconnect_reconcile.values.canonical import Step, member_name, text_token
from pyconnect_reconcile.values.kinds import Compared, is_held, kind_steps, of_untyped
from pyconnect_reconcile.values.releases import is_utf8

# Matching recurses over the members of the expression.
MOST_FLAT = 200
SAMPLE = 10
_PARTS = "pyconnect_parts_"
# No JSON text has this character.
_CUT = "\x02"
_SPACE = r"[ \t\r\n]*+"
_PLAIN = r'[^"\\\x00-\x1f]*+'
_ESCAPED = r'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})'
_INTEGER = r"(?:-(?!0(?:\.0*+)?+[^0-9.]))?+(?:0|[1-9][0-9]{0,300}+)"
_VALUE = (
    rf'(?:("{_PLAIN}(?:{_ESCAPED}{_PLAIN})*+)"'
    rf"|({_INTEGER})(?:(\.[0-9]{{0,300}}[1-9])0*+|\.0++)?+|(t)rue|(f)alse|null)"
)
_GROUPS = 5
_REST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatObjects:
    """The members, in order, that flat objects among the values of a frame may have.

    `parts` is the column with the parts of their values.
    """

    names: Sequence[str] = ()
    parts: str = ""

    @property
    def holds(self) -> Column:
        """Whether a value is a flat object."""
        if not self.names:
            return sql.lit(False)
        return sql.coalesce(sql.col(self.parts)[0] == "", sql.lit(False))

    def token(self, name: str) -> Column:
        """Return the token of a member of a flat object."""
        if name not in self.names:
            return sql.lit(None).cast("string")
        part = sql.col(self.parts)[self.names.index(name) + 1]
        text = part.substr(2, _REST)
        read = sql.from_json(sql.concat(sql.lit("["), part, sql.lit('"]')), "ARRAY<STRING>")
        return (
            sql.when(part.contains("\\"), sql.transform(read, text_token)[0])
            .when(
                part.startswith('"{') | part.startswith('"['), sql.concat(sql.lit(f"{MARK}s"), text)
            )
            .when(part.startswith('"'), text)
            .when(part != "", sql.concat(sql.lit(MARK), part))
        )


def with_flat_objects(
    frame: DataFrame, known: Sequence[str], *, closed: bool, of: str = "value", within: str = ""
) -> tuple[DataFrame, FlatObjects]:
    """Return the frame with the parts of flat objects in the column `of`.

    An object among the first values shows the order of members. Members other than `known` are left
    out; with `closed` an object that has one is parsed instead. `within` is the last of
    two members and has the object; the text before it must then be equal in all values.
    """
    text, parts = sql.col(of).cast("string"), f"{_PARTS}{of}"
    sample = frame.where(sql.col(of).isNotNull()).select(text).limit(SAMPLE).collect()
    first = next((row[0] for row in sample if row[0].startswith("{")), "")
    before, after = "", ""
    if within:
        head, _, rest = first.partition(f',"{within}":{{')
        others = [name for name, _ in _members(f"{head}}}")]
        if len(others) != 1 or within in others or "\\" in head:
            return frame, FlatObjects()
        before, first, after = f'\\Q{head},"{within}":\\E', f"{{{rest[:-1]}", rf"{_SPACE}\}}"
    names = _in_order(_members(first), known, closed=closed)
    if not names or len(names) > MOST_FLAT:
        return frame, FlatObjects()
    space, end = _SPACE, rf'{_SPACE}(?:,{_SPACE}(?=")|(?=\}}))'
    members = (rf'(?:"\Q{name}\E"{space}:{space}{_VALUE}{end})?+' for name in names)
    pattern = rf"\A{before}\{{{space}{''.join(members)}\}}{after}{space}\z"
    groups = range(1, _GROUPS * len(names) + 1)
    replaced = "".join(f"{_CUT if n % _GROUPS == 1 else ''}${n}" for n in groups)
    # Spark's texts may hold any bytes. A text with the replacement character is parsed instead.
    is_text = is_utf8(text) & ~text.contains("\ufffd")
    cut = sql.split(sql.regexp_replace(text, pattern, replaced), _CUT)
    frame = frame.withColumn(parts, sql.when(text.startswith("{") & is_text, cut))
    return frame, FlatObjects(names=names, parts=parts)


def _members(text: str) -> list[tuple[str, object]]:
    """Return the members of an object, with arrays and objects as lists; empty for other texts."""
    try:
        return list(json.loads(text, object_pairs_hook=list))
    except (ValueError, RecursionError):
        return []


def _in_order(
    members: Sequence[tuple[str, object]], known: Sequence[str], *, closed: bool
) -> list[str]:
    """Return the names of an object's members; known ones that it lacks follow the ones before."""
    if not members or any(isinstance(value, list) for _, value in members):
        return []
    names = [name for name, _ in members if not closed or name in known]
    for before, name in pairwise(["", *known]):
        if name not in names:
            names.insert(names.index(before) + 1 if before in names else 0, name)
    # A name that is written with escapes does not match.
    return [
        name for name in dict.fromkeys(names) if json.dumps(name, ensure_ascii=False)[1:-1] == name
    ]


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
    """The rows of a side with their compared columns.

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
    """Return rows with their documents, or the bytes of values without a document."""
    # As a column of its own: otherwise a plan would repeat its expression at each use.
    document, frame = sql.col(PARSED), frame.withColumn(PARSED, document)
    wrong = sql.col("value").isNotNull() & document.isNull()
    content = [document, sql.when(wrong, sql.col("value"))]
    return Content(frame=frame, columns=content, unparsable=wrong)


def json_columns(
    frame: DataFrame, form: str, columns: Columns, *, all_marked: bool = False
) -> Content:
    """Return the columns of JSON objects, which are parsed once.

    Flat objects are neither parsed nor in MARKED, unless `all_marked`.
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
    """Return the names of fields that are not null and have no column, as a text; null for none."""
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
    """Parse JSON objects, each as the first of a list of two: parsers ignore text behind one."""
    fields = [StructField(member_name(name), StringType()) for name in names]
    kind = ArrayType(StructType([*fields, StructField(END, StringType())]))
    end = ',{"\\u0001end":""}]'
    listed = sql.concat(sql.lit("["), marked, sql.lit(end))
    return sql.from_json(listed, kind, {"allowSingleQuotes": "false"})


def first_object(parsed: Column) -> Column:
    """Return the object that `objects` parsed; null where the text is not one."""
    return sql.when((sql.size(parsed) == 2) & parsed[1][END].isNotNull(), parsed[0])


def typed_columns(frame: DataFrame, columns: Columns) -> Content:
    """Return the compared columns of rows that have types."""
    frame, tokens = with_column_tokens(frame, columns.all)
    return column_content(frame, tokens)


def column_content(frame: DataFrame, tokens: Sequence[Column]) -> Content:
    """Return rows that have types with these tokens, and the bytes of rows that do not parse."""
    rest = sql.col(CORRUPT) if CORRUPT in frame.columns else sql.lit(None)
    columns = [*tokens, rest.cast("binary")]
    return Content(frame=frame, columns=columns, unparsable=rest.isNotNull())


def with_column_tokens(
    frame: DataFrame, columns: Sequence[Compared]
) -> tuple[DataFrame, list[Column]]:
    """Return the frame with a column for each token, and these columns."""
    found = [declared_steps(frame, each.rule.name) for each in columns]
    texts, steps = [each for each, _ in found], [before for _, before in found]
    return with_tokens(frame, texts, columns, before=steps)


def declared_steps(frame: DataFrame, name: str) -> tuple[Column, list[Step]]:
    """Return a column and the steps to its token, by the type that its database declares."""
    column, kind = field_of(frame, name)
    match held_type(frame, name):
        case "numeric":
            return column, [partial(of_untyped, NUMERIC)]
        case "document":
            return column, [canonical.json_text]
    return canonical.token_steps(column, kind)


def held_type(frame: DataFrame, name: str) -> str:
    """Return the type of a column; the database's type if Spark lacks it."""
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

    `before` are steps that make tokens of row values; rows may already have tokens (TOKENS).
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
    """Return a column, by its whole name or by a path, and its type; else ReconcileError."""
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
