"""Real Kafka for tests: what the fixtures in conftest.py hand out."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pyconnect_sandbox.broker import BrokerConfig, BrokerSecurity, KafkaBroker
from pyconnect_sandbox.connect_worker import (
    AgentProcess,
    JavaConnectWorker,
    WorkerLaunch,
    worker_properties,
)
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.servers.kafka_cluster import KafkaCluster

BOOTSTRAP_VARIABLE = "PYCONNECT_TEST_BOOTSTRAP"
"""Addresses of a broker that is used instead of starting one for the session."""


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
"""A busy machine takes long to end a server in order, and what is killed has left things open."""


class Servers:
    """Starts servers of a test's own, in its directory, and ends them with it."""

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

        `as_shipped`: with the heap and the JVM options of Kafka's own start script, to measure it,
        instead of those that start quickly.
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
        """End all that was started, the last first."""
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
