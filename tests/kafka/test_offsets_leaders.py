"""A leader is killed while it changes a source's offsets with exactly-once support (KIP-875)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.agents.agent import Agent
from tests.support.agents.rest_client import Answer
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.plugins.offset_hooks import HOOK_SOURCE
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import OffsetTopic

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

WAIT_S = 150
PARTITIONS = 20_000
PATH = "/connectors/numbers/offsets"
ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}


@pytest.fixture
def cluster(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Cluster]:
    """Three workers at `enabled`: two of them can die."""
    with cluster_of(3, kafka_broker.bootstrap_servers, tmp_path, ENABLED) as cluster:
        yield cluster


def alter(agent: Agent, position: int) -> Answer:
    """Every partition to that position."""
    entries = [
        {"partition": {"number": str(number)}, "offset": {"last": position}}
        for number in range(PARTITIONS)
    ]
    return agent.call("PATCH", PATH, {"offsets": entries})


def positions(agent: Agent) -> list[int]:
    """The position of each partition."""
    return [entry["offset"]["last"] for entry in agent.get(PATH)["offsets"]]


def altered(cluster: Cluster, position: int) -> bool:
    return alter(cluster.agents[0], position).status == 200


def test_a_leader_that_dies_in_a_change_leaves_all_of_it_or_nothing(
    cluster: Cluster, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Once as the connector was asked, once in the transaction; the next leader changes them."""
    sequences = Sequences(kafka_broker.bootstrap_servers, tmp_path)
    topic = OffsetTopic(kafka_broker.bootstrap_servers, f"{cluster.group_id}-offsets")
    told = tmp_path / "told"
    config = {
        **sequences.config(),
        "connector.class": HOOK_SOURCE,
        "hook": "true",
        "told": str(told),
        # Whoever waits for the broker to end what the dead leader began fails.
        "producer.override.transaction.timeout.ms": "600000",
    }
    cluster.agents[0].create("numbers", config, initial_state="STOPPED")
    cluster.agents[0].wait_for_states("numbers", "STOPPED")
    eventually(lambda: altered(cluster, 1), WAIT_S)
    for old, in_transaction in ((1, False), (11, True)):
        new = old + 5
        told.unlink()
        leader, before = cluster.leader(), topic.end()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(alter, leader, new)
            if in_transaction:
                eventually(lambda before=before: topic.end() > before, WAIT_S)
            else:
                eventually(told.exists, WAIT_S)
            cluster.kill(leader)
            answered = asked.exception() is None and asked.result().status == 200
        stored = {value["last"] for value in topic.live().values()}
        assert stored == {new} or (stored == {old} and not answered)
        next_leader = cluster.leader()
        eventually(lambda new=new: altered(cluster, new + 5), WAIT_S)
        assert positions(next_leader) == [new + 5] * PARTITIONS
    sequences.allow(25)
    assert cluster.agents[0].call("PUT", "/connectors/numbers/resume").status == 202
    sequences.wait_for(25)
    assert sequences.seen()["0"] == [*range(22, 26)]
