"""Real Kafka for tests: the servers of the fixtures in conftest.py.

All processes of one test session share servers, pytest-xdist's workers included. The first process
that asks starts the server, under a lock. Each process holds it (`pyconnect_sandbox.processes`);
the server is killed once the last holder has ended, also when a process is killed.
"""

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pyconnect_sandbox.broker import BrokerConfig, BrokerSecurity, KafkaBroker, random_cluster_id
from pyconnect_sandbox.connect_worker import (
    AgentProcess,
    JavaConnectWorker,
    WorkerLaunch,
    worker_properties,
)
from pyconnect_sandbox.processes import Hold, ProcessIdentity, is_running
from pyconnect_sandbox.runtime import KafkaRuntime
from pyconnect_sandbox.server import Server, free_port

STOP_GRACE_S = 2.0


def free_ports(count: int, exclude: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Return `count` different free ports, none of them in `exclude`."""
    chosen: tuple[int, ...] = ()
    while len(chosen) < count:
        chosen = (*chosen, free_port(exclude | frozenset(chosen)))
    return chosen


class KafkaCluster:
    """Several brokers, each a controller too, that form one cluster.

    Internal topics have three replicas, so that any single broker may be killed.
    """

    def __init__(self, config: BrokerConfig, size: int = 3) -> None:
        """Take `config` for every broker, each in a directory below `config.directory`."""
        controllers = free_ports(size)
        listeners = free_ports(size, frozenset(controllers))
        voters = dict(enumerate(controllers, start=1))
        cluster_id = config.cluster_id or random_cluster_id()
        self._start_timeout_s = config.start_timeout_s
        self.brokers = tuple(
            KafkaBroker(
                replace(
                    config,
                    directory=config.directory / f"node-{node_id}",
                    node_id=node_id,
                    port=listeners[node_id - 1],
                    voters=voters,
                    cluster_id=cluster_id,
                )
            )
            for node_id in voters
        )

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def start(self) -> Self:
        """Start all brokers and wait until each answers and knows the others."""
        with ExitStack() as started:
            # They are launched together: a single broker has no quorum and would never answer.
            for broker in self.brokers:
                started.callback(broker.stop)
                broker.launch()
            for broker in self.brokers:
                broker.wait_until_ready(self._start_timeout_s)
            started.pop_all()
        return self

    def stop(self) -> None:
        """Stop all brokers at once, with a short grace: the last ones wait for a lost quorum."""
        for broker in self.brokers:
            if broker.is_running:
                broker.terminate()
        for broker in self.brokers:
            broker.stop(STOP_GRACE_S)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


BOOTSTRAP_VARIABLE = "PYCONNECT_TEST_BOOTSTRAP"
"""The addresses of a broker to use, instead of starting one for the session."""


SHIPPED_HEAP_MB = 2048
SHIPPED_JVM_OPTIONS = (
    "-Xms256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
)  # fmt: skip
"""KAFKA_HEAP_OPTS and KAFKA_JVM_PERFORMANCE_OPTS of connect-distributed.sh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBroker:
    """The session's broker: use names of your own in it, and never stop it."""

    bootstrap_servers: str
    sasl_bootstrap_servers: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedJavaWorker:
    """A Java distributed worker on the session's broker: never stop it."""

    url: str
    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAgentWorker:
    """A distributed agent on the session's broker: never stop it."""

    url: str
    group_id: str


STOP_TIMEOUT_S = 60
"""A busy machine takes long to stop a server, and a killed one leaves transactions and sessions."""


class Servers:
    """The servers of one test, in its directory, which end after it."""

    def __init__(self, runtime: KafkaRuntime, directory: Path) -> None:
        self.runtime = runtime
        self.directory = directory
        self._hold_file = directory / "servers.hold"
        self._started = ExitStack()
        self._count = 0

    def broker(
        self, *, security: BrokerSecurity | None = None, properties: Mapping[str, str] | None = None
    ) -> KafkaBroker:
        """Start a broker."""
        broker = KafkaBroker(self._broker_config("broker", security, properties))
        self._started.callback(broker.stop)
        return broker.start()

    def cluster(
        self, size: int = 3, *, properties: Mapping[str, str] | None = None
    ) -> KafkaCluster:
        """Start a cluster of `size` brokers."""
        cluster = KafkaCluster(self._broker_config("cluster", None, properties), size)
        self._started.callback(cluster.stop)
        return cluster.start()

    def java_worker(
        self,
        bootstrap_servers: str,
        group_id: str,
        *,
        properties: Mapping[str, str] | None = None,
        connectors: tuple[Mapping[str, str], ...] | None = None,
        as_shipped: bool = False,
    ) -> JavaConnectWorker:
        """Start a Java worker: distributed, or standalone when there are `connectors`.

        `as_shipped`: with heap and JVM options of Kafka's own start script, for measurements,
        instead of options for a quick start.
        """
        config = self._worker_config(
            "java-worker", bootstrap_servers, group_id, properties, connectors
        )
        if as_shipped:
            worker = JavaConnectWorker(
                self.runtime, config, heap_mb=SHIPPED_HEAP_MB, jvm_options=SHIPPED_JVM_OPTIONS
            )
        else:
            worker = JavaConnectWorker(self.runtime, config)
        self._started.callback(worker.stop)
        return worker.start()

    def agent(
        self,
        bootstrap_servers: str,
        group_id: str,
        *,
        properties: Mapping[str, str] | None = None,
        connectors: tuple[Mapping[str, str], ...] | None = None,
    ) -> AgentProcess:
        """Start an agent: distributed, or standalone when there are `connectors`."""
        agent = AgentProcess(
            self._worker_config("agent", bootstrap_servers, group_id, properties, connectors)
        )
        self._started.callback(agent.stop)
        return agent.start()

    def close(self) -> None:
        """End all servers that were started, the last first."""
        self._started.close()

    def _new_directory(self, kind: str) -> Path:
        self._count += 1
        return self.directory / f"{kind}-{self._count}"

    def _worker_config(
        self,
        kind: str,
        bootstrap_servers: str,
        group_id: str,
        properties: Mapping[str, str] | None,
        connectors: tuple[Mapping[str, str], ...] | None,
    ) -> WorkerLaunch:
        return WorkerLaunch(
            directory=self._new_directory(kind),
            properties={**worker_properties(bootstrap_servers, group_id), **(properties or {})},
            connectors=connectors,
            stop_timeout_s=STOP_TIMEOUT_S,
            hold_file=self._hold_file,
        )

    def _broker_config(
        self, kind: str, security: BrokerSecurity | None, properties: Mapping[str, str] | None
    ) -> BrokerConfig:
        return BrokerConfig(
            runtime=self.runtime,
            directory=self._new_directory(kind),
            security=security or BrokerSecurity(),
            properties=properties or {},
            stop_timeout_s=STOP_TIMEOUT_S,
            hold_file=self._hold_file,
        )


@contextmanager
def shared_server(
    directory: Path, name: str, start: Callable[[Path], tuple[Server, Mapping[str, str]]]
) -> Iterator[Mapping[str, str]]:
    """Yield the addresses of the session's server `name`, started by `start` if need be.

    `directory` is the session's, common to its processes. `start(hold_file)` returns the started
    server, tethered to that file, and its addresses.
    """
    hold = Hold(directory / f"{name}.hold")
    state_path = directory / f"{name}.json"
    server: Server | None = None
    try:
        with (directory / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            addresses = _running(state_path)
            if addresses is None:
                server, addresses = start(hold.path)
                identity = server.identity
                state_path.write_text(
                    json.dumps(
                        {
                            "pid": identity.pid,
                            "start_mark": identity.start_mark,
                            "addresses": dict(addresses),
                        }
                    )
                )
        yield addresses
    finally:
        if server is not None:
            server.disown()
        hold.release()


SELDOM_FENCED = {"broker.session.timeout.ms": "15000"}
"""For a broker that no test kills: it keeps its partitions on a machine that stalls for seconds.

A broker that pytest starts again in its directory has to wait for that time.
"""


@contextmanager
def shared_broker(directory: Path, name: str, config: BrokerConfig) -> Iterator[SharedBroker]:
    """Yield the session's broker `name`; it gets a directory of its own and a hold file."""
    properties = {**SELDOM_FENCED, **config.properties}
    config = replace(config, directory=directory / f"shared-{name}", properties=properties)

    def start(hold_file: Path) -> tuple[Server, Mapping[str, str]]:
        broker = KafkaBroker(replace(config, hold_file=hold_file)).start()
        addresses = {"bootstrap_servers": broker.bootstrap_servers}
        if config.security.sasl_users:
            addresses["sasl_bootstrap_servers"] = broker.sasl_bootstrap_servers
        return broker, addresses

    with shared_server(directory, name, start) as addresses:
        yield SharedBroker(**addresses)


def _running(state_path: Path) -> Mapping[str, str] | None:
    if not state_path.exists():
        return None
    state = json.loads(state_path.read_text())
    identity = ProcessIdentity(pid=state["pid"], start_mark=state["start_mark"])
    addresses: Mapping[str, str] = state["addresses"]
    return addresses if is_running(identity) else None
