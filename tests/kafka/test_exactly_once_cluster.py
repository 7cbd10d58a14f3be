"""Exactly-once sources of several workers: zombies, fencing between workers (KIP-618)."""

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.log_record import LogRecord
from pyconnect_sandbox import ports
from tests.support.agents.agent import Agent
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.proxy import Proxy

pytestmark = pytest.mark.kafka

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
TASKS = "/connectors/numbers/tasks"
NEVER = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}


@pytest.fixture
def cluster(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Cluster]:
    """Two workers at `enabled`."""
    with cluster_of(2, kafka_broker.bootstrap_servers, tmp_path, ENABLED) as cluster:
        yield cluster


def family(agent: Agent) -> list[psutil.Process]:
    """The worker process and everything it has started."""
    supervisor = agent.supervisor()
    return [supervisor, *supervisor.children(recursive=True)]


@pytest.mark.parametrize("settings", [NEVER, pytest.param({}, marks=pytest.mark.long(only=True))])
def test_zombie_task_after_its_worker_was_frozen(
    cluster: Cluster, sequences: Sequences, settings: dict[str, str]
) -> None:
    """Worker and task are stopped past the session; the successor's view is never disturbed."""
    cluster.agents[0].create("numbers", {**sequences.config(), **settings})
    cluster.wait_until_running({"numbers": 1})
    sequences.allow(40)
    sequences.wait_for(40, committed=not settings)
    owner = cluster.named(cluster.owners()["numbers-0"])
    other = next(agent for agent in cluster.agents if agent is not owner)
    frozen = family(owner)
    for process in frozen:
        process.send_signal(signal.SIGSTOP)
    sequences.allow(80)
    try:
        eventually(
            lambda: (
                other.get("/connectors/numbers/status")["tasks"][0]["worker_id"]
                != owner.url.removeprefix("http://").rstrip("/")
                and other.states("numbers")[1:] == ("RUNNING",)
            ),
            WAIT_S,
            lambda: other.states("numbers"),
        )
        eventually(lambda: sequences.seen(committed=False)["0"].count(80) == 1, WAIT_S)
    finally:
        for process in frozen:
            if process.is_running():
                process.send_signal(signal.SIGCONT)
    cluster.wait_until_running({"numbers": 1}, WAIT_S)
    sequences.allow(120)
    eventually(lambda: 120 in sequences.seen(committed=False)["0"], WAIT_S)
    assert cluster.agents[0].call("DELETE", "/connectors/numbers").status == 204
    sequences.check(120)


def test_tasks_of_followers_are_fenced_by_the_leader(
    cluster: Cluster, sequences: Sequences
) -> None:
    """Task sets change while tasks run on both workers; signed requests reach the leader."""
    agent = cluster.agents[0]
    agent.create("numbers", sequences.config(4))
    cluster.wait_until_running({"numbers": 4})
    assert len(set(cluster.owners().values())) == 2
    sequences.allow(50)
    sequences.check(50, 4)
    assert agent.call("PUT", "/connectors/numbers/config", sequences.config(3)).status == 200
    cluster.wait_until_running({"numbers": 3}, WAIT_S)
    sequences.allow(90)
    sequences.check(90, 3)
    assert sequences.seen()["3"] == list(range(1, 51))


def test_the_owner_dies_in_a_transaction(cluster: Cluster, sequences: Sequences) -> None:
    """kill -9 of worker process and task at once; another worker aborts and repeats."""
    cluster.agents[0].create("numbers", {**sequences.config(), **NEVER})
    cluster.wait_until_running({"numbers": 1})
    sequences.allow(40)
    sequences.wait_for(40, committed=False)
    owner = cluster.named(cluster.owners()["numbers-0"])
    cluster.kill(owner)
    cluster.wait_until_running({"numbers": 1}, WAIT_S)
    eventually(lambda: sequences.seen(committed=False)["0"].count(40) == 2, WAIT_S)
    assert sequences.seen() == {}
    assert cluster.agents[0].call("PUT", "/connectors/numbers/pause").status == 202
    sequences.check(40)


def test_the_leader_dies_while_it_fences(
    cluster: Cluster, sequences: Sequences, kafka_broker: SharedBroker
) -> None:
    """Tasks that waited for its answer are cleared by the next leader; none is left FAILED."""
    port = int(kafka_broker.bootstrap_servers.rpartition(":")[2])
    with Proxy(port) as proxy:
        servers = f"{ports.LOOPBACK}:{proxy.port}"
        clients = ("producer", "consumer", "admin")
        overrides = {f"{client}.override.bootstrap.servers": servers for client in clients}
        leader = cluster.leader()
        other = next(agent for agent in cluster.agents if agent is not leader)
        other.create("numbers", {**sequences.config(4), **overrides})
        cluster.wait_until_running({"numbers": 4}, WAIT_S)
        sequences.allow(30)
        sequences.wait_for(30, 4)
        configs = {task["id"]["task"]: task["config"] for task in other.get(TASKS)}
        proxy.cut()
        # A new task set, as a connector anywhere would have made it: its older one is fenced.
        records = [
            config_records.task_config(ConnectorTaskId("numbers", number), {**config, "new": "yes"})
            for number, config in configs.items()
        ]
        write(kafka_broker, f"{cluster.group_id}-configs", records)
        write(
            kafka_broker,
            f"{cluster.group_id}-configs",
            [config_records.tasks_commit("numbers", len(configs))],
        )
        eventually(lambda: "fencing producers of older tasks" in leader.log(), WAIT_S)
        cluster.kill(leader)
        proxy.mend()
        cluster.wait_until_running({"numbers": 4}, WAIT_S)
        sequences.allow(60)
        sequences.check(60, 4)


def write(broker: SharedBroker, topic: str, records: Sequence[LogRecord]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for record in records:
        producer.produce(topic, record.value, record.key, partition=0)
    assert producer.flush(30) == 0
