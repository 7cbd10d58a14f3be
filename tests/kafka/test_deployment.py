"""A deployment on real agents: messages to systemd, and rolls to the next version.

Three agents with three hundred connectors have a rolling restart, as by a package update.
"""

import os
import shutil
import socket
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pyconnect_agent.core.internal_topics import config_records
from tests.support.agents.agent import Agent, Agents, AgentWithFiles
from tests.support.agents.rest_client import call_url, is_momentary
from tests.support.audits.sequences import Sequences
from tests.support.chaos.chaos import ENABLED
from tests.support.chaos.witness import Journal
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of, status_faults, statuses_in, worker_of
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(850)]

ROOT = Path(__file__).resolve().parents[2]
NEXT = "99.0.0"
WAIT_S = 150
STEP = 1_000


class NextVersion(AgentWithFiles):
    """An agent that runs a copied tree whose distribution has a higher version."""

    tree = Path()

    def _environment(self) -> Mapping[str, str]:
        inherited = super()._environment()
        return {**inherited, "PYTHONPATH": f"{self.tree}{os.pathsep}{inherited['PYTHONPATH']}"}


@pytest.fixture
def next_version(tmp_path: Path) -> type[NextVersion]:
    tree = tmp_path / "next"
    shutil.copytree(ROOT / "agent", tree, ignore=shutil.ignore_patterns("__pycache__"))
    about = tree / f"pyconnect_worker-{NEXT}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: pyconnect-worker\nVersion: {NEXT}\n"
    )
    return type("NextVersion", (NextVersion,), {"tree": tree})


def test_systemd_learns_of_readiness_and_stop(
    agents: Agents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """READY is sent once GET /health is 200, and STOPPING at SIGTERM."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(WAIT_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        agent = agents.start()
        assert manager.recv(100) == b"READY=1"
        assert agent.call("GET", "/health").status == 200
        agent.drain()
        assert manager.recv(100) == b"STOPPING=1"
        assert agent.exit_code() == 0


@pytest.mark.long(only=True)
def test_a_roll_to_the_next_version_loses_and_repeats_nothing(
    kafka_broker: SharedBroker,
    tmp_path: Path,
    sequences: Sequences,
    next_version: type[NextVersion],
) -> None:
    """A roll to the next version loses and repeats no record of exactly-once connectors."""
    database = tmp_path / "target.db"
    with cluster_of(2, kafka_broker.bootstrap_servers, tmp_path, ENABLED) as cluster:
        first = cluster.agents[0]
        before = commit_of(first)
        assert not before.endswith(NEXT)
        sequences.allow(STEP)
        first.create("numbers", sequences.config(tasks=1) | {"pause.ms": "10"})
        first.create("table", table_sink(database, sequences.topic))
        cluster.wait_until_running({"numbers": 1, "table": 1})
        last = STEP
        for old in tuple(cluster.agents):
            # The source must have records to write while its worker stops.
            last += STEP
            sequences.allow(last)
            old.drain()
            assert old.exit_code() == 0
            cluster.agents.remove(old)
            replacement = cluster.add(kind=next_version)
            assert commit_of(replacement) == f"pyconnect-{NEXT}"
            assert {commit_of(agent) for agent in cluster.agents} <= {before, f"pyconnect-{NEXT}"}
            cluster.wait_until_running({"numbers": 1, "table": 1})
        assert {commit_of(agent) for agent in cluster.agents} == {f"pyconnect-{NEXT}"}
        sequences.allow(last + STEP)
        sequences.check(last + STEP)
        eventually(lambda: len(numbers_in(database)) >= last + STEP, WAIT_S)
        assert numbers_in(database) == list(range(1, last + STEP + 1))
        assert_from(next_version.tree, cluster)


def table_sink(database: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "SqlSink",
        "connection.url": f"sqlite:///{database}",
        "topics": topic,
        "table.name.format": "numbers",
        "auto.create": "true",
        "transforms": "hoist",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "number",
        "consumer.override.isolation.level": "read_committed",
    }


def numbers_in(database: Path) -> list[int]:
    """Return all numbers in the table in order, repeated ones as often as they are there."""
    with closing(sqlite3.connect(database)) as connection:
        try:
            rows = connection.execute("SELECT number FROM numbers").fetchall()
        except sqlite3.OperationalError as error:
            raise AssertionError(f"not readable yet: {error}") from error
    return sorted(int(number) for (number,) in rows)


def commit_of(agent: Agent) -> str:
    return str(agent.get("/")["commit"])


def assert_from(tree: Path, cluster: Cluster) -> None:
    """Check that the processes run the copied code, not only a higher version number."""
    for agent in cluster.agents:
        environment = agent.supervisor().environ()
        assert environment["PYTHONPATH"].startswith(str(tree))
        assert agent.supervisor().exe() == str(Path(sys.executable).resolve())


CONNECTORS = 300
WITH_TASKS = 30
ROLLED_S = 900
ROLLED = {"scheduled.rebalance.max.delay.ms": "60000", "session.timeout.ms": "30000"}


@contextmanager
def asked_meanwhile(urls: list[str]) -> Iterator[Counter[str]]:
    """Ask the workers for statuses all the time, and count good answers and others."""
    answers: Counter[str] = Counter()
    ended = threading.Event()

    def ask(url: str) -> None:
        while not ended.wait(0.5):
            for path in ("/connectors?expand=status", "/connectors/connector-0/config"):
                try:
                    answer = call_url(url, "GET", path)
                    # A worker that stops says so, as Apache's does.
                    told = is_momentary(answer) or "Worker is shutting down" in answer.text
                    good = answer.status == 200 or told
                    answers["good" if good else f"{path}: {answer.text}"] += 1
                except OSError:
                    # The worker is restarting.
                    continue

    threads = [threading.Thread(target=ask, args=(url,)) for url in urls]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.long(only=True)
@pytest.mark.timeout(3600)
def test_a_rolling_restart_with_many_connectors_starts_nothing_twice(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """At the end all run, the statuses are true, and no answer was a server error."""
    journal = Journal(tmp_path / "journal")
    with cluster_of(3, kafka_broker.bootstrap_servers, tmp_path, ROLLED) as cluster:
        names = [f"connector-{number}" for number in range(CONNECTORS)]
        tasks = {name: int(number < WITH_TASKS) for number, name in enumerate(names)}
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
        for name in names:
            config = {"name": name, **journal.config(1), "tasks": str(tasks[name])}
            record = config_records.connector_config(name, config)
            producer.produce(f"{cluster.group_id}-configs", record.value, record.key)
        assert producer.flush(60) == 0
        eventually(lambda: all_run(cluster, tasks), ROLLED_S, lambda: states_in(cluster))
        starts = journal.starts()
        with asked_meanwhile([agent.url for agent in cluster.agents]) as answers:
            for agent in cluster.agents:
                agent.process.stop()
                agent.process.start()
                eventually(lambda: all_run(cluster, tasks), ROLLED_S, lambda: states_in(cluster))
        assert answers.keys() == {"good"}, answers
        assert journal.entries("overlap") == []
        # A task moves with its worker and may be given back; there are no other starts.
        assert len(journal.started_since(starts)) <= 3 * WITH_TASKS

        def faults() -> list[str]:
            written = statuses_in(kafka_broker.bootstrap_servers, f"{cluster.group_id}-status")
            return status_faults(cluster.agents, written)

        # The process of a connector ends before its agent reports that the connector sleeps.
        eventually(lambda: faults() == [], WAIT_S, faults)


def states_in(cluster: Cluster) -> Counter[str]:
    listed = cluster.agents[0].get("/connectors?expand=status")
    return Counter(
        part["state"]
        for found in listed.values()
        if "status" in found
        for part in (found["status"]["connector"], *found["status"]["tasks"])
    )


def all_run(cluster: Cluster, tasks: dict[str, int]) -> bool:
    """Return whether every worker reports that everything runs on living workers."""
    workers = {worker_of(agent) for agent in cluster.agents}
    for agent in cluster.agents:
        answer = agent.call("GET", "/connectors?expand=status")
        if answer.status != 200:
            return False
        listed = answer.json()
        if listed.keys() != tasks.keys():
            return False
        for name, found in listed.items():
            status = found.get("status")
            parts = [] if status is None else [status["connector"], *status["tasks"]]
            if len(parts) != tasks[name] + 1:
                return False
            if any(p["state"] != "RUNNING" or p["worker_id"] not in workers for p in parts):
                return False
    return True
