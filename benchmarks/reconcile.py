"""Reconciliation beside the cost of reading.

    scripts/benchmark reconcile [RECORDS…]

Fills topics of 100 B records (4 partitions, transactions of 10,000) on a broker of its own, times
each job in one warm Spark session with 4 GiB. Beside them two reads of the topic that do nothing
with it: one as anybody would write it (`plain`), and one with the options that the jobs read with.
Each job's time is given as a multiple of both, for each isolation level that it reads. The first
row is the time from no JVM to the answer of a job on a small topic. Prints Markdown rows for
docs/reference/benchmarks.md.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_cli.reconcile.spark_jars import kafka_source_jars
from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.capture import capture
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import verdict_of
from pyconnect_reconcile.run import check
from pyconnect_reconcile.spark.session import spark_session
from pyconnect_reconcile.spec import SparkSettings, read_spec
from pyconnect_reconcile.topics.reading import COMMITTED, UNCOMMITTED
from pyconnect_sandbox.jars import find_runtime
from tests.support.kafka import Servers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4
FIRST = 1_000
WARM_UP = 200_000
TRANSACTION = 10_000
Answer = TypeVar("Answer")


def value(number: int, partition: int) -> bytes:
    return (b'{"s":"p%d","n":%d,"pad":"' % (partition, number)).ljust(98, b"x") + b'"}'


def fill(bootstrap: str, topic: str, count: int) -> None:
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
    each = count // PARTITIONS
    for first in range(0, each, TRANSACTION):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            batch = [
                {"value": value(n, partition)} for n in range(first, min(first + TRANSACTION, each))
            ]
            sent = 0
            while sent < len(batch):
                sent += producer.produce_batch(topic, batch[sent:], partition=partition)
                producer.poll(0)
        producer.commit_transaction(120)


def timed(action: Callable[[], Answer]) -> tuple[float, Answer]:
    began = time.perf_counter()
    answer = action()
    return time.perf_counter() - began, answer


def consume(records: DataFrame) -> None:
    records.write.format("noop").mode("overwrite").save()


def plain_read(spark: SparkSession, bootstrap: str, topic: str, isolation: str) -> None:
    """Read a topic with nothing but Spark's own settings."""
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "kafka.isolation.level": isolation,
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
    }
    consume(spark.read.format("kafka").options(**options).load())


def read(bench: Bench, topic: str, isolation: str) -> None:
    parts = bench.snapshot([topic]).partitions
    consume(bench.records(parts, isolation=isolation))


def bench_of(spark: SparkSession, bootstrap: str, topic: str, job: str, **members: object) -> Bench:
    """Return the tools of a job over the topic as it is now."""
    document = {"job": job, "topics": [topic], "clusters": {"main": {"bootstrap": bootstrap}}}
    spec = read_spec(document | members)
    events = Events(machine=True, stream=io.StringIO())
    # No job here copies files: the directory stays empty.
    with tempfile.TemporaryDirectory() as work:
        captured = capture(spec, Path(work), lambda: spark)
    return Bench(
        spark=spark, spec=spec, snapshots=captured.snapshots, events=events, files=captured.files
    )


def measure(
    spark: SparkSession, bootstrap: str, topic: str, count: int, directory: Path
) -> list[str]:
    """Return a table's rows."""

    bench = partial(bench_of, spark, bootstrap, topic)
    files = directory / f"{topic}.parquet"
    plain = bench("ranges")
    read(plain, topic, COMMITTED)
    plain_read(spark, bootstrap, topic, COMMITTED)
    by_itself: dict[str, float] = {}
    tuned: dict[str, float] = {}
    rows = []
    for level in (COMMITTED, UNCOMMITTED):
        by_itself[level], _ = timed(partial(plain_read, spark, bootstrap, topic, level))
        tuned[level], _ = timed(partial(read, plain, topic, level))
        rows += [
            f"| plain read, {level} | {count:,} | {by_itself[level]:.1f} | 1 | |",
            f"| the jobs' read, {level} | {count:,} | {tuned[level]:.1f} | | 1 |",
        ]
    records = plain.records(plain.snapshot([topic]).partitions, isolation=COMMITTED)
    columns = "from_json(CAST(value AS STRING), 's STRING, n BIGINT, pad STRING') AS v"
    records.selectExpr(columns).select("v.*").write.parquet(files.as_uri())
    sides = {
        "left": {"kind": "topic", "topics": [topic], "value": "json"},
        "right": {"kind": "files", "paths": [str(files)], "format": "parquet"},
    }
    numbers = {"sequence": "json:n", "group": "json:s"}
    both = (COMMITTED, UNCOMMITTED)
    jobs: list[tuple[str, dict[str, object], tuple[str, ...]]] = [
        ("sequence", dict(numbers), (COMMITTED,)),
        ("duplicates", {}, (UNCOMMITTED,)),
        ("transactions", {}, both),
        ("topic-sink", dict(sides), (COMMITTED,)),
    ]
    for job, members, levels in jobs:
        made = bench(job, **members)
        seconds, outcome = timed(partial(check, made))
        verdict = verdict_of(outcome.findings).word
        multiples = (
            f"{seconds / sum(limits[level] for level in levels):.2f}"
            for limits in (by_itself, tuned)
        )
        rows.append(f"| {job} ({verdict}) | {count:,} | {seconds:.1f} | {' | '.join(multiples)} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=int, nargs="*", default=[2_000_000])
    counts = parser.parse_args().records
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(Servers(find_runtime(), Path(directory))) as servers,
    ):
        place = Path(directory)
        bootstrap = servers.broker().bootstrap_servers
        jars = tuple(map(str, kafka_source_jars()))
        settings = SparkSettings(conf={"spark.driver.memory": "4g"}, jars=jars)
        events = Events(machine=True, stream=io.StringIO())
        fill(bootstrap, "first", FIRST)
        began = time.perf_counter()
        with spark_session(
            settings, app_name="benchmark", work_directory=place, events=events
        ) as spark:
            check(bench_of(spark, bootstrap, "first", "duplicates"))
            print("| | records | s | times the plain read | times the jobs' read |")
            print("|---|---|---|---|---|")
            answered = time.perf_counter() - began
            print(f"| session and first answer | {FIRST} | {answered:.1f} | | |", flush=True)
            fill(bootstrap, "warm-up", WARM_UP)
            measure(spark, bootstrap, "warm-up", WARM_UP, place)
            for number, count in enumerate(counts):
                fill(bootstrap, f"measured-{number}", count)
                rows = measure(spark, bootstrap, f"measured-{number}", count, place)
                print("\n".join(rows), flush=True)
