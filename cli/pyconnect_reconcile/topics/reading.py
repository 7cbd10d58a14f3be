"""Topics as DataFrames: exactly the offsets of a snapshot, at a stated isolation level.

Columns: topic, partition, offset, timestamp_ms, key, value and, when asked for, headers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pyconnect_reconcile.properties import client_properties, spark_options
from pyconnect_reconcile.spec import Cluster
from pyconnect_reconcile.topics.snapshot import PartitionRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"
SPLIT_ROWS = 1_000_000
SHUFFLE_ROWS = 400_000
MOST_SHUFFLES = 4000
SCHEMA = "topic string, partition int, offset bigint, timestamp_ms bigint, key binary, value binary"
HEADERS_SCHEMA = "headers array<struct<key: string, value: binary>>"
# A fetch of Kafka's defaults brings little: Spark's tasks read one partition each.
FETCH = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 * 2**20),
    "kafka.fetch.max.bytes": str(64 * 2**20),
    "kafka.receive.buffer.bytes": str(2**20),
}


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
    options = {
        **FETCH,
        **spark_options(client_properties(cluster.properties)),
        "kafka.bootstrap.servers": cluster.bootstrap,
        "kafka.isolation.level": isolation,
        "assign": _assigned(parts),
        "startingOffsets": _offsets(parts, lambda part: part.start),
        "endingOffsets": _offsets(parts, lambda part: part.end),
        "failOnDataLoss": "true",
        "includeHeaders": str(headers).lower(),
        "minPartitions": str(max(len(parts), -(-length // SPLIT_ROWS))),
    }
    columns = ["topic", "partition", "offset", "unix_millis(timestamp) AS timestamp_ms"]
    columns += ["key", "value", *(["headers"] if headers else [])]
    return spark.read.format("kafka").options(**options).load().selectExpr(*columns)


def fit_shuffles(spark: SparkSession, length: int) -> None:
    """Fit the number of shuffle partitions to how many rows are read."""
    partitions = max(4, -(-length // SHUFFLE_ROWS))
    spark.conf.set("spark.sql.shuffle.partitions", str(min(partitions, MOST_SHUFFLES)))


def _assigned(parts: list[PartitionRange]) -> str:
    topics: dict[str, list[int]] = {}
    for part in parts:
        topics.setdefault(part.topic, []).append(part.partition)
    return json.dumps(topics)


def _offsets(parts: list[PartitionRange], value: Callable[[PartitionRange], int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for part in parts:
        topics.setdefault(part.topic, {})[str(part.partition)] = value(part)
    return json.dumps(topics)
