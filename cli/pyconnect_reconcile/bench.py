"""The tools of a check: session, spec, snapshots and the reading of topics.

A read returns exactly the offsets of a snapshot, at a stated isolation level. Columns: topic,
partition, offset, timestamp_ms, key, value and, on request, headers.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from pyconnect_reconcile.errors import RecordsRemoved
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.files import FixedFiles
from pyconnect_reconcile.properties import client_properties, spark_options
from pyconnect_reconcile.spec import MAIN, Cluster, Spec
from pyconnect_reconcile.stores.tables import CopiedTable
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import PartitionRange, TopicsSnapshot
from pyconnect_reconcile.values.framed import TopicSchemas, avro_members, with_avro_members

COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"
SPLIT_ROWS = 1_000_000
SHUFFLE_ROWS = 400_000
MOST_SHUFFLES = 4000
FEW_ROWS, FEW_BYTES = 200_000, 10 * 2**20
"""A run that reads at most this much has small exchanges: adaptive plans would cost more time."""
SCHEMA = "topic string, partition int, offset bigint, timestamp_ms bigint, key binary, value binary"
HEADERS_SCHEMA = "headers array<struct<key: string, value: binary>>"
# Kafka's default fetch sizes are small for Spark's tasks, which read one partition each.
FETCH = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 * 2**20),
    "kafka.fetch.max.bytes": str(64 * 2**20),
    "kafka.receive.buffer.bytes": str(2**20),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The tools of one run.

    The keys of `snapshots` are names of clusters, those of `files` and `tables` the places of
    sides. `begun_ms` is the time at which the capture of these inputs began.
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
        """Create the schema reader, and fit the session's exchanges to the amount that is read."""

        def read(topics: Sequence[str], cluster: str) -> DataFrame:
            """Return the records that any read of these topics may return."""
            parts = self.snapshot(topics, cluster).partitions
            whole = [replace(part, end=max(part.end, part.high_watermark)) for part in parts]
            at = self.spec.clusters[cluster]
            return read_topics(self.spark, at, whole, isolation=UNCOMMITTED)

        schemas = TopicSchemas(registries=self.spec.registries, read=read, events=self.events)
        object.__setattr__(self, "schemas", schemas)
        sizes = [
            *(each.size for each in self.files.values()),
            *(each.files.size for each in self.tables.values()),
        ]
        rows = sum(each.length for each in self.snapshots.values())
        is_small = (
            rows <= FEW_ROWS and sum(FEW_BYTES if n is None else n for n in sizes) < FEW_BYTES
        )
        partitions = 1 if is_small and rows <= FEW_ROWS // 8 else max(4, -(-rows // SHUFFLE_ROWS))
        self.spark.conf.set("spark.sql.shuffle.partitions", str(min(partitions, MOST_SHUFFLES)))
        self.spark.conf.set("spark.sql.adaptive.enabled", str(not is_small).lower())

    def snapshot(self, topics: Sequence[str], cluster: str = MAIN) -> TopicsSnapshot:
        """Return the part of a cluster's snapshot that concerns these topics."""
        return self.snapshots[cluster].of_topics(topics)

    def require_same_topics(self) -> None:
        """Raise RecordsRemoved for topics that were deleted, or created again, during the run.

        The records that were read may belong to neither the old topic nor the new one.
        """
        for name, snapshot in self.snapshots.items():
            if not snapshot.topics:
                continue
            if gone := ClusterView(self.spec.clusters[name]).gone(snapshot):
                raise RecordsRemoved(
                    f"{', '.join(gone)} was deleted, or deleted and created again, during the run",
                    hint="run it again",
                )

    def records(
        self,
        ranges: Iterable[PartitionRange],
        *,
        isolation: str,
        cluster: str = MAIN,
        headers: bool = False,
    ) -> DataFrame:
        parts = tuple(ranges)
        records = read_topics(
            self.spark, self.spec.clusters[cluster], parts, isolation=isolation, headers=headers
        )
        topics = tuple(dict.fromkeys(part.topic for part in parts))
        asked = avro_members(self.spec, topics)
        return with_avro_members(self.schemas, records, asked, topics, cluster)


def read_topics(
    spark: SparkSession,
    cluster: Cluster,
    ranges: Iterable[PartitionRange],
    *,
    isolation: str,
    headers: bool = False,
) -> DataFrame:
    """Return the records of these ranges; missing data is an error (`failOnDataLoss`)."""
    parts = [part for part in ranges if part.length > 0]
    if not parts:
        return spark.createDataFrame([], SCHEMA + (f", {HEADERS_SCHEMA}" if headers else ""))
    length = sum(part.length for part in parts)
    bounds: dict[str, dict[int, tuple[int, int]]] = {}
    for part in parts:
        bounds.setdefault(part.topic, {})[part.partition] = (part.start, part.end)
    starts, ends = (
        {topic: {n: at[index] for n, at in of.items()} for topic, of in bounds.items()}
        for index in (0, 1)
    )
    options = {
        **FETCH,
        **spark_options(client_properties(cluster.properties)),
        "kafka.bootstrap.servers": cluster.bootstrap,
        "kafka.isolation.level": isolation,
        "assign": json.dumps({topic: list(of) for topic, of in bounds.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "failOnDataLoss": "true",
        "includeHeaders": str(headers).lower(),
        "minPartitions": str(max(len(parts), -(-length // SPLIT_ROWS))),
    }
    columns = ["topic", "partition", "offset", "unix_millis(timestamp) AS timestamp_ms"]
    columns += ["key", "value", *(["headers"] if headers else [])]
    return spark.read.format("kafka").options(**options).load().selectExpr(*columns)
