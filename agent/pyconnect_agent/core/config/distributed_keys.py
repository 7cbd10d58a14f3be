"""The keys a distributed worker has beyond those of every worker.

Layer: core. Corresponds to ``DistributedConfig`` of Kafka Connect 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyconnect_agent.core.config.security_keys import SASL_CONFIG_DEF
from pyconnect_agent.core.config.topic_creation import (
    PARTITIONS_VALIDATOR,
    REPLICATION_FACTOR_VALIDATOR,
)
from pyconnect_agent.core.config.worker_keys import HIGH, LOW, MEDIUM, worker_config_def
from pyconnect_api.configdef import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigType,
    LambdaValidator,
    NonEmptyStringWithoutControlChars,
    Range,
    ValidString,
    invalid_value,
)

MAC_ALGORITHMS = ("HmacMD5", "HmacSHA1", "HmacSHA224", "HmacSHA256", "HmacSHA384", "HmacSHA512")
"""Signature algorithms of Java that this worker can compute."""


def distributed_config_def() -> ConfigDef:
    """Return a new definition of the keys of a distributed worker."""
    definition = worker_config_def()
    _define_membership(definition)
    _define_agent_keys(definition)
    _define_rebalancing(definition)
    _define_connections(definition)
    _define_requests(definition)
    for key in SASL_CONFIG_DEF.keys.values():
        definition.define_key(key)
    _define_internal_topics(definition)
    _define_signatures(definition)
    return definition


def _define_membership(definition: ConfigDef) -> None:
    definition.define(
        "group.id",
        ConfigType.STRING,
        importance=HIGH,
        documentation="Name of the Connect cluster; workers with the same name share the work.",
    )
    for name, default, text in (
        ("session.timeout.ms", 10_000, "Time without heartbeats until a worker leaves the group."),
        ("rebalance.timeout.ms", 60_000, "Time limit for a worker to join a rebalance."),
        (
            "heartbeat.interval.ms",
            3_000,
            "Time between heartbeats; at most a third of the session.",
        ),
    ):
        definition.define(
            name, ConfigType.INT, default=default, importance=HIGH, documentation=text
        )
    definition.define(
        "exactly.once.source.support",
        ConfigType.STRING,
        default="disabled",
        validator=CaseInsensitiveValidString.one_of("disabled", "enabled", "preparing"),
        importance=HIGH,
        documentation=(
            "Whether source connectors write records and offsets in one transaction. A running "
            "cluster goes through preparing on all workers before enabled on any."
        ),
    )


def _define_agent_keys(definition: ConfigDef) -> None:
    """Define the keys that Kafka Connect does not have."""
    definition.define(
        "agent.allow.phase.change",
        ConfigType.BOOLEAN,
        default=False,
        importance=LOW,
        documentation=(
            "Whether pyconnect upgrade may change exactly.once.source.support in this file and "
            "restart the worker. A key of this agent alone."
        ),
    )
    definition.define(
        "agent.restart.command",
        ConfigType.STRING,
        default=None,
        importance=LOW,
        documentation=(
            "Command that restarts this worker, as systemctl restart connect; no shell reads it. "
            "Without it the worker restarts itself. A key of this agent alone."
        ),
    )
    definition.define(
        "agent.leader.transactional.id",
        ConfigType.STRING,
        default=None,
        validator=NonEmptyStringWithoutControlChars(),
        importance=LOW,
        documentation=(
            "Transactional id of the leader instead of connect-cluster-<group.id>. The same on "
            "every worker, all of them agents, and changed only while all are stopped: as long as "
            "members differ, the leader refuses requests that need its writes. A key of this agent "
            "alone."
        ),
    )


def _define_rebalancing(definition: ConfigDef) -> None:
    definition.define(
        "connect.protocol",
        ConfigType.STRING,
        default="sessioned",
        validator=ValidString.one_of("eager", "compatible", "sessioned"),
        importance=LOW,
        documentation="Protocol for the assignment of work; sessioned signs requests too.",
    )
    definition.define(
        "scheduled.rebalance.max.delay.ms",
        ConfigType.INT,
        default=300_000,
        validator=Range.between(0, 2**31 - 1),
        importance=LOW,
        documentation="Time for which the work of a departed worker waits for its return.",
    )
    definition.define(
        "worker.sync.timeout.ms",
        ConfigType.INT,
        default=3_000,
        importance=MEDIUM,
        documentation="Time limit for a worker to catch up with the config topic.",
    )
    definition.define(
        "worker.unsync.backoff.ms",
        ConfigType.INT,
        default=300_000,
        importance=MEDIUM,
        documentation="Time for which a worker that could not catch up stays out of the group.",
    )


def _define_connections(definition: ConfigDef) -> None:
    definition.define(
        "client.id",
        ConfigType.STRING,
        default="",
        importance=LOW,
        documentation="Part of the client ids of this worker's own clients.",
    )
    longs = (
        ("metadata.max.age.ms", 300_000, "Age at which metadata of the cluster is refreshed."),
        ("reconnect.backoff.ms", 50, "First wait before connecting to a broker again."),
        ("reconnect.backoff.max.ms", 1_000, "Longest wait before connecting to a broker again."),
        ("socket.connection.setup.timeout.ms", 10_000, "First limit of setting up a connection."),
        (
            "socket.connection.setup.timeout.max.ms",
            30_000,
            "Longest limit of setting up a connection.",
        ),
        ("retry.backoff.ms", 100, "First wait before a request is repeated."),
        ("retry.backoff.max.ms", 1_000, "Longest wait before a request is repeated."),
        (
            "metadata.recovery.rebootstrap.trigger.ms",
            300_000,
            "Time without metadata until bootstrap.servers is used again.",
        ),
    )
    for name, default, text in longs:
        definition.define(
            name,
            ConfigType.LONG,
            default=default,
            validator=Range.at_least(0),
            importance=LOW,
            documentation=text,
        )
    for name, default, what in (
        ("send.buffer.bytes", 131_072, "send"),
        ("receive.buffer.bytes", 32_768, "receive"),
    ):
        definition.define(
            name,
            ConfigType.INT,
            default=default,
            validator=Range.at_least(-1),
            importance=MEDIUM,
            documentation=f"Size of the TCP {what} buffer; -1 leaves it to the system.",
        )


def _define_requests(definition: ConfigDef) -> None:
    definition.define(
        "request.timeout.ms",
        ConfigType.INT,
        default=40_000,
        validator=Range.at_least(0),
        importance=MEDIUM,
        documentation="Time limit for the answer to a request.",
    )
    definition.define(
        "connections.max.idle.ms",
        ConfigType.LONG,
        default=540_000,
        importance=MEDIUM,
        documentation="Idle time after which a connection is closed.",
    )
    definition.define(
        "security.protocol",
        ConfigType.STRING,
        default="PLAINTEXT",
        validator=CaseInsensitiveValidString.one_of(
            "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
        ),
        importance=MEDIUM,
        documentation="Protocol of connections to brokers.",
    )
    definition.define(
        "metadata.recovery.strategy",
        ConfigType.STRING,
        default="rebootstrap",
        validator=CaseInsensitiveValidString.one_of("none", "rebootstrap"),
        importance=LOW,
        documentation="Whether to go back to bootstrap.servers when no known broker answers.",
    )


def _define_internal_topics(definition: ConfigDef) -> None:
    topics = (
        ("offset", "source offsets", 25),
        ("config", "configurations of connectors", None),
        ("status", "states of connectors and tasks", 5),
    )
    for kind, what, partitions in topics:
        definition.define(
            f"{kind}.storage.topic",
            ConfigType.STRING,
            importance=HIGH,
            documentation=f"Topic that holds {what}. Other {kind}.storage.* keys are its settings.",
        )
        if partitions is not None:
            definition.define(
                f"{kind}.storage.partitions",
                ConfigType.INT,
                default=partitions,
                validator=PARTITIONS_VALIDATOR,
                importance=LOW,
                documentation=f"Partitions of the {kind} topic when created; -1: broker default.",
            )
        definition.define(
            f"{kind}.storage.replication.factor",
            ConfigType.SHORT,
            default=3,
            validator=REPLICATION_FACTOR_VALIDATOR,
            importance=LOW,
            documentation=f"Replicas of the {kind} topic when created; -1: broker default.",
        )


def _define_signatures(definition: ConfigDef) -> None:
    definition.define(
        "inter.worker.key.ttl.ms",
        ConfigType.INT,
        default=3_600_000,
        validator=Range.between(0, 2**31 - 1),
        importance=LOW,
        documentation="Age at which the key that signs requests between workers is replaced.",
    )
    definition.define(
        "inter.worker.key.generation.algorithm",
        ConfigType.STRING,
        default="HmacSHA256",
        validator=LambdaValidator(_check_algorithm, "one of " + ", ".join(MAC_ALGORITHMS)),
        importance=LOW,
        documentation="Algorithm for which the key between workers is made.",
    )
    definition.define(
        "inter.worker.key.size",
        ConfigType.INT,
        default=None,
        importance=LOW,
        documentation="Bits of the key between workers; unset takes the algorithm's usual length.",
    )
    definition.define(
        "inter.worker.signature.algorithm",
        ConfigType.STRING,
        default="HmacSHA256",
        validator=LambdaValidator(_check_algorithm, "one of " + ", ".join(MAC_ALGORITHMS)),
        importance=LOW,
        documentation="Algorithm with which requests between workers are signed.",
    )
    definition.define(
        "inter.worker.verification.algorithms",
        ConfigType.LIST,
        default="HmacSHA256",
        validator=LambdaValidator(_check_algorithms, "some of " + ", ".join(MAC_ALGORITHMS)),
        importance=LOW,
        documentation="Algorithms accepted in requests; must have the one used for signing.",
    )


def _check_algorithm(name: str, value: object) -> None:
    if value not in MAC_ALGORITHMS:
        raise invalid_value(
            name,
            value,
            "the algorithm is not supported by this worker; the supported algorithms are: "
            f"[{', '.join(MAC_ALGORITHMS)}]",
        )


def _check_algorithms(name: str, value: object) -> None:
    if not isinstance(value, Sequence) or not value:
        raise invalid_value(
            name, value, "At least one signature verification algorithm must be provided"
        )
    for algorithm in value:
        _check_algorithm(name, algorithm)
