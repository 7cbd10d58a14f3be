"""A real Kafka broker: alone, or one of a cluster.

KRaft, combined mode; `kafka.tools.StorageTool format`, then `kafka.Kafka`. Ready when it answers
a metadata request: its listener is opened only once the controller has unfenced the broker.
Not thread-safe.
"""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties

from pyconnect_sandbox import ports
from pyconnect_sandbox.broker_properties import (
    BrokerSecurity,
    BrokerTopic,
    NodePorts,
    internal_topics,
    scram_format_arguments,
    server_properties,
)
from pyconnect_sandbox.errors import SandboxError, ServerNotReady
from pyconnect_sandbox.runtime import KafkaRuntime, write_log_configuration
from pyconnect_sandbox.server import Server


def random_cluster_id() -> str:
    """Return a new cluster id as Kafka writes ids: a UUID in URL-safe base 64, unpadded.

    As Kafka's, it never starts with a dash: command lines would take it for an option.
    """
    while True:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not cluster_id.startswith("-"):
            return cluster_id


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    runtime: KafkaRuntime
    directory: Path
    """The directory of this broker alone: configuration, logs and, in `data`, its records."""
    port: int | None = None
    """The port of the PLAINTEXT listener; None: a free one is chosen."""
    sasl_port: int | None = None
    """The port of the SASL listener, if there are SASL users; None: a free one is chosen."""
    security: BrokerSecurity = field(default_factory=BrokerSecurity)
    properties: Mapping[str, str] = field(default_factory=dict)
    """Broker properties that win over the sandbox's."""
    node_id: int = 1
    voters: Mapping[int, int] | None = None
    """Controller ports by node id; None: this node alone, on a free port."""
    cluster_id: str | None = None
    """None: a random one, or the one that `data` was formatted with."""
    heap_mb: int = 512
    start_timeout_s: float = 120
    stop_timeout_s: float = 15
    hold_file: Path | None = None
    """See `Server`; None: the broker outlives this process."""


class KafkaBroker(Server):
    """A broker process. Ports stay the same over restarts, once it has started."""

    name = "broker"

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(
            directory=config.directory,
            start_timeout_s=config.start_timeout_s,
            stop_timeout_s=config.stop_timeout_s,
            hold_file=config.hold_file,
        )
        self.config = config
        self._ports: NodePorts | None = None
        self._has_answered = False

    @property
    def ports(self) -> NodePorts:
        """The ports, chosen when first asked for."""
        if self._ports is None:
            if self.config.port is not None:
                ports.require_free(self.config.port)
            plaintext = self.config.port or ports.free_port()
            if self.config.voters is None:
                controller = ports.free_port(frozenset({plaintext}))
            else:
                controller = self.config.voters[self.config.node_id]
            sasl = None
            if self.config.security.sasl_users:
                sasl = self.config.sasl_port or ports.free_port(frozenset({plaintext, controller}))
            self._ports = NodePorts(plaintext=plaintext, controller=controller, sasl=sasl)
        return self._ports

    @property
    def bootstrap_servers(self) -> str:
        """Address of the PLAINTEXT listener."""
        return f"{ports.LOOPBACK}:{self.ports.plaintext}"

    @property
    def sasl_bootstrap_servers(self) -> str:
        """Address of the SASL_PLAINTEXT listener; raises SandboxError when there is none."""
        if self.ports.sasl is None:
            raise SandboxError("This broker has no SASL listener", hint="give it SASL users")
        return f"{ports.LOOPBACK}:{self.ports.sasl}"

    @property
    def data_directory(self) -> Path:
        """The directory of the broker's records and metadata."""
        return self.directory / "data"

    def _give_up_ports(self) -> bool:
        asked_for = (self.config.port, self.config.sasl_port, self.config.voters)
        if self._has_answered or any(choice is not None for choice in asked_for):
            return False
        self._ports = None
        return True

    def _properties(self) -> dict[str, str]:
        return server_properties(
            node_id=self.config.node_id,
            ports=self.ports,
            voters=self.config.voters or {self.config.node_id: self.ports.controller},
            data_directory=self.data_directory,
            security=self.config.security,
            overrides=self.config.properties,
        )

    def _prepare(self) -> Sequence[str]:
        properties = self._properties()
        properties_path = self.directory / "server.properties"
        properties_path.touch(mode=0o600)  # passwords of SASL users
        properties_path.write_text(javaproperties.dumps(properties, timestamp=None, sort_keys=True))
        log_configuration = self.directory / "log4j2.properties"
        write_log_configuration(log_configuration, self.log_path)
        if not (self.data_directory / "meta.properties").exists():
            self._format(properties_path, log_configuration)
        return self.config.runtime.command(
            "kafka.Kafka",
            str(properties_path),
            heap_mb=self.config.heap_mb,
            server_directory=self.directory,
            log_configuration=log_configuration,
        )

    def _format(self, properties_path: Path, log_configuration: Path) -> None:
        command = self.config.runtime.command(
            "kafka.tools.StorageTool",
            "format",
            "--cluster-id",
            self.config.cluster_id or random_cluster_id(),
            "--config",
            str(properties_path),
            *scram_format_arguments(self.config.security.sasl_users),
            heap_mb=128,
            log_configuration=log_configuration,
        )
        try:
            formatted = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=self.config.start_timeout_s,
            )
        except subprocess.TimeoutExpired as expired:
            raise ServerNotReady(
                f"Kafka did not format {self.data_directory} within"
                f" {self.config.start_timeout_s:.3g} s",
                hint="the machine may be busy: allow more with --timeout 5m",
            ) from expired
        if formatted.returncode != 0:
            reason = formatted.stderr.strip().partition("\n\tat ")[0]
            raise SandboxError(
                f"Kafka refused to format {self.data_directory}: {reason}",
                hint=f"check {properties_path}, or choose an empty --data-dir",
            )

    def _answers(self, timeout_s: float) -> bool:
        # librdkafka backs off after a refused connection; a plain probe before it does not.
        if not ports.accepts_connections(self.ports.plaintext):
            return False
        expected = len(self.config.voters or {self.config.node_id: 0})
        if not answers_metadata(self.bootstrap_servers, timeout_s, brokers=expected):
            return False
        if not self._has_answered:
            # Made on demand, they cost the first group and the first transaction seconds: clients
            # back off while there is no coordinator.
            create_topics(self.bootstrap_servers, internal_topics(self._properties()))
            self._has_answered = True
        return True


def answers_metadata(bootstrap_servers: str, timeout_s: float, brokers: int = 1) -> bool:
    """Return whether a metadata request is answered and names at least `brokers` brokers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    # log_level 0: connection failures are expected here and shown by the return value.
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    try:
        return len(client.list_topics(timeout=timeout_s).brokers) >= brokers
    except KafkaException:
        return False


def create_topics(bootstrap_servers: str, topics: Sequence[BrokerTopic]) -> None:
    """Create topics that do not exist yet; raise SandboxError when the broker refuses."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    requests = [
        NewTopic(
            topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replicas,
            config=dict(topic.configs),
        )
        for topic in topics
    ]
    for name, created in client.create_topics(requests).items():
        try:
            created.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise SandboxError(f"The broker did not create {name}: {error}") from error
