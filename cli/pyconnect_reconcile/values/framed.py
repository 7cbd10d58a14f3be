"""Values in a schema registry's wire format, as columns of Spark.

    00 | schema id, 4 bytes big-endian | body

avro         the body as the schema of its id says, decoded by Spark's `from_avro`
json-schema  the body is JSON; the schema is not needed
protobuf     refused: the registry has texts of schemas, Spark wants compiled ones

One pass over the topics finds which schemas there are; each is asked of the registry once, by the
driver. Values that do not parse are left out and counted by the jobs; what is wrong with a schema
is a finding of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    NumericType,
    StringType,
    StructType,
)

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Finding, Severity, count_of
from pyconnect_reconcile.tokens import MARK as TOKEN
from pyconnect_reconcile.values import canonical
from pyconnect_reconcile.values.avro_schemas import END, MARK, VALUE, framed_schema, micro_clocks
from pyconnect_reconcile.values.registry import RegisteredSchema, SchemaRegistry
from pyconnect_reconcile.values.releases import from_avro

MOST_SCHEMAS = 100
HEAD_BYTES = 5
SCHEMA_ID = "pyconnect_schema"


@dataclass(frozen=True, slots=True)
class AvroSchemas:
    """The schemas of some topics, by id: Spark's schema text and the type of the value."""

    texts: Mapping[int, str]
    types: Mapping[int, DataType]
    findings: tuple[Finding, ...] = ()


def schema_id() -> Column:
    """The id of the schema that a value names; null when it names none."""
    framed = f"length(value) >= {HEAD_BYTES} AND substring(value, 1, 1) = X'00'"
    return sql.expr(
        f"CASE WHEN {framed} THEN CAST(conv(hex(substring(value, 2, 4)), 16, 10) AS BIGINT) END"
    )


def without_frame(records: DataFrame) -> DataFrame:
    """Return the records with the JSON of their values in place of the values.

    A value without a frame is no JSON afterwards, either.
    """
    body = sql.expr(f"substring(value, {HEAD_BYTES + 1})")
    framed = sql.when(schema_id().isNotNull(), body).otherwise(sql.expr("concat(X'00', value)"))
    return records.withColumn("value", sql.when(sql.col("value").isNotNull(), framed))


def avro_schemas(records: DataFrame, registry: SchemaRegistry) -> AvroSchemas:
    """Read which schemas the records name and ask for each; what cannot be used is a finding."""
    counted = (
        records.where("value IS NOT NULL")
        .groupBy(schema_id().alias("id"))
        .count()
        .where("id IS NOT NULL")
        .orderBy("id")
        .limit(MOST_SCHEMAS + 1)
        .collect()
    )
    if len(counted) > MOST_SCHEMAS:
        raise ReconcileError(
            f"the values name more than {MOST_SCHEMAS} schemas: are they in Confluent's format?",
            hint="compare them as bytes, or read less: --since",
        )
    texts: dict[int, str] = {}
    types: dict[int, DataType] = {}
    findings: list[Finding] = []
    for row in counted:
        usable = _usable(records, registry.schema(row.id))
        if isinstance(usable, str):
            findings.append(_unusable(row.id, row["count"], usable))
        else:
            texts[row.id], types[row.id] = usable
    return AvroSchemas(texts, types, tuple(findings))


def _usable(records: DataFrame, schema: RegisteredSchema | None) -> tuple[str, DataType] | str:
    """Return Spark's text and type of a schema, or why there is none."""
    if schema is None:
        return "the registry does not know it"
    if schema.kind != "AVRO":
        return f"it is a schema of {schema.kind}, not of Avro"
    try:
        text = framed_schema(schema.text, schema.references)
    except ValueError as exc:
        return f"its text is not JSON: {exc}"
    if micro_clocks(text) is None:
        return "it has times of day in microseconds within arrays, maps or records"
    decoded = _type_of(records, text)
    if isinstance(decoded, str):
        return decoded
    return text, decoded


def _type_of(records: DataFrame, text: str) -> DataType | str:
    from pyconnect_reconcile.spark.errors import spark_errors_translated

    try:
        with spark_errors_translated():
            schema = records.select(_decoded(text).alias("decoded")).schema
    except ReconcileError as exc:
        if "NOT_LOADED" in exc.message:
            raise ReconcileError(
                "Spark cannot read Avro",
                hint="give --packages org.apache.spark:spark-avro_2.13:VERSION of your Spark",
            ) from exc
        return f"Spark cannot read it: {exc.message}"
    framed = schema["decoded"].dataType
    assert isinstance(framed, StructType)
    return framed[VALUE].dataType


def _decoded(text: str) -> Column:
    body = sql.expr(f"concat(substring(value, {HEAD_BYTES + 1}), X'{MARK.hex()}')")
    decoded = from_avro(body, text)
    for name in micro_clocks(text) or ():
        # As texts: a number of a time of day is one of milliseconds.
        moment = sql.timestamp_micros(decoded[VALUE][name])
        clock = sql.date_format(moment, "HH:mm:ss.SSSSSS")
        decoded = decoded.withField(f"{VALUE}.`{name}`", clock)
    return decoded


def _unusable(number: int, count: int, why: str) -> Finding:
    """Return a note: the records that do not parse because of it are counted by the jobs."""
    return Finding(
        kind="unknown-schema",
        severity=Severity.NOTE,
        message=f"schema {number} of {count_of(count, 'record')}: {why}; its values do not parse",
        of="schema",
        first=number,
        last=number,
        count=count,
    )


def _column_name(number: int) -> str:
    return f"pyconnect_avro_{number}"


def with_decoded(records: DataFrame, schemas: AvroSchemas) -> DataFrame:
    """Return the records with a column for each schema, null where the value has another one."""
    identified = records.withColumn(SCHEMA_ID, schema_id())
    return identified.withColumns(
        {
            _column_name(number): sql.when(sql.col(SCHEMA_ID) == number, _decoded(text))
            for number, text in schemas.texts.items()
        }
    )


def is_whole(schemas: AvroSchemas) -> Column:
    """Return whether a value was decoded, down to its last byte; of `with_decoded`."""
    marks = (
        sql.coalesce(
            sql.col(_column_name(number))[END] == sql.expr(f"X'{MARK.hex()}'"), sql.lit(False)
        )
        for number in schemas.texts
    )
    return reduce(lambda one, other: one | other, marks, sql.lit(False))


def value_of(number: int) -> Column:
    """Return the value that a schema has decoded; of `with_decoded`."""
    return sql.col(_column_name(number))[VALUE]


def member(schemas: AvroSchemas, path: str) -> dict[int, tuple[Column, DataType]]:
    """Return where the schemas that have it hold a member, `a.b` for nested ones; by schema."""
    steps = path.removeprefix("$.").split(".")
    found = {}
    for number, kind in schemas.types.items():
        column = value_of(number)
        inside: DataType | None = kind
        for step in steps:
            if not isinstance(inside, StructType) or step not in inside.names:
                inside = None
                break
            column, inside = column[step], inside[step].dataType
        if inside is not None:
            found[number] = (column, inside)
    return found


def merged(columns: Mapping[int, Column]) -> Column:
    """Return the column of the schema that a value has; they are of one type."""
    chosen = [sql.when(sql.col(SCHEMA_ID) == number, each) for number, each in columns.items()]
    return sql.coalesce(*chosen) if chosen else sql.lit(None)


def document(schemas: AvroSchemas) -> Column:
    """Return values as documents in canonical form; null where they do not parse."""
    documents = {
        number: canonical.typed_document(value_of(number), kind)
        for number, kind in schemas.types.items()
    }
    return sql.when(is_whole(schemas), merged(documents)).cast("string")


def without_decoded(records: DataFrame, schemas: AvroSchemas) -> DataFrame:
    """Return the records without the columns that `with_decoded` adds."""
    return records.drop(SCHEMA_ID, *map(_column_name, schemas.texts))


def _plain(column: Column, kind: DataType) -> Column:
    """Return a member's token; bytes and times as texts, decimals with the zeros of their scale."""
    text = column.cast("string")
    match kind:
        case StringType():
            return canonical.text_token(column)
        case StructType() | ArrayType() | MapType():
            return canonical.token(column, kind)
        case DoubleType() | FloatType():
            # As texts large ones have an exponent.
            whole = column.cast("bigint")
            text = sql.when(whole.cast(kind) == column, whole.cast("string")).otherwise(text)
    return sql.concat(sql.lit(TOKEN), text) if isinstance(kind, NumericType) else text


def with_members(records: DataFrame, schemas: AvroSchemas, paths: Mapping[str, str]) -> DataFrame:
    """Return the records with the tokens of members of their values, by name of the column.

    They are null where a value does not parse, or its schema has no such member.
    """
    decoded = with_decoded(records, schemas)
    columns = {}
    for name, path in paths.items():
        texts = {number: _plain(*place) for number, place in member(schemas, path).items()}
        columns[name] = sql.when(is_whole(schemas), merged(texts)).cast("string")
    return without_decoded(decoded.withColumns(columns), schemas)
