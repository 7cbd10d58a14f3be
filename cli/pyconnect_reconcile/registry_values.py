"""Reads values whose schemas a registry keeps, for the jobs: `framed_values` with a run's spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile import framed_values
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.framed_values import AvroSchemas
from pyconnect_reconcile.normal import (
    is_unparsable,
    normal_column,
    normal_value,
    with_json_columns,
)
from pyconnect_reconcile.registry import open_registry
from pyconnect_reconcile.spec import AVRO, MAIN, ColumnRule, Spec, TopicSide

if TYPE_CHECKING:
    from pyconnect_reconcile.bench import Bench

AVRO_MEMBER = "avro:"


def framed_content(
    bench: Bench, records: DataFrame, side: TopicSide, columns: Sequence[ColumnRule]
) -> tuple[DataFrame, list[Column], Column]:
    """Return the records, what of their values is compared, and which do not parse."""
    if side.value != AVRO:
        records = framed_values.without_frame(records)
    elif columns:
        return _avro_columns(bench, records, side, columns)
    else:
        schemas = schemas_of(bench, records, side.topics, side.cluster)
        records = framed_values.as_json(records, schemas)
    if columns:
        return with_json_columns(records, "json", columns)
    return records, [normal_value("json")], is_unparsable("json")


def _avro_columns(
    bench: Bench, records: DataFrame, side: TopicSide, columns: Sequence[ColumnRule]
) -> tuple[DataFrame, list[Column], Column]:
    schemas = schemas_of(bench, records, side.topics, side.cluster)
    content = []
    for rule in columns:
        found = framed_values.member(schemas, rule.path)
        if schemas.texts and not found:
            raise ReconcileError(
                f"no schema of {', '.join(side.topics)} has a member `{rule.path}`",
                hint="say what is compared, and where it is: --column, or `columns` with `path`",
            )
        # One type for all schemas, also where none has the member.
        each = {number: normal_column(rule, column) for number, column in found.items()}
        content.append(framed_values.merged(each))
    wrong = sql.col("value").isNotNull() & ~framed_values.is_whole(schemas)
    return framed_values.with_decoded(records, schemas), content, wrong


def with_avro_members(
    bench: Bench, records: DataFrame, topics: Sequence[str], cluster: str
) -> DataFrame:
    """Return the records with a column for each `avro:PATH` that the spec asks of these topics."""
    asked = avro_members(bench.spec, topics)
    if not asked:
        return records
    schemas = schemas_of(bench, records, topics, cluster)
    paths = {extraction: extraction.removeprefix(AVRO_MEMBER) for extraction in asked}
    for extraction, path in paths.items():
        if schemas.texts and not framed_values.member(schemas, path):
            raise ReconcileError(f"no schema of {', '.join(topics)} has what `{extraction}` says")
    return framed_values.with_members(records, schemas, paths)


def avro_members(spec: Spec, topics: Sequence[str]) -> list[str]:
    """Return the extractions from Avro values that a spec has for these topics."""
    tiers = [
        tier.event_time
        for tier in spec.tiers
        if isinstance(tier.side, TopicSide) and set(tier.side.topics) >= set(topics)
    ]
    texts = [spec.sequence, spec.group, spec.identity, spec.key, *tiers]
    return sorted({text for text in texts if text is not None and text.startswith(AVRO_MEMBER)})


def schemas_of(
    bench: Bench, records: DataFrame, topics: Sequence[str], cluster: str
) -> AvroSchemas:
    """Return the schemas that the values of topics name; each run asks for them once."""
    place = (cluster, tuple(sorted(topics)))
    known = bench.schemas.get(place)
    if known is not None:
        return known
    settings = bench.spec.registries.get(cluster) or bench.spec.registries.get(MAIN)
    if settings is None:
        raise ReconcileError(
            "the values are Avro, and no schema registry is known",
            hint="give --registry URL, or `registries` in the spec",
        )
    bench.events.step("reading which schemas the values have")
    with open_registry(settings) as registry:
        found = framed_values.avro_schemas(records, registry, fatal=bench.spec.fail_unparsable)
    bench.schemas[place] = found
    return found
