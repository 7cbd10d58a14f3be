"""Records as rows of a table, as columns of Spark: the rows that a connector makes of records.

JsonConverter writes some types of Connect as other JSON: bytes and decimals as Base64, times as
numbers. The schemas beside the values name the types of these fields; without schemas the table's
types are used. Each column of both sides becomes a token (`canonical`) of one kind:

    decimal, numbers   the exact number
    timestamp          an instant: Connect keeps milliseconds
    date, time         days since the epoch, microseconds since midnight
    string             the text
    document           canonical JSON: nested fields, which a table has as texts
    text               the text of the whole value
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.data_sides import (
    BASE64,
    DOCUMENT,
    KAFKA,
    KAFKA_COLUMNS,
    KEY,
    MARK,
    VALUE,
    RowRule,
)
from pyconnect_reconcile.errors import NotAuditable, ReconcileError
from pyconnect_reconcile.values.canonical import (
    INTEGRAL,
    json_text,
    member_name,
    number_token,
    once,
    shortest,
    text_token,
    with_marked,
)
from pyconnect_reconcile.values.kinds import NUMBER_TYPES, Compared, clock, of_base64
from pyconnect_reconcile.values.normal import (
    END,
    Columns,
    Content,
    FlatObjects,
    first_object,
    objects,
    unheld,
    with_flat_objects,
    with_tokens,
)

ENVELOPE = frozenset({"schema", "payload"})
FORMS = CONNECT_JSON, JSON, TEXT = "connect-json", "json", "text"
FLOAT32, DOUBLE = "float", "double"
INTEGERS = ("int8", "int16", "int32", "int64")
TYPES_OF_TEXTS: Mapping[str | None, str] = {
    **dict.fromkeys(INTEGERS, "number"),
    **{name: name for name in (FLOAT32, DOUBLE, "boolean")},
}
"""The kinds in which fields are compared with texts, which may write numbers in other forms."""
NESTED = frozenset({"array", "map", "struct"})
MOST_SEEN = 10_000
_FIELD = "type: STRING, name: STRING, parameters: STRUCT<scale: STRING>"
_SCHEMA = f"schema STRUCT<{_FIELD}, fields: ARRAY<STRUCT<field: STRING, {_FIELD}>>>"
_LOGICAL = "org.apache.kafka.connect.data."
_PLACE = ("topic", "partition", "offset")
_PARSED: Mapping[str, str] = {VALUE: "parsed_value", KEY: "parsed_key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a schema; of values without schemas only the name is known."""

    type: str | None = None
    logical: str | None = None
    scale: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The fields of a topic's values or keys; `single`: the type of a value without fields.

    `mixed` are the fields for which the topic's schemas differ; None stands for `single`.
    """

    form: str = TEXT
    fields: Mapping[str, Field] = field(default_factory=dict)
    single: Field | None = None
    mixed: frozenset[str | None] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumn:
    """One column of the table: its place in records, and the form in which it is compared.

    `encoded` is the scale of decimals in Base64, None for other values.
    """

    compared: Compared
    kind: str
    of: str
    field: Field = Field()
    encoded: int | None = None

    @property
    def name(self) -> str:
        return self.compared.rule.name

    @property
    def held(self) -> Compared:
        """The column with the type that it holds; None for texts that stand for other types."""
        if self.kind == "boolean" and self.compared.held in INTEGRAL:
            # MariaDB's BOOLEAN is a number of one byte.
            return replace(self.compared, held="boolean")
        is_text = self.field.type == "string" and not NUMBER_TYPES.fullmatch(self.kind)
        texts = is_text or self.compared.held == "string"
        same = self.kind == "string" and self.compared.held == "string"
        return replace(self.compared, held=None) if texts and not same else self.compared

    @property
    def converted(self) -> Compared:
        """The column with the kind of the records' field."""
        return replace(self.compared, kind=self.kind, untyped=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """The comparison of records and rows; `left_out`: columns without a comparable form.

    With `closed` a field of the value without a column is a difference. With `writes` the table
    is a sink's, whose instants are no more exact than those of records.
    """

    columns: tuple[RowColumn, ...]
    keys: tuple[str, ...]
    contents: Mapping[str, Fields]
    left_out: tuple[str, ...]
    closed: bool = True
    writes: bool = True

    def key_columns(self, columns: Sequence[Column]) -> list[Column]:
        """Return the key's columns; `columns` have the order of the plan, then others."""
        named = dict(zip((column.name for column in self.columns), columns, strict=False))
        missing = [name for name in self.keys if name not in named]
        if missing or not self.keys:
            raise ReconcileError(
                f"the key of the rows is not known: the table has no columns"
                f" {', '.join(missing) or 'for it'}",
                hint="name the columns: --column, with --upsert and --key",
            )
        return [named[name] for name in self.keys]


def row_plan(
    records: DataFrame, rule: RowRule, table: Columns, *, writes: bool, flat: bool = False
) -> RowPlan:
    """Plan, from a topic's records, their comparison with a table of these columns.

    With `writes` the table is a sink's: decimals of JSON without schemas are then numbers. With
    `flat` nested fields are not compared: CSV has no form of its own for them.
    """
    contents = contents_of(records, rule)
    value, key = contents[VALUE], contents[KEY]
    keys = rule.keys
    if not keys and rule.of != VALUE:
        keys = KAFKA_COLUMNS if rule.of == KAFKA else tuple(key.fields)
    columns, left_out = [], []
    for compared in table.all:
        column = compared.rule
        in_key = column.name in keys and rule.of != VALUE
        if in_key and rule.of == KAFKA:
            place = _PLACE[keys.index(column.name)]
            found: tuple[str, Field | None] = (place, Field())
        elif in_key:
            found = (KEY, key.single or key.fields.get(column.name))
        elif column.name == rule.whole:
            found = (VALUE, value.single)
        else:
            found = (VALUE, value.fields.get(column.name))
        of, known = found
        is_single = known is not None and known is contents.get(of, Fields()).single
        if of in contents and (None if is_single else column.name) in contents[of].mixed:
            raise NotAuditable(
                f"the schemas of the records have several types for the field {column.name}",
                hint="compare the records of one schema (--since), or name the other columns:"
                " --column",
            )
        if known is None or (flat and known.type in NESTED):
            left_out.append(column.name)
            continue
        numeric = rule.decimals != BASE64 or (writes and contents[VALUE].form == JSON)
        planned = _planned(compared, of, known, numeric=numeric)
        if column.name == rule.whole and planned.kind == "string":
            planned = replace(planned, kind="text")
        columns.append(planned)
    if not columns and value.fields:
        raise ReconcileError("no column of the table has the name of a field of the records")
    return RowPlan(
        columns=tuple(columns),
        keys=keys,
        contents=contents,
        left_out=tuple(left_out),
        closed=table.closed,
        writes=writes,
    )


def _planned(compared: Compared, of: str, known: Field, *, numeric: bool) -> RowColumn:
    kind, encoded = compared.kind, None
    is_decimal = kind.startswith("decimal")
    match known.logical:
        case "Decimal":
            scale = known.scale or 0
            kind = kind if is_decimal else f"decimal(38,{scale})"
            encoded = None if numeric else scale
        case "Timestamp" | "Date" | "Time" as logical:
            kind = logical.lower()
        case None if known.type == FLOAT32 and kind == "double":
            # The float's digits in JSON are fewer than those of the double that a database makes of
            # it.
            kind = "float"
        case None if kind == "string" and known.type in TYPES_OF_TEXTS:
            kind = TYPES_OF_TEXTS[known.type]
        case None if known.type == "boolean" and kind in INTEGRAL:
            kind = "boolean"
        case None if known.type in NESTED:
            kind = "document" if kind in {"string", DOCUMENT} else kind
            compared = replace(compared, base64=not numeric)
        case None if kind == DOCUMENT:
            kind = JSON
        case None if is_decimal and known.type is None and not numeric and of in _PARSED:
            encoded = int(kind.rstrip(")").partition(",")[2] or 0)
    return RowColumn(compared=compared, kind=kind, of=of, field=known, encoded=encoded)


def contents_of(records: DataFrame, rule: RowRule) -> Mapping[str, Fields]:
    """Return the fields of values and keys: one record shows the form, all show the fields.

    Records are read only if needed: whole values in one column are texts, and keys matter only if
    columns come from them.
    """
    contents = {name: Fields(single=Field()) for name in (VALUE, KEY)}
    asked = [name for name, has in ((VALUE, rule.whole is None), (KEY, rule.of == KEY)) if has]
    if not asked:
        return contents
    first = records.where("value IS NOT NULL").select(KEY, VALUE).limit(1).collect()
    if not first:
        return contents | {name: Fields() for name in asked}
    forms = {}
    for name in asked:
        try:
            document = json.loads(bytes(first[0][name] or b""))
        except ValueError:
            forms[name] = TEXT
        else:
            is_envelope = isinstance(document, dict) and document.keys() == ENVELOPE
            forms[name] = CONNECT_JSON if is_envelope else JSON
    if forms.get(VALUE) == TEXT:
        raise ReconcileError(
            "the values of the topic are not JSON objects, so that they have no columns",
            hint="give their format: --value avro, or name files or tables yourself",
        )
    parsed = {name: form for name, form in forms.items() if form != TEXT}
    if not parsed:
        return contents
    seen = sql.concat(*(_seen(name, form) for name, form in parsed.items()))
    rows = records.select(sql.explode(seen).alias("seen")).distinct().limit(MOST_SEEN + 1).collect()
    if len(rows) > MOST_SEEN:
        raise NotAuditable(
            f"the records have more than {MOST_SEEN:,} different schemas or members",
            hint="compare fewer records (--since), or files of JSON lines",
        )
    return contents | {
        name: _content(form, [row.seen["seen"] for row in rows if row.seen["of"] == name])
        for name, form in parsed.items()
    }


def _seen(name: str, form: str) -> Column:
    """Return as a list the JSON schema of a value, or its members with their kinds."""

    def with_kind(member: Column) -> Column:
        kind = sql.when(member["value"].rlike(r"^[\[{]"), "n").otherwise("-")
        return sql.concat(kind, member["key"])

    text = sql.col(name).cast("string")
    if form == CONNECT_JSON:
        found = sql.array_compact(sql.array(sql.to_json(sql.from_json(text, _SCHEMA)["schema"])))
    else:
        members = sql.map_entries(sql.from_json(text, "MAP<STRING, STRING>"))
        found = sql.transform(members, with_kind)
    named = sql.transform(
        found, lambda each: sql.struct(sql.lit(name).alias("of"), each.alias("seen"))
    )
    return sql.coalesce(named, sql.array().cast("array<struct<of: string, seen: string>>"))


def _content(form: str, seen: Iterable[str]) -> Fields:
    fields: dict[str, Field] = {}
    if form == JSON:
        # "n" sorts behind "-": one nested value makes a field nested.
        for member in sorted(seen):
            fields[member[1:]] = Field(type="struct" if member[0] == "n" else None)
        return Fields(form=form, fields=fields, single=None if fields else Field())
    single: Field | None = None
    mixed: set[str | None] = set()
    for schema in map(json.loads, seen):
        if "fields" not in schema:
            single, before = _field(schema), single
            if before not in {None, single}:
                mixed.add(None)
        for each in schema.get("fields", ()):
            found = _field(each)
            if fields.setdefault(each["field"], found) != found:
                mixed.add(each["field"])
    if fields:
        return Fields(form=form, fields=fields, mixed=frozenset(mixed))
    return Fields(form=form, single=single or Field(), mixed=frozenset(mixed))


def _field(schema: Mapping[str, Any]) -> Field:
    name, scale = schema.get("name", ""), schema.get("parameters", {}).get("scale")
    kind = schema.get("type")
    return Field(
        # All lengths of integers have the same numbers.
        type="int64" if kind in INTEGERS else kind,
        logical=name.removeprefix(_LOGICAL) if name.startswith(_LOGICAL) else None,
        scale=None if scale is None else int(scale),
    )


def record_content(records: DataFrame, plan: RowPlan) -> Content:
    """Return the records with the plan's columns, and whether they parse."""
    wrong = sql.lit(False)
    others = sql.lit(None).cast("string")
    value = plan.contents[VALUE]
    for of in (KEY, VALUE):
        named = [column.name for column in plan.columns if column.of == of]
        if named:
            records = _with_members(records, of, plan.contents[of], named)
    if any(column.of == VALUE for column in plan.columns) and value.single is None:
        parsed = sql.col(_PARSED[VALUE])
        wrong = sql.col("value").isNotNull() & parsed.isNull()
        lost = [
            sql.when(parsed[member_name(name)].isNotNull(), sql.lit(name))
            for name in value.fields
            if plan.closed and name not in {*plan.left_out, *(c.name for c in plan.columns)}
        ]
        named_fields = sql.concat_ws(", ", *lost) if lost else sql.lit("")
        others = sql.when(named_fields != "", named_fields)
    found = [_of_record(column, plan) for column in plan.columns]
    records, tokens = with_tokens(records, [each for each, _ in found], [each for _, each in found])
    rest = sql.when(wrong, sql.col("value")).otherwise(others.cast("binary"))
    if value.single is None:
        # A record without a value must differ from a row of nulls.
        rest = sql.when(sql.col("value").isNull(), sql.lit(b"null")).otherwise(rest)
    compared = Columns(all=tuple(column.held for column in plan.columns))
    return Content(
        frame=records,
        columns=[*tokens, rest],
        unparsable=wrong,
        unheld=unheld(tokens, compared, others),
    )


def _with_members(records: DataFrame, of: str, content: Fields, named: Sequence[str]) -> DataFrame:
    """Return the records with the members of a key or a value as tokens, or with one token."""
    text, parsed = sql.col(of).cast("string"), _PARSED[of]
    if content.form == TEXT:
        return records.withColumn(parsed, text_token(text))
    flat, names = FlatObjects(), list(dict.fromkeys([*named, *content.fields]))
    if content.single is None:
        within = "payload" if content.form == CONNECT_JSON else ""
        records, flat = with_flat_objects(records, names, closed=True, of=of, within=within)
    records = with_marked(records, sql.when(~flat.holds, text), parsed)
    if content.single is not None:
        path = "$.payload" if content.form == CONNECT_JSON else "$"
        return records.withColumn(parsed, sql.get_json_object(sql.col(parsed), path))
    if content.form == CONNECT_JSON:
        payload = objects(sql.col(parsed), ["payload"])
        records = records.withColumn(parsed, payload)
        records = records.withColumn(parsed, first_object(sql.col(parsed))["payload"])
    records = records.withColumn(parsed, objects(sql.col(parsed), names))
    if not flat.names:
        return records.withColumn(parsed, first_object(sql.col(parsed)))
    tokens = (flat.token(name).alias(member_name(name)) for name in names)
    object_ = sql.struct(*tokens, sql.lit("").alias(END))
    found = sql.when(flat.holds, object_).otherwise(first_object(sql.col(parsed)))
    return records.withColumn(parsed, found)


def _of_record(column: RowColumn, plan: RowPlan) -> tuple[Column, Compared]:
    """Return a record's value for a column, and the column as it is compared."""
    as_it_is = replace(column.converted, kind="string")
    if column.of not in _PARSED:
        found = sql.col(column.of)
        is_text = column.of == "topic"
        return text_token(found) if is_text else number_token(found.cast("string")), as_it_is
    found = sql.col(_PARSED[column.of])
    if plan.contents[column.of].single is None:
        found = found[member_name(column.name)]
    if column.field.type in {FLOAT32, DOUBLE}:
        # JSON lacks these numbers: JsonConverter writes their names.
        is_name = found.isin("NaN", "Infinity", "-Infinity")
        found = sql.when(is_name, sql.concat(sql.lit(MARK), found)).otherwise(found)
    digits = found.substr(2, 2**31 - 1)
    match column.kind:
        case _ if column.encoded is not None:
            return of_base64(found, column.encoded), as_it_is
        case "time":
            return clock(found), as_it_is
        case _ if column.kind == JSON:
            is_other = found.startswith(MARK) & ~found.startswith(f"{MARK}s")
            return sql.when(is_other, found).otherwise(json_text(_text(found))), as_it_is
        case _ if column.field.type == "string" and NUMBER_TYPES.fullmatch(column.kind):
            # Connectors write texts of numbers into such columns, and read them as texts.
            return found, replace(column.converted, untyped=True)
        case "binary" if column.field.type == "string":
            text = _text(found)
            coded = sql.concat(sql.lit(f"{MARK}b"), sql.hex(sql.encode(text, "UTF-8")))
            return coded, as_it_is
        case "text":
            return found, as_it_is
        case _ if column.field.type in {FLOAT32, DOUBLE}:
            # JsonConverter may write more digits than the number has.
            held = digits.cast(column.field.type).cast("string")
            short = once(held, partial(shortest, column.field.type))
            shown = once(short, number_token)
            return sql.when(found.startswith(MARK), shown).otherwise(found), as_it_is
    return found, column.converted


def _text(found: Column) -> Column:
    is_marked = found.startswith(f"{MARK}s")
    return sql.when(is_marked, found.substr(3, 2**31 - 1)).otherwise(found)
