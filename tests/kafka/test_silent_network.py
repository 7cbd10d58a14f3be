"""Tasks move although a network drops packets without an error.

Clients reach the brokers through proxies that a test can silence.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker, random_cluster_id
from pyconnect_sandbox.runtime import KafkaRuntime
from pyconnect_sandbox.server import LOOPBACK
from tests.support.agents.agent import Agent
from tests.support.cases import cases
from tests.support.chaos.witness import Journal
from tests.support.eventually import eventually
from tests.support.servers.cluster import (
    SESSION_MS,
    Cluster,
    cluster_of,
    status_faults,
    statuses_in,
    worker_of,
)
from tests.support.servers.kafka import free_ports
from tests.support.servers.proxy import Proxy
from tests.support.servers.topics import coordinator_partition


@dataclass(frozen=True, kw_only=True)
class FarBrokers:
    """Brokers and their proxies by node id; brokers give far clients the proxies' addresses."""

    brokers: tuple[KafkaBroker, ...]
    proxies: dict[int, Proxy]

    @property
    def near(self) -> str:
        """Bootstrap servers of the brokers themselves."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def far(self) -> str:
        return ",".join(f"{LOOPBACK}:{proxy.port}" for proxy in self.proxies.values())


@contextmanager
def far_brokers(runtime: KafkaRuntime, directory: Path, size: int = 1) -> Iterator[FarBrokers]:
    """Start brokers that form one cluster, and their proxies."""
    chosen = free_ports(3 * size)
    nodes = range(1, size + 1)
    ports = dict(zip(nodes, zip(*[iter(chosen)] * 3, strict=True), strict=True))
    voters = {node: controller for node, (controller, _, _) in ports.items()}
    cluster_id = random_cluster_id()
    with ExitStack() as opened:
        proxies = {node: opened.enter_context(Proxy(far)) for node, (_, _, far) in ports.items()}
        brokers = []
        for node, (controller, near, far) in ports.items():
            bound = {"PLAINTEXT": near, "FAR": far}
            told = {"PLAINTEXT": near, "FAR": proxies[node].port}
            properties = {
                "listeners": _addresses({**bound, "CONTROLLER": controller}),
                "advertised.listeners": _addresses(told),
                "listener.security.protocol.map": (
                    "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT"
                ),
            }
            config = BrokerConfig(
                runtime=runtime,
                directory=directory / f"far-{node}",
                node_id=node,
                port=near,
                voters=voters,
                cluster_id=cluster_id,
                properties=properties,
                hold_file=directory / "far.hold",
            )
            brokers.append(KafkaBroker(config))
            opened.callback(brokers[-1].stop)
            brokers[-1].launch()
        for broker in brokers:
            broker.wait_until_ready(60)
        yield FarBrokers(brokers=tuple(brokers), proxies=proxies)


def _addresses(ports: dict[str, int]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items())


pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(1800)]

TASKS = 4
ENDED_S = SESSION_MS / 1000 + 3
"""An Apache worker with this session and a heartbeat interval of 3 s needs half a second more."""
WAIT_S = 150


@dataclass(frozen=True, kw_only=True)
class Divided:
    """Two workers, one of which reaches the brokers through proxies."""

    brokers: FarBrokers
    cluster: Cluster
    near: Agent
    far: Agent
    journal: Journal

    def start_tasks(self) -> None:
        """Start tasks on both workers."""
        self.near.create("w", self.journal.config(TASKS))
        self.cluster.wait_until_running({"w": TASKS}, WAIT_S)
        eventually(lambda: len(self.living(self.far)) == TASKS // 2, WAIT_S)

    def living(self, agent: Agent) -> set[int]:
        """Return the pids of the agent's tasks that are alive in the operating system."""
        pids = {entry.pid for entry in self.journal.entries("start")}
        return {
            child.pid
            for child in agent.children()
            if child.pid in pids and child.status() != psutil.STATUS_ZOMBIE
        }

    def faults(self) -> list[str]:
        written = statuses_in(self.brokers.near, f"{self.cluster.group_id}-status")
        return status_faults(self.cluster.agents, written)

    def coordinator(self) -> Proxy:
        """Return the proxy of the broker that coordinates the group."""
        topic = "__consumer_offsets"
        admin = AdminClient({"bootstrap.servers": self.brokers.near})
        partitions = admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
        number = coordinator_partition(self.cluster.group_id, len(partitions))
        return self.brokers.proxies[partitions[number].leader]


def divided(runtime: KafkaRuntime, directory: Path, size: int) -> Iterator[Divided]:
    with (
        far_brokers(runtime, directory, size) as brokers,
        cluster_of(1, brokers.near, directory) as cluster,
    ):
        far = cluster.add(properties={"bootstrap.servers": brokers.far})
        yield Divided(
            brokers=brokers,
            cluster=cluster,
            near=cluster.agents[0],
            far=far,
            journal=Journal(directory / "journal"),
        )


@pytest.fixture
def one_broker(kafka_runtime: KafkaRuntime, tmp_path: Path) -> Iterator[Divided]:
    yield from divided(kafka_runtime, tmp_path, 1)


@pytest.fixture
def three_brokers(kafka_runtime: KafkaRuntime, tmp_path: Path) -> Iterator[Divided]:
    yield from divided(kafka_runtime, tmp_path, 3)


BOTH = {"requests": True, "answers": True}


@pytest.mark.long(only=True)
@cases(
    "seconds, directions",
    (40, BOTH),
    (40, {"requests": True, "answers": False}),
    (40, {"requests": False, "answers": True}),
    (120, BOTH),
    (600, BOTH),
)
def test_tasks_end_before_others_begin_while_the_network_is_silent(
    one_broker: Divided, seconds: int, directions: dict[str, bool]
) -> None:
    """Tasks end within the session before others start; later statuses are true."""
    (proxy,) = one_broker.brokers.proxies.values()
    silence(one_broker, proxy, seconds, directions)


@pytest.mark.long(only=True)
@cases("seconds", 40, 120)
def test_a_coordinator_alone_falls_silent(three_brokers: Divided, seconds: int) -> None:
    """Tasks end in time although other brokers still name the silent broker as coordinator."""
    silence(three_brokers, three_brokers.coordinator(), seconds, BOTH)


def silence(divided: Divided, proxy: Proxy, seconds: int, directions: dict[str, bool]) -> None:
    near, far, journal = divided.near, divided.far, divided.journal
    divided.start_tasks()
    starts = journal.starts()
    proxy.silence(**directions)
    began_s = time.monotonic()
    try:
        eventually(lambda: not divided.living(far), seconds)
        assert time.monotonic() - began_s < ENDED_S
        eventually(lambda: len(divided.living(near)) == TASKS, WAIT_S)
        assert {e.pid for e in journal.started_since(starts)} <= divided.living(near)
        eventually(lambda: time.monotonic() >= began_s + seconds, seconds + 1)
        assert divided.living(far) == set()
        eventually(lambda: status_faults([near]) == [], WAIT_S, lambda: status_faults([near]))
    finally:
        proxy.restore()
    eventually(lambda: len(divided.living(far)) == TASKS // 2, WAIT_S)
    divided.cluster.wait_until_running({"w": TASKS}, WAIT_S)
    workers = [worker_of(near), worker_of(far)]
    assert sorted(set(divided.cluster.owners().values())) == sorted(workers)
    eventually(lambda: divided.faults() == [], WAIT_S, divided.faults)
    assert journal.entries("overlap") == []
