"""Values in a schema registry's wire format, as columns of Spark.

    00 | schema id, 4 bytes big-endian | body

avro         the body in the schema of the id, decoded by Spark's `from_avro`
json-schema  the body is JSON; the schema is not needed
protobuf     refused: the registry has texts of schemas, but Spark needs compiled ones

One pass over the topics finds the ids of all schemas; the driver asks the registry once for each.
The jobs leave out and count values that do not parse; a schema that cannot be used is a finding of
its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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

from pyconnect_reconcile.data_sides import MARK as TOKEN
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import Finding, count_of, note
from pyconnect_reconcile.spec import AVRO, MAIN, Registry, Spec, TopicSide
from pyconnect_reconcile.values.canonical import text_token, token, typed_document
from pyconnect_reconcile.values.normal import (
    Columns,
    Content,
    documents,
    json_columns,
    unheld,
    whole_values,
    with_tokens,
)
from pyconnect_reconcile.values.releases import from_avro
from pyconnect_reconcile.values.schemas import (
    END,
    MARK,
    VALUE,
    RegisteredSchema,
    SchemaRegistry,
    framed_schema,
    micro_clocks,
    open_registry,
)

AVRO_MEMBER = "avro:"
MOST_SCHEMAS = 100
HEAD_BYTES = 5
SCHEMA_ID = "pyconnect_schema"


@dataclass(frozen=True, slots=True)
class AvroSchemas:
    """The schemas of some topics, by id: Spark's schema text and the type of the value."""

    texts: Mapping[int, str]
    types: Mapping[int, DataType]
    findings: tuple[Finding, ...] = ()

    @property
    def columns(self) -> dict[int, str]:
        """The names of the columns with decoded values."""
        return {number: f"pyconnect_avro_{number}" for number in self.texts}

    def value(self, number: int) -> Column:
        """Return the value that a schema decodes, in rows of `_with_decoded`."""
        return sql.col(self.columns[number])[VALUE]

    @property
    def is_whole(self) -> Column:
        """Whether some schema decodes a value down to its last byte, in rows of `_with_decoded`."""
        mark = sql.expr(f"X'{MARK.hex()}'")
        marks = (
            sql.coalesce(sql.col(name)[END] == mark, sql.lit(False))
            for name in self.columns.values()
        )
        return reduce(lambda one, other: one | other, marks, sql.lit(False))

    def member(self, path: str) -> dict[int, tuple[Column, DataType]]:
        """Return the places of a member by schema, `a.b` for nested ones; other schemas lack it."""
        found = {}
        for number, kind in self.types.items():
            column, inside = self.value(number), kind
            for step in path.removeprefix("$.").split("."):
                if not isinstance(inside, StructType) or step not in inside.names:
                    break
                column, inside = column[step], inside[step].dataType
            else:
                found[number] = (column, inside)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchemas:
    """The schemas that values of topics name, read once per set of topics in a run.

    `registries` are by cluster. `read` returns all records of topics in a cluster: the records of a
    sample or a tail may lack a schema that others name.
    """

    registries: Mapping[str, Registry]
    read: Callable[[Sequence[str], str], DataFrame]
    events: Events
    _known: dict[tuple[str, tuple[str, ...]], AvroSchemas] = field(default_factory=dict)

    def of(self, topics: Sequence[str], cluster: str) -> AvroSchemas:
        """Return the schemas that the records of these topics name."""
        place = (cluster, tuple(sorted(topics)))
        if place in self._known:
            return self._known[place]
        settings = self.registries.get(cluster) or self.registries.get(MAIN)
        if settings is None:
            raise ReconcileError(
                "the values are Avro, and no schema registry is known",
                hint="give --registry URL, or `registries` in the spec",
            )
        self.events.step("reading the schemas of the values")
        with open_registry(settings) as registry:
            self._known[place] = avro_schemas(self.read(topics, cluster), registry)
        return self._known[place]

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings on schemas that cannot be used."""
        return tuple(finding for schemas in self._known.values() for finding in schemas.findings)


def _schema_id() -> Column:
    """Return the id of the schema that a value names; null for a value without one."""
    framed = f"length(value) >= {HEAD_BYTES} AND substring(value, 1, 1) = X'00'"
    return sql.expr(
        f"CASE WHEN {framed} THEN CAST(conv(hex(substring(value, 2, 4)), 16, 10) AS BIGINT) END"
    )


def avro_schemas(records: DataFrame, registry: SchemaRegistry) -> AvroSchemas:
    """Read the schemas that the records name; a schema that cannot be used is a finding.

    The finding is a note: the jobs count the records that do not parse because of it.
    """
    counted = (
        records.where("value IS NOT NULL")
        .groupBy(_schema_id().alias("id"))
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
    for number, count in counted:
        usable = _usable(records, registry.schema(number))
        if not isinstance(usable, str):
            texts[number], types[number] = usable
            continue
        said = count_of(count, "record")
        findings.append(
            note(
                kind="unknown-schema",
                message=f"schema {number} of {said}: {usable}; its values do not parse",
                of="schema",
                first=number,
                last=number,
                count=count,
            )
        )
    return AvroSchemas(texts, types, tuple(findings))


def _usable(records: DataFrame, schema: RegisteredSchema | None) -> tuple[str, DataType] | str:
    """Return Spark's text and type of a schema, or the reason why it cannot be used."""
    from pyconnect_reconcile.errors import spark_errors_translated

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
    try:
        with spark_errors_translated():
            framed = records.select(_decoded(text).alias("decoded")).schema["decoded"].dataType
    except ReconcileError as exc:
        if "NOT_LOADED" in exc.message:
            raise ReconcileError(
                "Spark cannot read Avro",
                hint="give --packages org.apache.spark:spark-avro_2.13:VERSION of your Spark",
            ) from exc
        return f"Spark cannot read it: {exc.message}"
    assert isinstance(framed, StructType)
    return text, framed[VALUE].dataType


def _decoded(text: str) -> Column:
    body = sql.expr(f"concat(substring(value, {HEAD_BYTES + 1}), X'{MARK.hex()}')")
    decoded = from_avro(body, text)
    for name in micro_clocks(text) or ():
        # A time of day becomes a text: a number would be one of milliseconds.
        moment = sql.timestamp_micros(decoded[VALUE][name])
        clock = sql.date_format(moment, "HH:mm:ss.SSSSSS")
        decoded = decoded.withField(f"{VALUE}.`{name}`", clock)
    return decoded


def _with_decoded(records: DataFrame, schemas: AvroSchemas) -> DataFrame:
    """Return the records with a column for each schema, null for values of other schemas."""
    identified = records.withColumn(SCHEMA_ID, _schema_id())
    return identified.withColumns(
        {
            name: sql.when(sql.col(SCHEMA_ID) == number, _decoded(schemas.texts[number]))
            for number, name in schemas.columns.items()
        }
    )


def _merged(columns: Mapping[int, Column]) -> Column:
    """Return one column with the texts of all schemas; each row has that of its own schema."""
    chosen = [sql.when(sql.col(SCHEMA_ID) == number, each) for number, each in columns.items()]
    return (sql.coalesce(*chosen) if chosen else sql.lit(None)).cast("string")


def framed_content(
    known: TopicSchemas, records: DataFrame, side: TopicSide, columns: Columns, *, all_marked: bool
) -> Content:
    """Return the records and the compared part of their values; JSON as in `json_columns`.

    A value without a frame does not parse as JSON, either.
    """
    if side.value != AVRO:
        body = sql.expr(f"substring(value, {HEAD_BYTES + 1})")
        json = sql.when(_schema_id().isNotNull(), body).otherwise(sql.expr("concat(X'00', value)"))
        records = records.withColumn("value", sql.when(sql.col("value").isNotNull(), json))
        if not columns.all:
            return whole_values(records, "json")
        return json_columns(records, "json", columns, all_marked=all_marked)
    schemas = known.of(side.topics, side.cluster)
    decoded = _with_decoded(records, schemas)
    if columns.all:
        return _avro_columns(decoded, schemas, side, columns)
    found = {
        number: typed_document(schemas.value(number), kind)
        for number, kind in schemas.types.items()
    }
    return documents(decoded, sql.when(schemas.is_whole, _merged(found)).cast("string"))


def _avro_columns(
    decoded: DataFrame, schemas: AvroSchemas, side: TopicSide, columns: Columns
) -> Content:
    places = []
    for column in columns.all:
        found = schemas.member(column.rule.path)
        if schemas.texts and not found and not columns.closed:
            raise ReconcileError(
                f"no schema of {', '.join(side.topics)} has a member `{column.rule.path}`",
                hint="name the compared values and their places: --column, or `columns` with"
                " `path`",
            )
        places.append(_merged({number: token(*place) for number, place in found.items()}))
    decoded, content = with_tokens(decoded, places, columns.all)
    wrong = sql.col("value").isNotNull() & ~schemas.is_whole
    # The names of fields that are not null and have no column, by schema.
    others: dict[int, Column] = {}
    for number, kind in schemas.types.items():
        names = kind.names if columns.closed and isinstance(kind, StructType) else []
        value = schemas.value(number)
        missing = [
            sql.when(value[name].isNotNull(), sql.lit(name))
            for name in names
            if name not in columns.known
        ]
        if missing:
            named = sql.concat_ws(", ", *missing)
            others[number] = sql.when(named != "", named)
    left_over = _merged(others)
    rest = (
        sql.when(sql.col("value").isNull(), sql.lit(b"null"))
        .when(wrong, sql.concat(sql.lit(b"raw "), sql.col("value")))
        .otherwise(left_over.cast("binary"))
    )
    return Content(
        frame=decoded,
        columns=[*content, rest],
        unparsable=wrong,
        unheld=unheld(content, columns, left_over),
    )


def with_avro_members(
    known: TopicSchemas,
    records: DataFrame,
    asked: Sequence[str],
    topics: Sequence[str],
    cluster: str,
) -> DataFrame:
    """Return the records with the tokens of each `avro:PATH` that the spec asks for.

    A token is null if the value does not parse, or its schema lacks the member. Bytes and times are
    texts, decimals keep the zeros of their scale.
    """
    if not asked:
        return records
    schemas = known.of(topics, cluster)

    def plain(column: Column, kind: DataType) -> Column:
        text = column.cast("string")
        match kind:
            case StringType():
                return text_token(column)
            case StructType() | ArrayType() | MapType():
                return token(column, kind)
            case DoubleType() | FloatType():
                # Texts of large floating-point numbers have an exponent.
                whole = column.cast("bigint")
                text = sql.when(whole.cast(kind) == column, whole.cast("string")).otherwise(text)
        return sql.concat(sql.lit(TOKEN), text) if isinstance(kind, NumericType) else text

    columns = {}
    for extraction in asked:
        found = schemas.member(extraction.removeprefix(AVRO_MEMBER))
        if schemas.texts and not found:
            raise ReconcileError(f"no schema of {', '.join(topics)} has a field for `{extraction}`")
        texts = _merged({number: plain(*place) for number, place in found.items()})
        columns[extraction] = sql.when(schemas.is_whole, texts)
    decoded = _with_decoded(records, schemas).withColumns(columns)
    return decoded.drop(SCHEMA_ID, *schemas.columns.values())


def avro_members(spec: Spec, topics: Sequence[str]) -> list[str]:
    """Return the extractions from Avro values that a spec has for these topics."""
    tiers = [
        tier.event_time
        for tier in spec.tiers
        if isinstance(tier.side, TopicSide) and set(tier.side.topics) >= set(topics)
    ]
    texts = [spec.sequence, spec.group, spec.identity, spec.key, *tiers]
    return sorted({text for text in texts if text is not None and text.startswith(AVRO_MEMBER)})
