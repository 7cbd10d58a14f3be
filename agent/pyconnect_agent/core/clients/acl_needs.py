"""The grants that this worker's clients need from the brokers.

Layer: core. No Kafka counterpart: Apache's workers notice a missing grant when a request fails.
Only needs that can be checked at a broker without a trace are listed. `pyconnect acls` explains
each grant; it and this module share the fields of a need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from pyconnect_agent.core.clients import configs as client_configs
from pyconnect_agent.core.config.topic_creation import uses_topic_creation
from pyconnect_agent.core.config.worker_config import DistributedConfig, ExactlyOnceSourceSupport
from pyconnect_agent.core.exactly_once.transactional_ids import task_transactional_ids

PHASES = tuple(ExactlyOnceSourceSupport)
_DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"


class AclClient(Enum):
    """Which client acts; those of connectors may have credentials of their own."""

    WORKER = "worker"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


class AclOperation(Enum):
    """Kafka's name and, in `code`, its number in the protocol."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"

    @property
    def code(self) -> int:
        return _CODES[self]


_CODES = {
    AclOperation.READ: 3,
    AclOperation.WRITE: 4,
    AclOperation.CREATE: 5,
    AclOperation.DELETE: 6,
    AclOperation.DESCRIBE: 8,
    AclOperation.DESCRIBE_CONFIGS: 10,
}


class AclResource(Enum):
    """Kinds of resources, by Kafka's names."""

    TOPIC = "Topic"
    GROUP = "Group"
    TRANSACTIONAL_ID = "TransactionalId"


class AclNeed(NamedTuple):
    """One operation; `connector` None: the worker's own. `phase`: since when it is needed."""

    client: AclClient
    connector: str | None
    operation: AclOperation
    resource_type: AclResource
    resource: str
    phase: ExactlyOnceSourceSupport
    blocker: bool = True

    def __str__(self) -> str:
        return f"{self.operation.value} {self.resource_type.value} {self.resource}"


class AclVerdict(Enum):
    """The answer of a broker."""

    PROVEN = "proven"
    DENIED = "denied"
    UNKNOWN = "unknown"


ABSENT_TOPIC = "the topic does not exist yet"
"""The evidence of UNKNOWN for a topic that is still to be created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFinding:
    """A need and the broker's answer; `principal` None: the configuration does not show it."""

    need: AclNeed
    verdict: AclVerdict
    evidence: str
    principal: str | None

    def to_json(self) -> dict[str, Any]:
        need = self.need
        return {
            "client": need.client.value,
            "connector": need.connector,
            "principal": self.principal,
            "operation": need.operation.value,
            "resource_type": need.resource_type.value,
            "resource": need.resource,
            "phase": need.phase.value,
            "severity": "blocker" if need.blocker else "warning",
            "verdict": self.verdict.value,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorAclFacts:
    """The facts that decide a connector's needs; `fenced_tasks` is its last task count record."""

    name: str
    type: str
    config: Mapping[str, str | None]
    tasks: int
    fenced_tasks: int
    topics: tuple[str, ...] = ()


def needs_in(phase: ExactlyOnceSourceSupport, since: ExactlyOnceSourceSupport) -> bool:
    """Whether a need that begins in one phase applies in another phase."""
    return PHASES.index(since) <= PHASES.index(phase)


def worker_needs(worker: DistributedConfig) -> Iterator[AclNeed]:
    """Yield the needs of the worker's own clients, of all phases."""

    def need(
        operation: AclOperation,
        kind: AclResource,
        name: str,
        phase: ExactlyOnceSourceSupport = ExactlyOnceSourceSupport.DISABLED,
        *,
        blocker: bool = True,
    ) -> AclNeed:
        return AclNeed(AclClient.WORKER, None, operation, kind, name, phase, blocker)

    yield need(AclOperation.READ, AclResource.GROUP, worker.group_id)
    topics = (
        worker.config_storage_topic,
        worker.offset_storage_topic,
        worker.status_storage_topic,
    )
    for topic in topics:
        yield need(AclOperation.READ, AclResource.TOPIC, topic)
        yield need(AclOperation.WRITE, AclResource.TOPIC, topic)
        yield need(AclOperation.DESCRIBE_CONFIGS, AclResource.TOPIC, topic, blocker=False)
    yield need(
        AclOperation.WRITE,
        AclResource.TRANSACTIONAL_ID,
        worker.leader_transactional_id,
        ExactlyOnceSourceSupport.PREPARING,
    )


def connector_needs(worker: DistributedConfig, facts: ConnectorAclFacts) -> Iterator[AclNeed]:
    """Yield the needs of one connector's clients, of all phases."""
    if facts.type == "sink":
        yield from _sink_needs(worker, facts)
    else:
        yield from _source_needs(worker, facts)


def client_config(
    worker: DistributedConfig, client: AclClient, config: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    """Return the Java configuration with which a client connects.

    Raises ConfigException for an override that the worker's policy forbids.
    """
    client_id = f"{worker.group_id}-acl-probe"
    match client:
        case AclClient.WORKER:
            return client_configs.shared_admin(worker).java_config
        case AclClient.PRODUCER:
            return client_configs.connector_producer(worker, config, client_id).java_config
        case AclClient.CONSUMER:
            return client_configs.sink_consumer(worker, "", config, client_id).java_config
        case AclClient.ADMIN:
            return client_configs.connector_admin(worker, config, client_id).java_config


def refers_to_secrets(config: Mapping[str, str | None]) -> bool:
    """Whether values stand elsewhere: only child processes may look them up."""
    return any("${" in (value or "") for value in config.values())


def _source_needs(worker: DistributedConfig, facts: ConnectorAclFacts) -> Iterator[AclNeed]:
    config = facts.config
    topics = set(facts.topics)
    if (topic := config.get("topic")) and not config.get("transforms"):
        topics.add(topic)
    for target in sorted(topics):
        yield _need(facts, AclClient.PRODUCER, AclOperation.WRITE, AclResource.TOPIC, target)
        if worker.topic_creation_enable and uses_topic_creation(config):
            yield _need(facts, AclClient.ADMIN, AclOperation.DESCRIBE, AclResource.TOPIC, target)
    own = config.get("offsets.storage.topic")
    since = ExactlyOnceSourceSupport.DISABLED if own else ExactlyOnceSourceSupport.ENABLED
    offsets = own or worker.offset_storage_topic
    for client, operation in (
        (AclClient.PRODUCER, AclOperation.WRITE),
        (AclClient.CONSUMER, AclOperation.READ),
        (AclClient.ADMIN, AclOperation.DESCRIBE),
    ):
        yield _need(facts, client, operation, AclResource.TOPIC, offsets)._replace(phase=since)
    yield from _id_needs(worker, facts)
    alter_id = f"{worker.group_id}-{facts.name}"
    yield _id_need(facts, AclClient.PRODUCER, alter_id, blocker=False)


def _id_needs(worker: DistributedConfig, facts: ConnectorAclFacts) -> Iterator[AclNeed]:
    text = facts.config.get("tasks.max") or "1"
    tasks_max = int(text) if text.strip().isdecimal() else 1
    count = max(tasks_max, facts.tasks, facts.fenced_tasks)
    for transactional_id in task_transactional_ids(worker.group_id, facts.name, count):
        for client in (AclClient.PRODUCER, AclClient.ADMIN):
            yield _id_need(
                facts,
                client,
                transactional_id,
                # One task before and after a change needs no fencing.
                blocker=client is AclClient.PRODUCER or count > 1,
            )


def _sink_needs(worker: DistributedConfig, facts: ConnectorAclFacts) -> Iterator[AclNeed]:
    config = facts.config
    group = client_configs.sink_group_id(worker, facts.name, config)
    yield _need(facts, AclClient.CONSUMER, AclOperation.READ, AclResource.GROUP, group)
    for operation in (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.DELETE):
        need = _need(facts, AclClient.ADMIN, operation, AclResource.GROUP, group)
        yield need._replace(blocker=False)
    listed = {name.strip() for name in (config.get("topics") or "").split(",") if name.strip()}
    for topic in sorted(listed | set(facts.topics)):
        yield _need(facts, AclClient.CONSUMER, AclOperation.READ, AclResource.TOPIC, topic)
    if dead_letters := config.get(_DEAD_LETTER_TOPIC):
        kind = AclResource.TOPIC
        need = _need(facts, AclClient.PRODUCER, AclOperation.WRITE, kind, dead_letters)
        yield need._replace(blocker=False)
        yield _need(facts, AclClient.ADMIN, AclOperation.DESCRIBE, kind, dead_letters)


def _id_need(
    facts: ConnectorAclFacts, client: AclClient, transactional_id: str, *, blocker: bool
) -> AclNeed:
    kind, since = AclResource.TRANSACTIONAL_ID, ExactlyOnceSourceSupport.ENABLED
    need = _need(facts, client, AclOperation.WRITE, kind, transactional_id)
    return need._replace(phase=since, blocker=blocker)


def _need(
    facts: ConnectorAclFacts,
    client: AclClient,
    operation: AclOperation,
    kind: AclResource,
    name: str,
) -> AclNeed:
    since = ExactlyOnceSourceSupport.DISABLED
    return AclNeed(client, facts.name, operation, kind, name, since)
