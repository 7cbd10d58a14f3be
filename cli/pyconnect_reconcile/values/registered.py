"""Reads values whose schemas a registry keeps, for the jobs: `framed_values` and the registries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import Finding
from pyconnect_reconcile.spec import AVRO, MAIN, Registry, Spec, TopicSide
from pyconnect_reconcile.values import framed
from pyconnect_reconcile.values.canonical import token
from pyconnect_reconcile.values.framed import AvroSchemas
from pyconnect_reconcile.values.normal import (
    Columns,
    Content,
    documents,
    json_columns,
    unheld,
    whole_values,
    with_tokens,
)
from pyconnect_reconcile.values.registry import open_registry

AVRO_MEMBER = "avro:"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchemas:
    """The schemas that values of topics name; a run asks for those of the same topics once.

    `registries` are by cluster. `read` returns all records of topics in a cluster: those of a
    sample or a tail may lack a schema that others name.
    """

    registries: Mapping[str, Registry]
    read: Callable[[Sequence[str], str], DataFrame]
    events: Events
    _known: dict[tuple[str, tuple[str, ...]], AvroSchemas] = field(default_factory=dict)

    def of(self, topics: Sequence[str], cluster: str) -> AvroSchemas:
        """Return those that the records of these topics name."""
        place = (cluster, tuple(sorted(topics)))
        if place not in self._known:
            self._known[place] = self._asked(topics, cluster)
        return self._known[place]

    def findings(self) -> tuple[Finding, ...]:
        """Return what is wrong with the schemas that were asked for."""
        return tuple(finding for schemas in self._known.values() for finding in schemas.findings)

    def _asked(self, topics: Sequence[str], cluster: str) -> AvroSchemas:
        settings = self.registries.get(cluster) or self.registries.get(MAIN)
        if settings is None:
            raise ReconcileError(
                "the values are Avro, and no schema registry is known",
                hint="give --registry URL, or `registries` in the spec",
            )
        self.events.step("reading the schemas of the values")
        with open_registry(settings) as registry:
            return framed.avro_schemas(self.read(topics, cluster), registry)


def framed_content(
    known: TopicSchemas,
    records: DataFrame,
    side: TopicSide,
    columns: Columns,
    *,
    all_marked: bool,
) -> Content:
    """Return the records and what of their values is compared; JSON as by `json_columns`."""
    if side.value != AVRO:
        records = framed.without_frame(records)
        if not columns.all:
            return whole_values(records, "json")
        return json_columns(records, "json", columns, all_marked=all_marked)
    schemas = known.of(side.topics, side.cluster)
    decoded = framed.with_decoded(records, schemas)
    if columns.all:
        return _avro_columns(decoded, schemas, side, columns)
    return documents(decoded, framed.document(schemas))


def _avro_columns(
    decoded: DataFrame, schemas: AvroSchemas, side: TopicSide, columns: Columns
) -> Content:
    places = []
    for column in columns.all:
        found = framed.member(schemas, column.rule.path)
        if schemas.texts and not found and not columns.closed:
            raise ReconcileError(
                f"no schema of {', '.join(side.topics)} has a member `{column.rule.path}`",
                hint="name the compared values and their places: --column, or `columns` with"
                " `path`",
            )
        each = {number: token(*place) for number, place in found.items()}
        places.append(framed.merged(each).cast("string"))
    decoded, content = with_tokens(decoded, places, columns.all)
    whole = framed.is_whole(schemas)
    wrong = sql.col("value").isNotNull() & ~whole
    others = sql.lit(None).cast("string")
    if columns.closed:
        others = framed.merged(_fields_without_column(schemas, columns)).cast("string")
    rest = (
        sql.when(sql.col("value").isNull(), sql.lit(b"null"))
        .when(wrong, sql.concat(sql.lit(b"raw "), sql.col("value")))
        .otherwise(others.cast("binary"))
    )
    return Content(
        frame=decoded,
        columns=[*content, rest],
        unparsable=wrong,
        unheld=unheld(content, columns, others),
    )


def _fields_without_column(schemas: AvroSchemas, columns: Columns) -> dict[int, Column]:
    """Return, by schema, the names of fields that are not null and have no column."""
    found = {}
    for number, kind in schemas.types.items():
        names = kind.names if isinstance(kind, StructType) else []
        others = [
            sql.when(framed.value_of(number)[name].isNotNull(), sql.lit(name))
            for name in names
            if name not in columns.known
        ]
        if others:
            named = sql.concat_ws(", ", *others)
            found[number] = sql.when(named != "", named)
    return found


def with_avro_members(
    known: TopicSchemas,
    records: DataFrame,
    asked: Sequence[str],
    topics: Sequence[str],
    cluster: str,
) -> DataFrame:
    """Return the records with a column for each `avro:PATH` that is asked of these topics."""
    if not asked:
        return records
    schemas = known.of(topics, cluster)
    paths = {extraction: extraction.removeprefix(AVRO_MEMBER) for extraction in asked}
    for extraction, path in paths.items():
        if schemas.texts and not framed.member(schemas, path):
            raise ReconcileError(f"no schema of {', '.join(topics)} has a field for `{extraction}`")
    return framed.with_members(records, schemas, paths)


def avro_members(spec: Spec, topics: Sequence[str]) -> list[str]:
    """Return the extractions from Avro values that a spec has for these topics."""
    tiers = [
        tier.event_time
        for tier in spec.tiers
        if isinstance(tier.side, TopicSide) and set(tier.side.topics) >= set(topics)
    ]
    texts = [spec.sequence, spec.group, spec.identity, spec.key, *tiers]
    return sorted({text for text in texts if text is not None and text.startswith(AVRO_MEMBER)})
