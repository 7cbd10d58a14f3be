"""Compares of records in memory: the jobs themselves, without a broker."""

import io
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.capture import fixed_files
from pyconnect_reconcile.data_sides import FileSide, TableSide
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.job_runs import check
from pyconnect_reconcile.report.contents import arranged
from pyconnect_reconcile.spec import MAIN, read_spec
from pyconnect_reconcile.stores.tables import copied
from pyconnect_reconcile.topics.snapshot import PartitionRange, TopicSnapshot, TopicsSnapshot
from tests.support.audits.audits import Answer

FIELDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
TIME_MS = 1_700_000_000_000
LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, slots=True)
class Given:
    """A record; without an offset its offset is its index in the list."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    offset: int | None = None
    timestamp_ms: int = TIME_MS


Records = Sequence[Given]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBench(Bench):
    """The tools of a check whose topics are lists of records."""

    topics: Mapping[str, Records]
    directory: Path

    def records(
        self,
        ranges: Iterable[PartitionRange],
        *,
        isolation: str,
        cluster: str = MAIN,
        headers: bool = False,
    ) -> DataFrame:
        del isolation, cluster, headers
        wanted = {(part.topic, part.partition) for part in ranges if part.length}
        rows = [
            (topic, each.partition, _offset(each, at), each.timestamp_ms, each.key, each.value)
            for topic, records in self.topics.items()
            for at, each in enumerate(records)
            if (topic, each.partition) in wanted
        ]
        columns = list(zip(*rows, strict=True)) or [()] * len(FIELDS)
        table = pa.table(columns, schema=FIELDS)
        file = Path(tempfile.mkdtemp(dir=self.directory)) / "records.parquet"
        # Starting Spark's Python workers would take longer than the compare.
        parquet.write_table(table, file)
        return self.spark.read.parquet(file.as_uri())

    def require_same_topics(self) -> None:
        """Accept the topics, because no test deletes one."""


def _offset(each: Given, at: int) -> int:
    return at if each.offset is None else each.offset


def _snapshot(topics: Mapping[str, Records]) -> TopicsSnapshot:
    found = []
    for topic, records in topics.items():
        ends: dict[int, int] = {}
        for at, each in enumerate(records):
            ends[each.partition] = max(ends.get(each.partition, 0), _offset(each, at) + 1)
        parts = tuple(
            PartitionRange(
                topic=topic,
                partition=partition,
                start=0,
                end=end,
                earliest=0,
                last_stable=end,
                high_watermark=end,
            )
            for partition, end in ends.items()
        )
        found.append(
            TopicSnapshot(topic=topic, topic_id=topic, cleanup_policy="delete", partitions=parts)
        )
    return TopicsSnapshot(cluster_id="memory", taken_ms=TIME_MS, topics=tuple(found))


class RecordedAudit:
    """Spark and a directory; `run` is one job over given records."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.directory = directory

    def run(self, job: str, topics: Mapping[str, Records], /, **members: object) -> Answer:
        """Run a compare with these members of a spec; `topics` are records by their topic."""
        clusters = {"main": {"bootstrap": "memory:1"}}
        spec = read_spec({"version": 1, "job": job, "clusters": clusters} | members)
        with tempfile.TemporaryDirectory(dir=self.directory) as work:
            tables = {
                side.place: copied(lambda: self.spark, side, Path(work))
                for side in (spec.left, spec.right)
                if isinstance(side, TableSide)
            }
            files = {
                side.place: fixed_files(
                    spec, side, Path(tempfile.mkdtemp(dir=work)), lambda: self.spark
                )
                for side in (spec.left, spec.right)
                if isinstance(side, FileSide)
            }
            bench = RecordedBench(
                spark=self.spark,
                spec=spec,
                snapshots={MAIN: _snapshot(topics)},
                events=Events(machine=True, stream=io.StringIO()),
                files=files,
                tables=tables,
                begun_ms=TIME_MS,
                topics=topics,
                directory=Path(work),
            )
            return Answer(arranged(check(bench), hide_keys=False))

    def parquet(self, query: str) -> dict[str, object]:
        """Return a side: the rows of a query in Parquet files."""
        path = Path(tempfile.mkdtemp(dir=self.directory)) / "sink.parquet"
        self.spark.sql(query).coalesce(1).write.parquet(path.as_uri())
        return {"kind": "files", "paths": [str(path)], "format": "parquet"}


def topic(name: str, value: str = "json") -> dict[str, object]:
    return {"kind": "topic", "topics": [name], "value": value}


def given(*values: str | bytes | None) -> list[Given]:
    return [Given(each.encode() if isinstance(each, str) else each) for each in values]


def offsets(answer: Answer, kind: str) -> set[int | None]:
    """Return the offsets of the copies that findings of a kind name."""
    return {place.offset for each in answer.of(kind) for place in each.copies}
