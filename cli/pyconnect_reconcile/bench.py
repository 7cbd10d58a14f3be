"""The tools of a check: session, spec, snapshots and the reading of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from pyconnect_reconcile.database_tables.copies import CopiedTable
from pyconnect_reconcile.errors import RecordsRemoved
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.files import FixedFiles
from pyconnect_reconcile.spec import MAIN, Spec
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.reading import UNCOMMITTED, fit_shuffles, read_topics
from pyconnect_reconcile.topics.snapshot import PartitionRange, TopicsSnapshot
from pyconnect_reconcile.values.registered import TopicSchemas, avro_members, with_avro_members


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One run's tools.

    `snapshots` by the name of the cluster, `files` and `tables` by the place of a side. `begun_ms`
    is when the first of them was looked at.
    """

    spark: SparkSession
    spec: Spec
    snapshots: Mapping[str, TopicsSnapshot]
    events: Events
    files: Mapping[str, FixedFiles] = field(default_factory=dict)
    tables: Mapping[str, CopiedTable] = field(default_factory=dict)
    begun_ms: int = 0
    schemas: TopicSchemas = field(init=False)

    def __post_init__(self) -> None:
        """Know no schema yet; where they are is said by the spec."""
        schemas = TopicSchemas(
            registries=self.spec.registries, read=self._everything, events=self.events
        )
        object.__setattr__(self, "schemas", schemas)

    def snapshot(self, topics: Sequence[str], cluster: str = MAIN) -> TopicsSnapshot:
        """Return the part of a cluster's snapshot that concerns these topics."""
        return self.snapshots[cluster].of_topics(topics)

    def require_same_topics(self) -> None:
        """Raise RecordsRemoved for topics that were deleted, or created again, during the run.

        What was read of such a topic may be neither what was there nor what is there.
        """
        for name, snapshot in self.snapshots.items():
            if snapshot.topics and (gone := self._gone(name, snapshot)):
                raise RecordsRemoved(
                    f"{', '.join(gone)} was deleted, or deleted and created again, during the run",
                    hint="run it again",
                )

    def _gone(self, cluster: str, snapshot: TopicsSnapshot) -> list[str]:
        return ClusterView(self.spec.clusters[cluster]).gone(snapshot)

    def _everything(self, topics: Sequence[str], cluster: str) -> DataFrame:
        """Return the records that any read of these topics may return."""
        parts = self.snapshot(topics, cluster).partitions
        whole = [replace(part, end=max(part.end, part.high_watermark)) for part in parts]
        return read_topics(self.spark, self.spec.clusters[cluster], whole, isolation=UNCOMMITTED)

    def records(
        self,
        ranges: Iterable[PartitionRange],
        *,
        isolation: str,
        cluster: str = MAIN,
        headers: bool = False,
    ) -> DataFrame:
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
        asked = avro_members(self.spec, topics)
        return with_avro_members(self.schemas, records, asked, topics, cluster)
