"""What a check works with: session, spec, snapshots and the reading of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from pyconnect_reconcile.events import Events
from pyconnect_reconcile.framed_values import AvroSchemas
from pyconnect_reconcile.reading import fit_shuffles, read_topics
from pyconnect_reconcile.registry_values import with_avro_members
from pyconnect_reconcile.snapshot import PartitionRange, Snapshot
from pyconnect_reconcile.spec import MAIN, Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One run's tools; `snapshots` by the name of the cluster.

    `schemas` are filled while topics are read: by cluster and topics.
    """

    spark: SparkSession
    spec: Spec
    snapshots: Mapping[str, Snapshot]
    events: Events
    schemas: dict[tuple[str, tuple[str, ...]], AvroSchemas] = field(default_factory=dict)

    def snapshot(self, topics: Sequence[str], cluster: str = MAIN) -> Snapshot:
        """Return the part of a cluster's snapshot that concerns these topics."""
        return self.snapshots[cluster].of_topics(topics)

    def records(
        self,
        ranges: Iterable[PartitionRange],
        *,
        isolation: str,
        cluster: str = MAIN,
        headers: bool = False,
    ) -> DataFrame:
        """Return the records of these ranges."""
        parts = tuple(ranges)
        fit_shuffles(self.spark, sum(part.length for part in parts))
        records = read_topics(
            self.spark,
            self.spec.clusters[cluster],
            parts,
            isolation=isolation,
            headers=headers,
        )
        topics = tuple(dict.fromkeys(part.topic for part in parts))
        return with_avro_members(self, records, topics, cluster)
