"""Audits beside hand-written Spark jobs and beside a plain read, by processor time.

    scripts/benchmark reconcile [RECORDS…] [--only NAME…]

Fills topics of 100 B records (4 partitions, transactions of 10,000, 10,000 keys by turns) on a
broker of its own. In one warm session of Spark (local[2], 4 GiB) each audit runs beside a job that
answers the same question in the way that one writes it by hand: hashes by row and a full outer
join, or windows over each source. The figures are processor seconds of the driver's JVM for a
million records, so other work on the machine matters little; its broker is another process. The
first row is the time from no JVM to the answer of a job on a small topic. Prints Markdown rows for
docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from pyconnect_cli.reconcile.spark_jars import kafka_source_jars
from pyconnect_reconcile.bench import COMMITTED, UNCOMMITTED, Bench
from pyconnect_reconcile.capture import capture
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import verdict_of
from pyconnect_reconcile.job_runs import check
from pyconnect_reconcile.sessions import spark_session
from pyconnect_reconcile.spec import SparkSettings, read_spec
from pyconnect_sandbox.jars import find_runtime
from tests.support.servers.kafka import Servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
KEYS = 10_000
FIRST = 1_000
WARM_UP = 200_000
TRANSACTION = 10_000
MILLION = 1_000_000
FIELDS = "k STRING, n BIGINT, p STRING, m BIGINT, pad STRING"
# The hand-written jobs have Spark's defaults, except that they have as many tasks as an audit.
SHUFFLE_ROWS = 400_000


def records(count: int, mark: str) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield partition, key and value: `n` counts within the key, `m` within the partition."""
    turns: Counter[int] = Counter()
    for number in range(count):
        # Each partition has keys of its own by turns, so that records of one key lie between
        # others.
        key = number * 7_919 % KEYS
        turns[key] += 1
        partition = key % PARTITIONS
        value = b'{"k":"k%d","n":%d,"p":"p%d","m":%d,"pad":"%s' % (
            key, turns[key], partition, turns[-1 - partition], mark.encode(),
        )  # fmt: skip
        turns[-1 - partition] += 1
        yield partition, b"k%d" % key, value.ljust(98, b"x") + b'"}'


def fill(bootstrap: str, topic: str, count: int, mark: str = "") -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": topic,
            "batch.size": 2**20,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 2**20,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    for number, (partition, key, value) in enumerate(records(count, mark), 1):
        producer.produce(topic, value=value, key=key, partition=partition)
        if number % TRANSACTION == 0:
            producer.commit_transaction(120)
            producer.begin_transaction()
    producer.commit_transaction(120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A session, a broker, the topics of one size, and the processor time of the JVM."""

    spark: SparkSession
    bootstrap: str
    name: str
    count: int
    directory: Path

    @property
    def topics(self) -> tuple[str, str, str]:
        """A topic, its copy, and one in which every value differs."""
        return (self.name, f"{self.name}-copy", f"{self.name}-other")

    @property
    def parquet(self) -> str:
        return (self.directory / f"{self.name}.parquet").as_uri()

    def fill(self) -> None:
        for topic, mark in zip(self.topics, ("", "", "other"), strict=True):
            fill(self.bootstrap, topic, self.count, mark)
        tasks = max(4, -(-self.count // SHUFFLE_ROWS))
        self.spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
        self.members(self.name).select("v.*").write.parquet(self.parquet)

    def read(self, topic: str, isolation: str = COMMITTED) -> DataFrame:
        """Read a topic with nothing but Spark's own settings."""
        options = {
            "kafka.bootstrap.servers": self.bootstrap,
            "subscribe": topic,
            "kafka.isolation.level": isolation,
            "startingOffsets": "earliest",
            "endingOffsets": "latest",
        }
        return self.spark.read.format("kafka").options(**options).load()

    def members(self, topic: str) -> DataFrame:
        value = sql.from_json(sql.col("value").cast("string"), FIELDS)
        return self.read(topic).select("partition", "offset", value.alias("v"))

    def cpu_s(self) -> float:
        """Return the processor time of the driver's JVM; its executors are threads of it."""
        assert self.spark._jvm is not None  # noqa: SLF001
        pid = self.spark._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def used(self, action: Callable[[], object]) -> tuple[float, object]:
        """Return the processor seconds for a million records, and the answer."""
        began = self.cpu_s()
        answer = action()
        return (self.cpu_s() - began) / self.count * MILLION, answer


def plain(beside: Beside) -> None:
    beside.read(beside.name).write.format("noop").mode("overwrite").save()


def hand_sequence(beside: Beside, source: str, number: str) -> object:
    """Find gaps, repetitions and late records with a window over numbers and one over offsets."""
    rows = beside.members(beside.name).selectExpr(
        "partition", "offset", f"v.{source} AS source", f"v.{number} AS number"
    )
    by_number = Window.partitionBy("source").orderBy("number")
    by_offset = Window.partitionBy("source", "partition").orderBy("offset")
    earlier = by_offset.rowsBetween(Window.unboundedPreceding, -1)
    checked = rows.withColumn("step", sql.expr("number") - sql.lag("number").over(by_number))
    checked = checked.withColumn("highest", sql.max("number").over(earlier))
    return checked.selectExpr(
        "sum(IF(step > 1, step - 1, 0)) AS missing",
        "count_if(step = 0) AS repeated",
        "count_if(number < highest) AS late",
    ).collect()


def hand_duplicates(beside: Beside) -> object:
    hashed = beside.read(beside.name, UNCOMMITTED).select(*row_hash("key", "value"))
    return hashed.groupBy("one", "two").count().where("count > 1").count()


def hand_transactions(beside: Beside) -> object:
    return [
        beside.read(beside.name, level).groupBy("partition").count().collect()
        for level in (COMMITTED, UNCOMMITTED)
    ]


def row_hash(*columns: str) -> list[Column]:
    return [
        sql.xxhash64(sql.lit(seed), *columns).alias(name) for seed, name in ((1, "one"), (2, "two"))
    ]


def differences(left: DataFrame, right: DataFrame) -> object:
    """Count the rows of a full outer join of hashes whose counts differ."""
    keys = ["one", "two"]
    sides = [
        rows.groupBy(*keys).agg(sql.count("*").alias(name))
        for rows, name in ((left, "a"), (right, "b"))
    ]
    joined = sides[0].join(sides[1], keys, "full_outer")
    return joined.where("coalesce(a, 0) <> coalesce(b, 0)").count()


def hand_topics(beside: Beside, other: int) -> object:
    sides = [
        beside.read(topic).select(*row_hash("key", "value"))
        for topic in (beside.topics[0], beside.topics[other])
    ]
    return differences(*sides)


def hand_ordered(beside: Beside) -> object:
    """Compare the n-th record of each key on both sides."""
    place = sql.row_number().over(Window.partitionBy("key").orderBy("partition", "offset"))
    sides = [
        beside.read(topic).select("key", place.alias("place"), sql.xxhash64("value").alias(name))
        for topic, name in zip(beside.topics[:2], ("a", "b"), strict=True)
    ]
    joined = sides[0].join(sides[1], ["key", "place"], "full_outer")
    return joined.where("NOT (a <=> b)").count()


def hand_parquet(beside: Beside) -> object:
    names = [part.split()[0] for part in FIELDS.split(", ")]
    topic = beside.members(beside.name).select("v.*").select(*row_hash(*names))
    return differences(topic, beside.spark.read.parquet(beside.parquet).select(*row_hash(*names)))


def audits(beside: Beside) -> Mapping[str, tuple[str, dict[str, object], Callable[[], object]]]:
    """Return by name the job, the members of its spec, and the hand-written job."""
    one, copy, other = beside.topics

    def topic(name: str, value: str = "bytes") -> dict[str, object]:
        return {"kind": "topic", "topics": [name], "value": value}

    files = {"kind": "files", "paths": [beside.parquet.removeprefix("file://")]}
    columns = [":".join(part.lower().split()) for part in FIELDS.split(", ")]
    topics: dict[str, object] = {"topics": [one]}
    lanes: dict[str, object] = {"sequence": "json:m", "group": "json:p"}
    keys: dict[str, object] = {"sequence": "json:n", "group": "json:k"}
    copied: dict[str, object] = {"left": topic(one), "right": topic(copy)}
    changed: dict[str, object] = {"left": topic(one), "right": topic(other)}
    sink: dict[str, object] = {
        "left": topic(one, "json"), "right": {**files, "format": "parquet"}, "columns": columns,
    }  # fmt: skip
    return {
        "sequence": ("sequence", topics | lanes, lambda: hand_sequence(beside, "p", "m")),
        "sequence per key": ("sequence", topics | keys, lambda: hand_sequence(beside, "k", "n")),
        "duplicates": ("duplicates", topics, lambda: hand_duplicates(beside)),
        "transactions": ("transactions", topics, lambda: hand_transactions(beside)),
        "topic-topic": ("topic-topic", copied, lambda: hand_topics(beside, 1)),
        "everything differs": ("topic-topic", changed, lambda: hand_topics(beside, 2)),
        "ordered": ("topic-topic", copied | {"ordered": True}, lambda: hand_ordered(beside)),
        "Parquet sink": ("topic-sink", sink, lambda: hand_parquet(beside)),
    }


def bench_of(spark: SparkSession, bootstrap: str, job: str, **members: object) -> Bench:
    """Return the tools of a job over the topics in their present state."""
    document = {"job": job, "clusters": {"main": {"bootstrap": bootstrap}}}
    spec = read_spec(document | members)
    events = Events(machine=True, stream=io.StringIO())
    # No job here copies files: the directory stays empty.
    with tempfile.TemporaryDirectory() as work:
        captured = capture(spec, Path(work), lambda: spark)
    return Bench(
        spark=spark, spec=spec, snapshots=captured.snapshots, events=events, files=captured.files
    )


def measure(beside: Beside, only: list[str]) -> Iterator[str]:
    """Yield the rows of the table."""
    read, _ = beside.used(lambda: plain(beside))
    yield f"| plain read | {beside.count:,} | {read:.1f} | | |"
    for name, (job, members, by_hand) in audits(beside).items():
        if only and name not in only:
            continue
        made = bench_of(beside.spark, beside.bootstrap, job, **members)
        audit, outcome = beside.used(lambda made=made: check(made))  # type: ignore[misc]
        verdict = verdict_of(outcome.findings).word  # type: ignore[attr-defined]
        hand, _ = beside.used(by_hand)
        times = f"{audit:.1f} | {hand:.1f} | {audit / hand:.2f}"
        yield f"| {name} ({verdict}) | {beside.count:,} | {times} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=int, nargs="*", default=[1_000_000, 10_000_000, 50_000_000])
    parser.add_argument("--only", action="append", default=[], help="name of an audit; repeatable")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(Servers(find_runtime(), Path(directory))) as servers,
    ):
        place = Path(directory)
        bootstrap = servers.broker().bootstrap_servers
        jars = tuple(map(str, kafka_source_jars()))
        settings = SparkSettings(master="local[2]", conf={"spark.driver.memory": "4g"}, jars=jars)
        events = Events(machine=True, stream=io.StringIO())
        fill(bootstrap, "first", FIRST)
        began = time.perf_counter()
        with spark_session(
            settings, app_name="benchmark", work_directory=place, events=events
        ) as spark:
            check(bench_of(spark, bootstrap, "duplicates", topics=["first"]))
            print("| | records | audit: CPU s / M | by hand | audit / by hand |")
            print("|---|---|---|---|---|")
            answered = time.perf_counter() - began
            print(f"| session and first answer: {answered:.1f} s | {FIRST:,} | | | |", flush=True)
            for number, count in enumerate([WARM_UP, *options.records]):
                beside = Beside(
                    spark=spark, bootstrap=bootstrap, name=f"measured-{number}", count=count,
                    directory=place,
                )  # fmt: skip
                beside.fill()
                for row in measure(beside, options.only):
                    if number:
                        print(row, flush=True)
