"""The operations that workers, connectors and this command need, by phase. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyconnect_clients.acls.connector_needs import ConnectorNeeds, worker_profiles
from pyconnect_clients.acls.facts import (
    JOURNAL_TOPIC_KEY,
    SHARED_TOPICS,
    ClusterFacts,
    ConnectorFacts,
    WorkerFacts,
    worker_client_config,
)
from pyconnect_clients.acls.model import CLUSTER, Need, Resource, ResourceType, Role
from pyconnect_clients.acls.rules import RULES
from pyconnect_clients.connect_names import collisions
from pyconnect_clients.phases import Phase
from pyconnect_clients.security import ANONYMOUS, principal_of

TOOL = "pyconnect"
_TOPIC_RULES = {
    "config.storage.topic": ("W2r", "W2w"),
    "offset.storage.topic": ("W3r", "W3w"),
    "status.storage.topic": ("W4r", "W4w"),
    JOURNAL_TOPIC_KEY: ("W9r", "W9w"),
}


class Needs(NamedTuple):
    """All needs of a phase, in the order of their owners, and remarks."""

    needs: tuple[Need, ...]
    notes: tuple[str, ...]


def cluster_needs(facts: ClusterFacts, phase: Phase) -> Needs:
    """Return the needs of `phase` and of the phases before it."""
    needs: list[Need] = []
    notes: list[str] = []
    for worker in facts.workers:
        needs += _worker_needs(facts, worker)
    ids: dict[str, Sequence[str]] = {}
    profiles = worker_profiles(facts.workers)
    for connector in facts.connectors:
        own = ConnectorNeeds(facts, connector, profiles[0])
        needs += own.needs()
        notes += own.notes
        if len(profiles) > 1:
            needs += _needs_elsewhere(facts, connector, profiles)
        if connector.type != "sink":
            ids[connector.name] = own.transactional_ids
            notes += _unsecured(facts.workers[0], connector, own)
    needs += _tool_needs(facts)
    if phase is Phase.ENABLED:
        notes += (
            f"{collision}, which would fence each other; rename a connector"
            for collision in collisions(facts.workers[0].leader_transactional_id, ids)
        )
    wanted = tuple(need for need in needs if need.phase.rank <= phase.rank)
    return Needs(wanted, (*notes, *_unknown_principals(wanted)))


def _needs_elsewhere(
    facts: ClusterFacts, connector: ConnectorFacts, profiles: Sequence[WorkerFacts]
) -> Iterator[Need]:
    """Yield needs of a connector's clients on workers with another configuration than the first."""
    first, *others = profiles
    seen = {_grant(need) for need in ConnectorNeeds(facts, connector, first).needs()}
    for worker in others:
        for need in ConnectorNeeds(facts, connector, worker).needs():
            if _grant(need) not in seen:
                seen.add(_grant(need))
                yield need._replace(unasked=not worker.is_agent)


def _grant(need: Need) -> tuple[object, ...]:
    return need.rule.id, need.principal, need.resource, need.servers


def _worker_needs(facts: ClusterFacts, worker: WorkerFacts) -> Iterator[Need]:
    principal = (
        facts.named(worker.name, Role.WORKER)
        or worker.principals.get(Role.WORKER)
        or principal_of(worker_client_config(worker.properties))
    )

    def need(rule_id: str, kind: ResourceType, name: str) -> Need:
        rule = RULES[rule_id]
        return Need(
            rule=rule,
            owner=worker.name,
            principal=principal,
            resource=Resource(kind, name),
            phase=rule.first_phase,
            severity=rule.severity,
        )

    yield need("W1", ResourceType.GROUP, worker.group_id)
    existing = facts.existing_topics.get("")
    journal = (JOURNAL_TOPIC_KEY,) if worker.properties.get(JOURNAL_TOPIC_KEY) else ()
    for key in (*SHARED_TOPICS, *journal):
        topic = worker.properties.get(key) or ""
        for rule_id in _TOPIC_RULES[key]:
            yield need(rule_id, ResourceType.TOPIC, topic)
        if existing is not None and topic not in existing:
            yield need("W5", ResourceType.TOPIC, topic)
        yield need("W6", ResourceType.TOPIC, topic)
    yield need("W7", ResourceType.TRANSACTIONAL_ID, worker.leader_transactional_id)
    if facts.old_brokers:
        yield need("W8", *CLUSTER)


def _tool_needs(facts: ClusterFacts) -> Iterator[Need]:
    if facts.tool is None:
        return
    worker = facts.workers[0]
    group = worker.group_id
    rows = (
        ("T1", CLUSTER),
        ("T2", Resource(ResourceType.GROUP, group)),
        ("T3", Resource(ResourceType.TOPIC, worker.properties.get("config.storage.topic") or "")),
        ("T4", Resource(ResourceType.TRANSACTIONAL_ID, worker.leader_transactional_id)),
        ("T5", Resource(ResourceType.GROUP, f"pyconnect-upgrade-{group}")),
    )
    for rule_id, resource in rows:
        rule = RULES[rule_id]
        yield Need(
            rule=rule,
            owner=TOOL,
            principal=facts.tool,
            resource=resource,
            phase=rule.first_phase,
            severity=rule.severity,
        )


def _unsecured(worker: WorkerFacts, connector: ConnectorFacts, own: ConnectorNeeds) -> list[str]:
    secured = (worker.properties.get("security.protocol") or "PLAINTEXT").upper() != "PLAINTEXT"
    if not secured or own.principal(Role.PRODUCER) != ANONYMOUS:
        return []
    text = (
        f"{connector.name}: its producer has no security settings although the worker"
        " has some: producers use only the worker's producer.* properties"
    )
    return [text]


def _unknown_principals(needs: Iterable[Need]) -> list[str]:
    unknown = {(need.rule.role, need.owner) for need in needs if need.principal is None}
    return [
        f"{owner}: the principal of its {role.value} client is not known; give it"
        f" with --principal {owner}:{role.value}=User:NAME"
        for role, owner in sorted(unknown, key=lambda item: (item[1], item[0].value))
    ]
