"""The deployment of a site on real agents: messages to systemd, and a roll to the next version."""

import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.agents.agent import Agent, Agents, AgentWithFiles
from tests.support.audits.sequences import Sequences
from tests.support.chaos.chaos import ENABLED
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(850)]

ROOT = Path(__file__).resolve().parents[2]
NEXT = "99.0.0"
WAIT_S = 150
STEP = 1_000


class NextVersion(AgentWithFiles):
    """An agent of a copied tree whose distribution has a higher version."""

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
    """READY comes when GET /health is 200, STOPPING at SIGTERM."""
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
    """Each worker is replaced while an exactly-once source and an exactly-once sink run."""
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
            # The source has records to write while its worker stops.
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
    """All rows in order, a repeated one as often as it is there."""
    with closing(sqlite3.connect(database)) as connection:
        try:
            rows = connection.execute("SELECT number FROM numbers").fetchall()
        except sqlite3.OperationalError as error:
            raise AssertionError(f"not readable yet: {error}") from error
    return sorted(int(number) for (number,) in rows)


def commit_of(agent: Agent) -> str:
    return str(agent.get("/")["commit"])


def assert_from(tree: Path, cluster: Cluster) -> None:
    """The processes run the copied code, not only a raised number."""
    for agent in cluster.agents:
        environment = agent.supervisor().environ()
        assert environment["PYTHONPATH"].startswith(str(tree))
        assert agent.supervisor().exe() == str(Path(sys.executable).resolve())
