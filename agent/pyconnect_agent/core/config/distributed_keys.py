"""The keys a distributed worker has beyond those of every worker.

Corresponds to ``DistributedConfig`` of Kafka Connect 4.4.0; `agent.*` keys are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyconnect_agent.core.config.topic_creation import (
    PARTITIONS_VALIDATOR,
    REPLICATION_FACTOR_VALIDATOR,
)
from pyconnect_agent.core.config.worker_keys import SASL_CONFIG_DEF, worker_config_def
from pyconnect_api.configdef import (
    CaseInsensitiveValidString,
    ConfigDef,
    LambdaValidator,
    NonEmptyStringWithoutControlChars,
    Range,
    ValidString,
    define_table,
    invalid_value,
)

MAC_ALGORITHMS = ("HmacMD5", "HmacSHA1", "HmacSHA224", "HmacSHA256", "HmacSHA384", "HmacSHA512")
"""Signature algorithms of Java that this worker can compute."""

_MEMBERSHIP_AND_CONNECTIONS = """
group.id  STRING  HIGH  !
    Name of the Connect cluster; workers with the same name share the work.
session.timeout.ms  INT  HIGH  10000
    Time without heartbeats until a worker leaves the group.
rebalance.timeout.ms  INT  HIGH  60000
    Time limit for a worker to join a rebalance.
heartbeat.interval.ms  INT  HIGH  3000
    Time between heartbeats; at most a third of the session.
exactly.once.source.support  STRING  HIGH  disabled
    Whether source connectors write records and offsets in one transaction. A running cluster goes
    through preparing on all workers before enabled on any.
agent.allow.phase.change  BOOLEAN  LOW  false
    Whether pyconnect upgrade may change exactly.once.source.support in this file and restart the
    worker. A key of this agent alone.
agent.restart.command  STRING  LOW  ~
    Command that restarts this worker, as systemctl restart connect; no shell reads it. Without it
    the worker restarts itself. A key of this agent alone.
agent.leader.transactional.id  STRING  LOW  ~
    Transactional id of the leader instead of connect-cluster-<group.id>. The same on every worker,
    all of them agents, and changed only while all are stopped: as long as members differ, the
    leader refuses requests that need its writes. A key of this agent alone.
agent.journal.topic  STRING  LOW  ~
    Topic in which the agents of the group record each changing request, without secrets. It is
    created with one partition, the replication factor of the config topic and without compaction.
    A key of this agent alone.
agent.journal.retention.ms  LONG  LOW  -1
    Time for which the records stay, for a topic that the worker creates; -1: always. A key of this
    agent alone.
connect.protocol  STRING  LOW  sessioned
    Protocol for the assignment of work; sessioned signs requests too.
scheduled.rebalance.max.delay.ms  INT  LOW  300000
    Time for which the work of a departed worker waits for its return.
worker.sync.timeout.ms  INT  MEDIUM  3000
    Time limit for a worker to catch up with the config topic.
worker.unsync.backoff.ms  INT  MEDIUM  300000
    Time for which a worker that could not catch up stays out of the group.
client.id  STRING  LOW  ""
    Part of the client ids of this worker's own clients.
metadata.max.age.ms  LONG  LOW  300000
    Age at which metadata of the cluster is refreshed.
reconnect.backoff.ms  LONG  LOW  50
    First wait before connecting to a broker again.
reconnect.backoff.max.ms  LONG  LOW  1000
    Longest wait before connecting to a broker again.
socket.connection.setup.timeout.ms  LONG  LOW  10000
    First limit of setting up a connection.
socket.connection.setup.timeout.max.ms  LONG  LOW  30000
    Longest limit of setting up a connection.
retry.backoff.ms  LONG  LOW  100
    First wait before a request is repeated.
retry.backoff.max.ms  LONG  LOW  1000
    Longest wait before a request is repeated.
metadata.recovery.rebootstrap.trigger.ms  LONG  LOW  300000
    Time without metadata until bootstrap.servers is used again.
send.buffer.bytes  INT  MEDIUM  131072
    Size of the TCP send buffer; -1 leaves it to the system.
receive.buffer.bytes  INT  MEDIUM  32768
    Size of the TCP receive buffer; -1 leaves it to the system.
bootstrap.resolve.timeout.ms  LONG  LOW  0
    Accepted for compatibility: names of brokers are looked up until they are known.
request.timeout.ms  INT  MEDIUM  40000
    Time limit for the answer to a request.
connections.max.idle.ms  LONG  MEDIUM  540000
    Idle time after which a connection is closed.
security.protocol  STRING  MEDIUM  PLAINTEXT
    Protocol of connections to brokers.
metadata.recovery.strategy  STRING  LOW  rebootstrap
    Whether to go back to bootstrap.servers when no known broker answers.
metadata.cluster.check.enable  BOOLEAN  LOW  true
    Accepted for compatibility: clients do not send the cluster's id to brokers.
"""
_TOPICS_AND_SIGNATURES = """
internal.topics.automatic.creation.enable  BOOLEAN  MEDIUM  true
    Whether missing internal topics are created, connectors' own offsets topics among them. If not,
    a worker or a connector whose topic is missing fails.
offset.storage.topic  STRING  HIGH  !
    Topic that holds source offsets. Other offset.storage.* keys are its settings.
offset.storage.partitions  INT  LOW  25
    Partitions of the offset topic when created; -1: broker default.
offset.storage.replication.factor  SHORT  LOW  3
    Replicas of the offset topic when created; -1: broker default.
config.storage.topic  STRING  HIGH  !
    Topic that holds configurations of connectors. Other config.storage.* keys are its settings.
config.storage.replication.factor  SHORT  LOW  3
    Replicas of the config topic when created; -1: broker default.
status.storage.topic  STRING  HIGH  !
    Topic that holds states of connectors and tasks. Other status.storage.* keys are its settings.
status.storage.partitions  INT  LOW  5
    Partitions of the status topic when created; -1: broker default.
status.storage.replication.factor  SHORT  LOW  3
    Replicas of the status topic when created; -1: broker default.
inter.worker.key.ttl.ms  INT  LOW  3600000
    Age at which the key that signs requests between workers is replaced.
inter.worker.key.generation.algorithm  STRING  LOW  HmacSHA256
    Algorithm for which the key between workers is made.
inter.worker.key.size  INT  LOW  ~
    Bits of the key between workers; unset takes the algorithm's usual length.
inter.worker.signature.algorithm  STRING  LOW  HmacSHA256
    Algorithm with which requests between workers are signed.
inter.worker.verification.algorithms  LIST  LOW  HmacSHA256
    Algorithms accepted in requests; must have the one used for signing.
"""
_WAITS = (
    "bootstrap.resolve.timeout.ms",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)


def distributed_config_def() -> ConfigDef:
    """Return a new definition of the keys of a distributed worker."""
    definition = define_table(
        worker_config_def(),
        _MEMBERSHIP_AND_CONNECTIONS,
        {
            "exactly.once.source.support": CaseInsensitiveValidString.one_of(
                "disabled", "enabled", "preparing"
            ),
            "agent.leader.transactional.id": NonEmptyStringWithoutControlChars(),
            "connect.protocol": ValidString.one_of("eager", "compatible", "sessioned"),
            "scheduled.rebalance.max.delay.ms": Range.between(0, 2**31 - 1),
            **dict.fromkeys(_WAITS, Range.at_least(0)),
            "send.buffer.bytes": Range.at_least(-1),
            "receive.buffer.bytes": Range.at_least(-1),
            "security.protocol": CaseInsensitiveValidString.one_of(
                "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
            ),
            "metadata.recovery.strategy": CaseInsensitiveValidString.one_of("none", "rebootstrap"),
        },
    )
    for key in SASL_CONFIG_DEF.keys.values():
        definition.define_key(key)
    supported = ", ".join(MAC_ALGORITHMS)
    return define_table(
        definition,
        _TOPICS_AND_SIGNATURES,
        {
            "offset.storage.partitions": PARTITIONS_VALIDATOR,
            "offset.storage.replication.factor": REPLICATION_FACTOR_VALIDATOR,
            "config.storage.replication.factor": REPLICATION_FACTOR_VALIDATOR,
            "status.storage.partitions": PARTITIONS_VALIDATOR,
            "status.storage.replication.factor": REPLICATION_FACTOR_VALIDATOR,
            "inter.worker.key.ttl.ms": Range.between(0, 2**31 - 1),
            "inter.worker.key.generation.algorithm": LambdaValidator(
                _check_algorithm, f"one of {supported}"
            ),
            "inter.worker.signature.algorithm": LambdaValidator(
                _check_algorithm, f"one of {supported}"
            ),
            "inter.worker.verification.algorithms": LambdaValidator(
                _check_algorithms, f"some of {supported}"
            ),
        },
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
