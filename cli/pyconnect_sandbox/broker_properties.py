"""The `server.properties` of a sandbox broker: pure, from options to text.

KRaft in combined mode (broker and controller in one process, KIP-500), listeners on the loopback
address only: PLAINTEXT always, SASL beside it when there are users. With the ACL authorizer,
clients of PLAINTEXT are `User:ANONYMOUS`, a super user, so that the sandbox can always be
administered; SASL users are subject to ACLs unless they are named super users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyconnect_sandbox.ports import LOOPBACK

SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ANONYMOUS = "User:ANONYMOUS"
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """The ports of one node; `sasl` is None when it has no SASL listener."""

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
        # A killed broker is let in again only when its session is over: 9 s by default.
        "broker.session.timeout.ms": "3000" if len(voters) == 1 else "6000",
        "broker.heartbeat.interval.ms": "500",
        # A cleaner that needs 128 MiB for its map would not fit beside a small heap.
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
    """Return the properties by which `users` (passwords by name) may log in; none without users."""
    if not users:
        return {}
    accounts = " ".join(
        f'user_{user}="{_quoted(password)}"' for user, password in sorted(users.items())
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
    """A topic that a broker makes for itself when it is first needed."""

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


def _quoted(text: str) -> str:
    """Escape `text` for a double-quoted JAAS value."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
