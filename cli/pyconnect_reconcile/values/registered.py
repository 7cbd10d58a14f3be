"""Reads values whose schemas a registry keeps, for the jobs: `framed_values` and the registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import Finding
from pyconnect_reconcile.spec import AVRO, MAIN, ColumnRule, Registry, Spec, TopicSide
from pyconnect_reconcile.values import framed
from pyconnect_reconcile.values.framed import AvroSchemas
from pyconnect_reconcile.values.normal import (
    is_unparsable,
    normal_column,
    normal_value,
    with_json_columns,
)
from pyconnect_reconcile.values.registry import open_registry

AVRO_MEMBER = "avro:"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSchemas:
    """The schemas that values of topics name; a run asks for those of the same topics once.

    `registries` are by cluster; with `fatal` a schema that cannot be used is a difference.
    """

    registries: Mapping[str, Registry]
    fatal: bool
    events: Events
    _known: dict[tuple[str, tuple[str, ...]], AvroSchemas] = field(default_factory=dict)

    def of(self, records: DataFrame, topics: Sequence[str], cluster: str) -> AvroSchemas:
        """Return those that the records name, which are all of these topics."""
        place = (cluster, tuple(sorted(topics)))
        if place not in self._known:
            self._known[place] = self._asked(records, cluster)
        return self._known[place]

    def findings(self) -> tuple[Finding, ...]:
        """Return what is wrong with the schemas that were asked for."""
        return tuple(finding for schemas in self._known.values() for finding in schemas.findings)

    def _asked(self, records: DataFrame, cluster: str) -> AvroSchemas:
        settings = self.registries.get(cluster) or self.registries.get(MAIN)
        if settings is None:
            raise ReconcileError(
                "the values are Avro, and no schema registry is known",
                hint="give --registry URL, or `registries` in the spec",
            )
        self.events.step("reading the schemas of the values")
        with open_registry(settings) as registry:
            return framed.avro_schemas(records, registry, fatal=self.fatal)


def framed_content(
    known: TopicSchemas, records: DataFrame, side: TopicSide, columns: Sequence[ColumnRule]
) -> tuple[DataFrame, list[Column], Column]:
    """Return the records, what of their values is compared, and which do not parse."""
    if side.value != AVRO:
        records = framed.without_frame(records)
    elif columns:
        return _avro_columns(known, records, side, columns)
    else:
        schemas = known.of(records, side.topics, side.cluster)
        records = framed.as_json(records, schemas)
    if columns:
        return with_json_columns(records, "json", columns)
    return records, [normal_value("json")], is_unparsable("json")


def _avro_columns(
    known: TopicSchemas, records: DataFrame, side: TopicSide, columns: Sequence[ColumnRule]
) -> tuple[DataFrame, list[Column], Column]:
    schemas = known.of(records, side.topics, side.cluster)
    content = []
    for rule in columns:
        found = framed.member(schemas, rule.path)
        if schemas.texts and not found:
            raise ReconcileError(
                f"no schema of {', '.join(side.topics)} has a member `{rule.path}`",
                hint="name the compared values and their places: --column, or `columns` with"
                " `path`",
            )
        # One type for all schemas, also where none has the member.
        each = {number: normal_column(rule, column) for number, column in found.items()}
        content.append(framed.merged(each))
    wrong = sql.col("value").isNotNull() & ~framed.is_whole(schemas)
    return framed.with_decoded(records, schemas), content, wrong


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
    schemas = known.of(records, topics, cluster)
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
