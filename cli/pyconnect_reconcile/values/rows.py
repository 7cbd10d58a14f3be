"""Records as rows of a table, as columns of Spark: the rows that a connector makes of records.

JsonConverter writes some types of Connect as other JSON: bytes and decimals as Base64, times as
numbers. The schemas beside the values say which fields these are; without them the table's types
say it. Both sides are compared in one form for each column:

    decimal        of the table's precision and scale, or of the field's
    timestamp      milliseconds since the epoch, which is what Connect keeps
    date, time     days since the epoch, milliseconds since midnight
    string         as it is; JSON objects and lists in canonical form
    text           as it is: a column that has the whole value
    others         in the table's type
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import ColumnRule
from pyconnect_reconcile.table_side import BASE64, KAFKA, KAFKA_COLUMNS, KEY, VALUE, RowRule
from pyconnect_reconcile.values.normal import REST

ENVELOPE = frozenset({"schema", "payload"})
FORMS = CONNECT_JSON, JSON, TEXT = "connect-json", "json", "text"
FLOAT32 = "float"
TYPES_OF_TEXTS: Mapping[str | None, str] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "bigint"),
    **{name: name for name in (FLOAT32, "double", "boolean")},
}
"""Types in which fields are compared with a column of texts, which may write numbers otherwise."""
NESTED = frozenset({"array", "map", "struct"})
MOST_SCHEMAS = 1000
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
class Content:
    """The fields of a topic's values or keys; `single`: they have no fields."""

    form: str = TEXT
    fields: Mapping[str, Field] = field(default_factory=dict)
    single: Field | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumn:
    """One column of the table: where records have it, and the form in which it is compared.

    `encoded` is the scale of decimals in Base64, None for other values.
    """

    name: str
    table_type: str
    kind: str
    of: str
    field: Field = Field()
    encoded: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """The comparison of records and rows; `left_out`: columns without a comparable form."""

    columns: tuple[RowColumn, ...]
    keys: tuple[str, ...]
    contents: Mapping[str, Content]
    left_out: tuple[str, ...]

    def key_columns(self, columns: Sequence[Column]) -> list[Column]:
        """Return those of the key as texts, of columns in the order of the plan."""
        named = dict(zip((column.name for column in self.columns), columns, strict=True))
        missing = [name for name in self.keys if name not in named]
        if missing or not self.keys:
            raise ReconcileError(
                f"the key of the rows is not known: the table has no columns"
                f" {', '.join(missing) or 'for it'}",
                hint="name the columns: --column, with --upsert and --key",
            )
        return [named[name].cast("string") for name in self.keys]


def row_plan(
    records: DataFrame,
    rule: RowRule,
    table: Sequence[ColumnRule],
    *,
    writes: bool,
    flat: bool = False,
) -> RowPlan:
    """Look at a topic's records and plan their compare with a table of these columns.

    With `writes` the table is a sink's: decimals of JSON without schemas are numbers then. With
    `flat` fields that are nested are not compared: CSV has no form of its own for them.
    """
    contents = contents_of(records, rule)
    value, key = contents[VALUE], contents[KEY]
    keys = rule.keys
    if not keys and rule.of != VALUE:
        keys = KAFKA_COLUMNS if rule.of == KAFKA else tuple(key.fields)
    columns, left_out = [], []
    for column in table:
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
        if known is None or (flat and known.type in NESTED):
            left_out.append(column.name)
            continue
        numeric = rule.decimals != BASE64 or (writes and contents[VALUE].form == JSON)
        planned = _planned(column, of, known, numeric=numeric)
        if column.name == rule.whole and planned.kind == "string":
            planned = replace(planned, kind="text")
        columns.append(planned)
    if not columns and value.fields:
        raise ReconcileError("no column of the table has the name of a field of the records")
    return RowPlan(columns=tuple(columns), keys=keys, contents=contents, left_out=tuple(left_out))


def _planned(column: ColumnRule, of: str, known: Field, *, numeric: bool) -> RowColumn:
    kind, encoded = column.type, None
    is_decimal = kind.startswith("decimal")
    match known.logical:
        case "Decimal":
            scale = known.scale or 0
            kind = kind if is_decimal else f"decimal(38,{scale})"
            encoded = None if numeric else scale
        case "Timestamp" | "Date" | "Time" as logical:
            kind = logical.lower()
        case None if known.type == FLOAT32 and kind == "double":
            # Its digits in JSON are fewer than those of the double that a database makes of it.
            kind = "float"
        case None if kind == "string" and known.type in TYPES_OF_TEXTS:
            kind = TYPES_OF_TEXTS[known.type]
        case None if is_decimal and known.type is None and not numeric and of in _PARSED:
            encoded = int(kind.rstrip(")").partition(",")[2] or 0)
    return RowColumn(
        name=column.name,
        table_type=column.type,
        kind="timestamp" if kind == "timestamp_ntz" else kind,
        of=of,
        field=known,
        encoded=encoded,
    )


def contents_of(records: DataFrame, rule: RowRule) -> Mapping[str, Content]:
    """Return what values and keys are made of: one record shows the form, all show the fields.

    Values that are in one column as a whole are texts, and keys matter where columns come from
    them: records are read for no more than that.
    """
    contents = {name: Content(single=Field()) for name in (VALUE, KEY)}
    asked = [name for name, has in ((VALUE, rule.whole is None), (KEY, rule.of == KEY)) if has]
    if not asked:
        return contents
    first = records.where("value IS NOT NULL").select(KEY, VALUE).limit(1).collect()
    if not first:
        return contents | {name: Content() for name in asked}
    forms = {name: _form(first[0][name]) for name in asked}
    if forms.get(VALUE) == TEXT:
        raise ReconcileError(
            "the values of the topic are not JSON objects, so that they have no columns",
            hint="give their format: --value avro, or name files or tables yourself",
        )
    parsed = {name: form for name, form in forms.items() if form != TEXT}
    if not parsed:
        return contents
    seen = records.select(*(_seen(name, form) for name, form in parsed.items()))
    rows = seen.distinct().limit(MOST_SCHEMAS).collect()
    return contents | {
        name: _content(form, [row[name] for row in rows if row[name] is not None])
        for name, form in parsed.items()
    }


def _form(content: bytearray | None) -> str:
    try:
        document = json.loads(bytes(content or b""))
    except ValueError:
        return TEXT
    if isinstance(document, dict) and document.keys() == ENVELOPE:
        return CONNECT_JSON
    return JSON


def _seen(name: str, form: str) -> Column:
    """Return the schema of a value, or the names of its members."""
    text = sql.col(name).cast("string")
    if form == CONNECT_JSON:
        return sql.from_json(text, _SCHEMA)["schema"].alias(name)
    return sql.json_object_keys(text).alias(name)


def _content(form: str, schemas: Sequence[object]) -> Content:
    fields: dict[str, Field] = {}
    single: Field | None = None
    for schema in schemas:
        if isinstance(schema, list):
            fields |= dict.fromkeys(map(str, schema), Field())
            continue
        for each in getattr(schema, "fields", None) or ():
            fields[each.field] = _field(each)
        if getattr(schema, "fields", None) is None:
            single = _field(schema)
    if not fields and single is None:
        single = Field()
    return Content(form=form, fields=fields, single=None if fields else single)


def _field(schema: object) -> Field:
    name, parameters = getattr(schema, "name", None), getattr(schema, "parameters", None)
    scale = getattr(parameters, "scale", None)
    known = isinstance(name, str) and name.startswith(_LOGICAL)
    return Field(
        type=getattr(schema, "type", None),
        logical=str(name).removeprefix(_LOGICAL) if known else None,
        scale=None if scale is None else int(scale),
    )


def record_columns(records: DataFrame, plan: RowPlan) -> tuple[DataFrame, list[Column], Column]:
    """Return the records with their JSON parsed, the plan's columns, and which do not parse."""
    for of, name in _PARSED.items():
        wanted = [column for column in plan.columns if column.of == of]
        if wanted and plan.contents[of].single is None:
            records = records.withColumn(name, _parsed(_payload(of, plan.contents[of]), wanted))
        elif wanted:
            records = records.withColumn(name, _payload(of, plan.contents[of]))
    columns = [_of_record(column, plan) for column in plan.columns]
    wrong = sql.lit(False)
    has_fields = plan.contents[VALUE].single is None
    if has_fields and any(column.of == VALUE for column in plan.columns):
        parsed = sql.col(_PARSED[VALUE])
        wrong = sql.col("value").isNotNull() & (parsed.isNull() | parsed[REST].isNotNull())
    return records, columns, wrong


def _payload(of: str, content: Content) -> Column:
    text = sql.col(of).cast("string")
    path = {CONNECT_JSON: "$.payload", JSON: "$"}.get(content.form)
    return text if path is None else sql.get_json_object(text, path)


def _parsed(text: Column, columns: Sequence[RowColumn]) -> Column:
    """Parse a JSON object. Decimals are read as such: as texts they would lose digits."""
    kinds = {
        column.name: column.kind
        if column.kind.startswith("decimal") and column.encoded is None
        else "STRING"
        for column in columns
    }
    members = [f"`{_escaped(name)}` {kind}" for name, kind in kinds.items()]
    return sql.from_json(
        text, ", ".join([*members, f"`{REST}` STRING"]), {"columnNameOfCorruptRecord": REST}
    )


def _escaped(name: str) -> str:
    return name.replace("`", "``")


def _of_record(column: RowColumn, plan: RowPlan) -> Column:
    if column.of not in _PARSED:
        return sql.col(column.of).cast(column.kind)
    found = sql.col(_PARSED[column.of])
    text = found if plan.contents[column.of].single else found[column.name]
    digits = text.cast("string").rlike("^-?[0-9]+$")
    match column.kind:
        case kind if column.encoded is not None:
            return _decoded(text, column.encoded).cast(kind)
        case "timestamp":
            return sql.when(digits, text.cast("bigint")).otherwise(_millis(text.cast("timestamp")))
        case "date":
            return sql.when(digits, text.cast("int")).otherwise(sql.unix_date(text.cast("date")))
        case "time":
            return text.cast("bigint")
        case "binary":
            return (
                sql.encode(text, "UTF-8") if column.field.type == "string" else sql.unbase64(text)
            )
        case "text":
            return text
        case "string":
            return _canonical(text)
        case kind if column.field.type == "boolean":
            return text.cast("boolean").cast(kind)
    return text.cast(column.kind)


def table_columns(plan: RowPlan, zone: str) -> list[Column]:
    """Return the plan's columns of a table; `zone` is that of timestamps without one."""
    return [_of_table(column, zone) for column in plan.columns]


def _of_table(column: RowColumn, zone: str) -> Column:
    found = sql.col(f"`{_escaped(column.name)}`")
    match column.kind:
        case "timestamp" if column.table_type == "timestamp":
            return _millis(found)
        case "timestamp":
            return _millis(sql.to_utc_timestamp(found.cast("timestamp"), zone))
        case "date":
            return sql.unix_date(found.cast("date"))
        case "time" if column.table_type == "string":
            return _millis(sql.concat(sql.lit("1970-01-01 "), found).cast("timestamp"))
        case "time":
            return _millis(found.cast("timestamp"))
        case "text":
            return found.cast("string")
        case "string":
            return _canonical(found.cast("string"))
    return found.cast(column.kind)


def _millis(timestamp: Column) -> Column:
    return sql.floor(sql.unix_micros(timestamp) / 1000).cast("bigint")


def _canonical(text: Column) -> Column:
    """Return a text; a database may have written the members of JSON in another order."""
    document = sql.to_json(sql.try_parse_json(text))
    return sql.when(text.rlike(r"^\s*[\[{]"), sql.coalesce(document, text)).otherwise(text)


def _decoded(text: Column, scale: int) -> Column:
    """Return the decimal of a scale whose digits, in two's complement, are in Base64."""
    number = sql.unbase64(text)

    def byte(index: Column) -> Column:
        return sql.conv(sql.hex(sql.substring(number, index, sql.lit(1))), 16, 10).cast("int")

    first = byte(sql.lit(1))
    signed = sql.when(first >= 128, first - 256).otherwise(first).cast("decimal(38,0)")
    rest = sql.filter(sql.sequence(sql.lit(1), sql.length(number)), lambda index: index > 1)
    digits = sql.aggregate(
        rest, signed, lambda total, index: (total * 256 + byte(index)).cast("decimal(38,0)")
    )
    return sql.concat(digits.cast("string"), sql.lit(f"E{-scale}"))
