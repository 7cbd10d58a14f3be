"""LakeSource and LakeSink on a real broker, with exactly-once delivery into files and tables."""

import contextlib
import json
import os
import random
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from tests.support.agents.agent import Agents, task_pids
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import LONG, picked_seed
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.s3 import S3Server, running_s3
from tests.support.servers.topics import create_topics, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(900)]

KILLS = 12 if LONG else 3
WAIT_S = 150
QUICK = {
    "exactly.once.source.support": "enabled",
    "task.shutdown.graceful.timeout.ms": "2000",
    "offset.flush.interval.ms": "300",
    "scheduled.rebalance.max.delay.ms": "0",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
SINK = {
    "connector.class": "LakeSink",
    "tasks.max": "2",
    "retry.backoff.ms": "200",
    "consumer.override.isolation.level": "read_committed",
    "consumer.override.session.timeout.ms": "6000",
    "consumer.override.heartbeat.interval.ms": "500",
    "consumer.override.max.poll.records": "50",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.replication.factor": "1",
}
DLQ = "errors.deadletterqueue.topic.name"


def is_bad(number: int) -> bool:
    """Return whether the text of a row is too long for the name of a directory."""
    return number % 499 == 5


class Writer:
    """A thread that adds files whose rows have consecutive numbers."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.written = 0

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.2):
            numbers = range(self.written, self.written + self._random.randint(1, 200))
            hidden = self._directory / "_next"
            texts = ["x" * (1000 if is_bad(number) else 1) for number in numbers]
            pq.write_table(pa.table({"id": pa.array(numbers, pa.int64()), "text": texts}), hidden)
            hidden.rename(self._directory / f"{self.written:08}.parquet")
            self.written = numbers.stop


def source_config(directory: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "LakeSource",
        "lake.url": str(directory),
        "topic": topic,
        "tasks.max": "2",
        "poll.interval.ms": "50",
        "batch.max.rows": "40",
        "exactly.once.support": "required",
        "producer.override.transaction.timeout.ms": "10000",
    }


def files_config(s3: S3Server, bucket: str, topic: str) -> dict[str, str]:
    return {
        **SINK,
        **s3.settings(bucket),
        "topics": topic,
        "partitioner.class": "field",
        "partition.field.name": "text",
        "flush.size": "70",
        "rotate.schedule.interval.ms": "300",
    }


def tables_config(lake: Path, topic: str) -> dict[str, str]:
    return {
        **SINK,
        "topics": topic,
        "lake.url": str(lake),
        "format.class": "iceberg",
        "iceberg.tables": "lake.rows",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.default-partition-by": "text",
        "iceberg.control.commit.interval-ms": "300",
    }


class Files:
    """The files on the disk of the S3 server; each is read once, as it never changes."""

    def __init__(self, s3: S3Server, bucket: str) -> None:
        self._topics = s3.files / bucket / "base" / "topics"
        self._known: dict[Path, list[int]] = {}

    def ids(self) -> list[int]:
        for path in self._topics.rglob("*.parquet"):
            if path not in self._known:
                self._known[path] = pq.read_table(path)["id"].to_pylist()
        return [number for ids in self._known.values() for number in ids]


def table(lake: Path) -> Table | None:
    catalog = load_catalog("iceberg", type="sql", uri=f"sqlite:///{lake}/catalog.db")
    try:
        return catalog.load_table("lake.rows")
    except NoSuchTableError:
        return None


def count_of(found: Table | None) -> int:
    snapshot = None if found is None else found.current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return 0
    return int(snapshot.summary["total-records"])


def test_every_row_arrives_once_though_tasks_are_killed(
    agents: Agents, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Rows go from files through a topic into files on S3 and into an Iceberg table.

    Rows that a sink refuses arrive in the dead letter queues.
    """
    seed = picked_seed()
    picks = random.Random(seed)
    topic = unique_name("lake")
    create_topics(kafka_broker.bootstrap_servers, [topic], partitions=3)
    incoming, lake = tmp_path / "in", tmp_path / "lake"
    incoming.mkdir()
    lake.mkdir()
    writer = Writer(incoming, seed)
    names = tuple(unique_name(name) for name in ("from-lake", "to-files", "to-tables"))
    with running_s3() as s3:
        bucket = s3.new_bucket()
        files = Files(s3, bucket)
        agent = agents.start(properties=QUICK)
        agent.create(names[0], source_config(incoming, topic))
        queues = [unique_name("bad-files"), unique_name("bad-tables")]
        agent.create(names[1], {**files_config(s3, bucket, topic), DLQ: queues[0]})
        agent.create(names[2], {**tables_config(lake, topic), DLQ: queues[1]})
        writer.start()
        eventually(files.ids, WAIT_S)
        for _ in range(KILLS):
            seen = len(files.ids())
            eventually(lambda: task_pids(agent), WAIT_S)
            # The wait may also end without new rows: kills hit starts and rebalances too.
            more = picks.choice((0, 1, 100, 300))
            with contextlib.suppress(AssertionError):
                eventually(
                    lambda seen=seen, more=more: len(files.ids()) >= seen + more,  # type: ignore[misc]
                    3,
                )
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(picks.choice(task_pids(agent)), signal.SIGKILL)
            [agent.revived(name) for name in names]
        writer.finish()
        expected = [number for number in range(writer.written) if not is_bad(number)]
        bad = set(filter(is_bad, range(writer.written)))

        def arrived() -> bool:
            [agent.revived(name) for name in names]
            counts = (len(files.ids()), count_of(table(lake)))
            return all(count >= len(expected) for count in counts)

        eventually(
            arrived, WAIT_S, lambda: (seed, writer.written, len(files.ids()), count_of(table(lake)))
        )
        assert sorted(files.ids()) == expected, f"seed {seed}"
        found = table(lake)
        assert found is not None
        assert sorted(found.scan().to_arrow()["id"].to_pylist()) == expected, f"seed {seed}"
        for queue in queues:
            reported = read_topic(kafka_broker.bootstrap_servers, queue)
            ids = {json.loads(record.value() or b"")["payload"]["id"] for record in reported}
            assert ids == bad, f"seed {seed}"
