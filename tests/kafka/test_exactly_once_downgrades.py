"""From `enabled` back, worker by worker or at once, and what readers see meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.agent import Agent
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.seeds import chosen
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

SWITCH = "exactly.once.source.support"
NEVER = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}


@pytest.fixture
def cluster(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Cluster]:
    """No worker yet."""
    with cluster_of(0, kafka_broker.bootstrap_servers, tmp_path) as cluster:
        yield cluster


def add(cluster: Cluster, phase: str) -> Agent:
    return cluster.add(properties={SWITCH: phase})


def replace_all(cluster: Cluster, phase: str) -> None:
    """One at a time, stopped in order, the leader last."""
    leader = cluster.leader()
    for agent in sorted(cluster.agents, key=lambda agent: agent is leader):
        cluster.agents.remove(agent)
        agent.process.stop()
        add(cluster, phase)
        cluster.wait_until_running({"numbers": 2}, WAIT_S)


@pytest.mark.long(only=True)
def test_soft_downgrade(cluster: Cluster, sequences: Sequences) -> None:
    """Through `preparing` to `disabled`, and back: orderly stops leave no gap and no duplicate.

    At no time is an open transaction's record seen, nor one twice; `required` is refused again.
    """
    for _ in range(2):
        add(cluster, "enabled")
    cluster.agents[0].create("numbers", sequences.config(2))
    cluster.wait_until_running({"numbers": 2}, WAIT_S)
    limit = 30
    sequences.allow(limit)
    sequences.check(limit, 2)
    for phase in chosen(("preparing", "disabled"), long=("preparing", "enabled")):
        replace_all(cluster, phase)
        limit += 30
        sequences.allow(limit)
        sequences.check(limit, 2)
        assert sequences.seen() == sequences.seen(committed=False)
        changed = sequences.config(2, batch=str(limit))
        answer = cluster.agents[0].call("PUT", "/connectors/numbers/config", changed)
        if phase == "enabled":
            assert answer.status == 200, answer.text
        else:
            assert answer.status == 400
            assert "does not have exactly-once source support enabled" in answer.text
    cluster.wait_until_running({"numbers": 2}, WAIT_S)
    sequences.allow(limit + 30)
    sequences.check(limit + 30, 2)


def test_hard_downgrade(cluster: Cluster, sequences: Sequences) -> None:
    """All workers die in open transactions; the next ones know nothing of exactly-once.

    Offsets of aborted transactions are not taken for valid, so nothing is skipped. Readers of
    committed records see each number once; the others see the aborted ones too.
    """
    add(cluster, "enabled").create(
        "numbers",
        {
            **sequences.config(),
            **NEVER,
            "producer.override.transaction.timeout.ms": "5000",
        },
    )
    cluster.wait_until_running({"numbers": 1}, WAIT_S)
    sequences.allow(40)
    sequences.wait_for(40, committed=False)
    cluster.kill(cluster.agents[0])
    assert sequences.seen() == {}
    successor = add(cluster, "disabled")
    cluster.wait_until_running({"numbers": 1}, WAIT_S)
    eventually(lambda: sequences.seen(committed=False)["0"].count(40) == 2, WAIT_S)
    # Plain records behind an open transaction wait with it for its end.
    sequences.check(40)
    assert successor.call("PUT", "/connectors/numbers/stop").status == 204
    successor.wait_for_states("numbers", "STOPPED")
    assert successor.call("PUT", "/connectors/numbers/resume").status == 202
    sequences.allow(60)
    sequences.check(60)
