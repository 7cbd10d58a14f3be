"""`pyconnect upgrade` on three real agents with a source running (upgrade.md)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_cli.upgrade.run import Entry, Finished, StepChanged, StepStarted, StepVerified
from tests.support.cluster import Cluster
from tests.support.kafka import SharedBroker
from tests.support.sequences import Sequences
from tests.support.upgrade_cluster import Tool, phases, supervised_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three supervised agents at `disabled`; each test leaves them so."""
    directory = tmp_path_factory.mktemp("agents")
    with supervised_cluster(3, kafka_broker.bootstrap_servers, directory) as cluster:
        yield cluster


@pytest.fixture
def tool(kafka_broker: SharedBroker, cluster: Cluster, tmp_path: Path) -> Tool:
    return Tool(kafka_broker.bootstrap_servers, cluster.agents[0].url, tmp_path)


@pytest.fixture
def sequences(kafka_broker: SharedBroker, cluster: Cluster, tmp_path: Path) -> Iterator[Sequences]:
    """A source of two tasks that runs through the whole test."""
    found = Sequences(kafka_broker.bootstrap_servers, tmp_path)
    config = {**found.config(2), "exactly.once.support": "requested"}
    cluster.agents[0].create("numbers", config)
    cluster.wait_until_running({"numbers": 2}, 60)
    yield found
    cluster.delete_all()


def check_complete(sequences: Sequences, last: int, *, once_after: int | None = None) -> None:
    """Nothing is missing; what came after `once_after` is there once."""
    sequences.wait_for(last, 2)
    for key, values in sequences.seen().items():
        counted = Counter(values)
        assert set(counted) == set(range(1, last + 1)), key
        if once_after is not None:
            again = [value for value in counted if value > once_after and counted[value] > 1]
            assert again == [], key


def test_up_and_down_with_a_source_running(
    cluster: Cluster, tool: Tool, sequences: Sequences
) -> None:
    """Nothing missing, nothing twice once all are enabled, no task FAILED, the leader last."""
    sequences.allow(20)
    tool.must_upgrade("preparing")
    assert phases(cluster) == ["preparing"] * 3
    sequences.allow(40)
    tool.must_upgrade("enabled")
    assert phases(cluster) == ["enabled"] * 3
    cluster.wait_until_running({"numbers": 2}, 60)
    check_complete(sequences, 40)
    sequences.allow(60)
    check_complete(sequences, 60, once_after=40)
    tool.must_upgrade("disabled", "--direct")
    assert phases(cluster) == ["disabled"] * 3
    cluster.wait_until_running({"numbers": 2}, 60)
    sequences.allow(80)
    check_complete(sequences, 80, once_after=40)
    entries = tool.journal()
    verified = [entry.phase for entry in entries if isinstance(entry, StepVerified)]
    assert verified == ["preparing"] * 3 + ["enabled"] * 3 + ["disabled"] * 3
    assert sum(isinstance(entry, Finished) for entry in entries) == 3


def is_second(kind: type[Entry]) -> object:
    """Whether the newest run has two entries of a kind."""

    def reached(entries: list[Entry]) -> bool:
        return sum(isinstance(entry, kind) for entry in entries) >= 2

    return reached


@pytest.mark.parametrize("kind", [StepStarted, StepChanged, StepVerified])
def test_a_killed_run_goes_on(
    cluster: Cluster, tool: Tool, tmp_path: Path, kind: type[Entry]
) -> None:
    """Killed in the middle of the second worker's turn; the first one is not repeated."""
    target = "disabled" if phases(cluster)[0] == "preparing" else "preparing"
    tool.upgrade_until(is_second(kind), target)  # type: ignore[arg-type]
    halfway = json.loads(tool.run("upgrade", "status", "-o", "json").stdout)
    assert halfway[0]["target"] == target
    told = tool.must_upgrade(target)
    assert "goes on" in told
    assert phases(cluster) == [target] * 3
    verified = [e.url for e in tool.journal() if isinstance(e, StepVerified)]
    assert sorted(verified) == sorted(agent.url for agent in cluster.agents)
    assert "already" in tool.must_upgrade(target)
