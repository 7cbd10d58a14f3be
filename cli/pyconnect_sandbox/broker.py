"""A real Kafka broker: alone, or one of a cluster.

KRaft, combined mode; `kafka.tools.StorageTool format`, then `kafka.Kafka`. Ready when it answers
a metadata request: its listener is opened only once the controller has unfenced the broker.
Not thread-safe.

`server.properties` is made purely from options: listeners on the loopback address only, PLAINTEXT
always, SASL beside it when there are users. With the ACL authorizer, clients of PLAINTEXT are
`User:ANONYMOUS`, a super user, so that the sandbox can always be administered; SASL users are
subject to ACLs unless they are named super users.
"""

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties

from pyconnect_sandbox.errors import SandboxError, ServerNotReady
from pyconnect_sandbox.runtime import KafkaRuntime, write_log_configuration
from pyconnect_sandbox.server import LOOPBACK, Server, accepts_connections, free_port, require_free

SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ANONYMOUS = "User:ANONYMOUS"
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """The ports of one node; `sasl` is None if the node has no SASL listener."""

    plaintext: int
    controller: int
    sasl: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSecurity:
    acl: bool = False
    """Whether StandardAuthorizer decides; everything is allowed otherwise."""
    sasl_users: Mapping[str, str] = field(default_factory=dict)
    """Passwords by user name, for PLAIN and SCRAM alike; empty: no SASL listener."""
    super_users: tuple[str, ...] = ()
    """Principals (`User:alice`) that ACLs do not bind, beside User:ANONYMOUS."""


def server_properties(
    *,
    node_id: int,
    ports: NodePorts,
    voters: Mapping[int, int],
    data_directory: Path,
    security: BrokerSecurity,
    overrides: Mapping[str, str],
) -> dict[str, str]:
    """Return the broker's properties; `voters` maps node ids to controller ports.

    Internal topics get one replica per voter, three at most, and few partitions: creating the
    fifty of a default offsets topic takes longer than the broker takes to start.
    """
    replicas = min(3, len(voters))
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(
            f"{voter}@{LOOPBACK}:{port}" for voter, port in sorted(voters.items())
        ),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data_directory),
        "num.partitions": "1",
        "default.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.num.partitions": "5",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(max(1, replicas - 1)),
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(max(1, replicas - 1)),
        "group.initial.rebalance.delay.ms": "0",
        # The controller accepts a restarted broker after its old session has ended: 9 s by default.
        "broker.session.timeout.ms": "3000" if len(voters) == 1 else "6000",
        "broker.heartbeat.interval.ms": "500",
        # The cleaner's default map of 128 MiB does not fit beside a small heap.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }
    properties |= _listeners(ports)
    properties |= sasl_properties(security.sasl_users)
    if security.acl:
        properties["authorizer.class.name"] = (
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        )
        properties["super.users"] = ";".join((ANONYMOUS, *security.super_users))
    return properties | dict(overrides)


def _listeners(ports: NodePorts) -> dict[str, str]:
    protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT"}
    advertised = {"PLAINTEXT": ports.plaintext}
    if ports.sasl is not None:
        protocols["SASL"] = "SASL_PLAINTEXT"
        advertised["SASL"] = ports.sasl
    bound = {**advertised, "CONTROLLER": ports.controller}
    return {
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in bound.items()),
        "advertised.listeners": ",".join(
            f"{name}://{LOOPBACK}:{port}" for name, port in advertised.items()
        ),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
    }


def sasl_properties(users: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of logins for `users` (passwords by name); empty without users."""
    if not users:
        return {}
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"'})  # for a double-quoted JAAS value
    accounts = " ".join(
        f'user_{user}="{password.translate(escapes)}"' for user, password in sorted(users.items())
    )
    return {
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS)),
        "listener.name.sasl.plain.sasl.jaas.config": f"{_PLAIN_MODULE} required {accounts};",
        **{
            f"listener.name.sasl.{mechanism.lower()}.sasl.jaas.config": f"{_SCRAM_MODULE} required;"
            for mechanism in SCRAM_MECHANISMS
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTopic:
    """A topic that a broker creates when it is first needed."""

    name: str
    partitions: int
    replicas: int
    configs: Mapping[str, str]


def internal_topics(properties: Mapping[str, str]) -> tuple[BrokerTopic, ...]:
    """Return the coordinators' topics as a broker with `properties` would create them."""
    return (
        BrokerTopic(
            name="__consumer_offsets",
            partitions=int(properties["offsets.topic.num.partitions"]),
            replicas=int(properties["offsets.topic.replication.factor"]),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": "104857600",
            },
        ),
        BrokerTopic(
            name="__transaction_state",
            partitions=int(properties["transaction.state.log.num.partitions"]),
            replicas=int(properties["transaction.state.log.replication.factor"]),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": properties["transaction.state.log.min.isr"],
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            },
        ),
    )


def scram_format_arguments(users: Mapping[str, str]) -> list[str]:
    """Return the arguments by which StorageTool stores the users' SCRAM credentials (KIP-900)."""
    return [
        argument
        for user, password in sorted(users.items())
        for mechanism in SCRAM_MECHANISMS
        for argument in ("--add-scram", f'{mechanism}=[name="{user}",password="{password}"]')
    ]


def random_cluster_id() -> str:
    """Return a new cluster id in Kafka's form: a UUID in URL-safe base 64, unpadded.

    Like Kafka's ids it never starts with a dash, which command lines would take for an option.
    """
    while True:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not cluster_id.startswith("-"):
            return cluster_id


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    runtime: KafkaRuntime
    directory: Path
    """The directory of this broker only: configuration, logs and, in `data`, its records."""
    port: int | None = None
    """The port of the PLAINTEXT listener; None: a free one is chosen."""
    sasl_port: int | None = None
    """The port of the SASL listener, if there are SASL users; None: a free one is chosen."""
    security: BrokerSecurity = field(default_factory=BrokerSecurity)
    properties: Mapping[str, str] = field(default_factory=dict)
    """Broker properties that replace the sandbox's."""
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
        if self._ports is None:
            if self.config.port is not None:
                require_free(self.config.port)
            plaintext = self.config.port or free_port()
            if self.config.voters is None:
                controller = free_port(frozenset({plaintext}))
            else:
                controller = self.config.voters[self.config.node_id]
            sasl = None
            if self.config.security.sasl_users:
                sasl = self.config.sasl_port or free_port(frozenset({plaintext, controller}))
            self._ports = NodePorts(plaintext=plaintext, controller=controller, sasl=sasl)
        return self._ports

    @property
    def bootstrap_servers(self) -> str:
        return f"{LOOPBACK}:{self.ports.plaintext}"

    @property
    def sasl_bootstrap_servers(self) -> str:
        """Address of the SASL_PLAINTEXT listener; raises SandboxError when there is none."""
        if self.ports.sasl is None:
            raise SandboxError("This broker has no SASL listener", hint="give it SASL users")
        return f"{LOOPBACK}:{self.ports.sasl}"

    @property
    def data_directory(self) -> Path:
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
        # librdkafka waits after a refused connection; a plain probe first avoids that.
        if not accepts_connections(self.ports.plaintext):
            return False
        expected = len(self.config.voters or {self.config.node_id: 0})
        if not answers_metadata(self.bootstrap_servers, timeout_s, brokers=expected):
            return False
        if not self._has_answered:
            # If clients created them, the first group and the first transaction would wait for
            # seconds.
            create_topics(self.bootstrap_servers, internal_topics(self._properties()))
            self._has_answered = True
        return True


def answers_metadata(bootstrap_servers: str, timeout_s: float, brokers: int = 1) -> bool:
    """Return whether a metadata request is answered and names at least `brokers` brokers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    # log_level 0: connection failures are expected, and the return value reports them.
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
