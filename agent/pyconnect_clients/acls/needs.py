"""The operations that workers, connectors and this command need, from facts and a phase. Pure.

A connector's clients are configured by a worker's properties and its own overrides. Offsets topics
and transactional ids lie on the cluster that the connector's producer writes to.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from pyconnect_clients.acls.model import (
    CLUSTER,
    RULES,
    Need,
    NeedSeverity,
    Resource,
    ResourceType,
    Role,
)
from pyconnect_clients.connect_names import (
    DEAD_LETTER_TOPIC,
    Phase,
    collisions,
    leader_transactional_id,
    sink_group_id,
    source_transactional_ids,
    tasks_max,
)
from pyconnect_clients.security import ANONYMOUS, principal_of

Config = Mapping[str, str | None]

SECURITY_KEYS = ("security.protocol", "sasl.mechanism", "sasl.jaas.config")
_KEYS = ("bootstrap.servers", *SECURITY_KEYS, "group.id")


def client_layers(
    role: Role, worker: Config, connector: Config
) -> dict[str, tuple[str, str | None]]:
    """Return the worker's keys for one kind of connectors' clients, and the connector's overrides.

    The result maps the client's own key to the key as it is written, and to its value.
    """
    return {
        key.removeprefix(prefix): (key, value)
        for config, prefix in ((worker, f"{role.value}."), (connector, f"{role.value}.override."))
        for key, value in config.items()
        if key.startswith(prefix)
    }


def client_config(role: Role, worker: Config, connector: Config) -> dict[str, str | None]:
    """Return the keys that decide about cluster and principal of a connector's client.

    Producers and consumers take only `producer.*` or `consumer.*` and the addresses from the
    worker; admin clients also take all keys without a prefix.
    """
    unprefixed = _KEYS[:-1] if role is Role.ADMIN else _KEYS[:1]
    config = {key: worker[key] for key in unprefixed if key in worker}
    layers = client_layers(role, worker, connector)
    return config | {key: layers[key][1] for key in _KEYS if key in layers}


def overrides_security(role: Role, connector: Config) -> bool:
    """Return whether a connector overrides the credentials of one kind of client."""
    return any(f"{role.value}.override.{key}" in connector for key in SECURITY_KEYS)


def server_set(servers: str | None) -> frozenset[str]:
    """Return addresses as a set, because their order does not matter."""
    return frozenset(part.strip() for part in (servers or "").split(",") if part.strip())


_TOPIC_KEYS = ("topic", "offsets.storage.topic", DEAD_LETTER_TOPIC)
JOURNAL_TOPIC_KEY = "agent.journal.topic"
SHARED_TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """One worker; `name` is its URL or its file.

    `properties`: as in worker.properties; secrets may be masked. `principals`: as the worker
    reported them, for its own clients and for connectors' clients without overrides. `is_agent`:
    whether it is a pyconnect agent, which itself reads the workers' offsets topic.
    """

    name: str
    properties: Config
    principals: Mapping[Role, str] = field(default_factory=dict)
    is_agent: bool = False

    @property
    def phase(self) -> Phase:
        """The configured phase; an invalid value counts as disabled."""
        text = self.properties.get("exactly.once.source.support") or "disabled"
        return Phase.__members__.get(text.strip().upper(), Phase.DISABLED)

    @property
    def group_id(self) -> str:
        """The group's id, empty if it is not known."""
        return self.properties.get("group.id") or ""

    @property
    def leader_transactional_id(self) -> str:
        """The transactional id with which the worker writes to the config topic as leader."""
        return leader_transactional_id(self.group_id, self.properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFacts:
    """One connector.

    `tasks`: the present number of tasks. `fenced_tasks`: the number in the last task count record,
    None without one. `topics`: the known topics that it writes to or reads from.
    """

    name: str
    type: str
    config: Config
    tasks: int = 0
    fenced_tasks: int | None = None
    topics: tuple[str, ...] = ()


class Named(NamedTuple):
    """The owner of a principal that the user gave, a connector or worker; `owner` None: all."""

    owner: str | None
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A Connect cluster.

    `existing_topics`: by bootstrap servers as in `Need.servers` (empty: the workers' own cluster);
    a missing cluster was not asked. `old_brokers`: brokers before 2.8. `tool`: the principal of
    this command, None if unknown. `principals`: given by the user; they precede all others.
    """

    workers: tuple[WorkerFacts, ...]
    connectors: tuple[ConnectorFacts, ...] = ()
    existing_topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    old_brokers: bool = False
    tool: str | None = None
    principals: Mapping[Named, str] = field(default_factory=dict)

    def topic_names(self) -> frozenset[str]:
        """Return the names of topics from configurations and from the connectors' histories."""
        keys = (*SHARED_TOPICS, JOURNAL_TOPIC_KEY)
        names = {worker.properties.get(key) for worker in self.workers for key in keys}
        for connector in self.connectors:
            names |= {*connector.topics, *(connector.config.get(key) for key in _TOPIC_KEYS)}
        return frozenset(name for name in names if name)

    def named(self, owner: str, role: Role) -> str | None:
        """Return the principal that the user gave, None if there is none."""
        return self.principals.get(Named(owner, role)) or self.principals.get(Named(None, role))


class ConnectorNeeds:
    """The needs of one connector on one worker, and remarks about it."""

    def __init__(self, facts: ClusterFacts, connector: ConnectorFacts, worker: WorkerFacts) -> None:
        self._facts = facts
        self._connector = connector
        self._worker = worker
        self.notes: list[str] = []
        self._clients: dict[Role, tuple[str | None, str]] = {}
        """The principal of each client and, if it has a cluster of its own, the addresses."""
        for role in _CLIENTS:
            config = client_config(role, worker.properties, connector.config)
            servers = config.get("bootstrap.servers") or ""
            own = server_set(servers) != server_set(worker.properties.get("bootstrap.servers"))
            principal = facts.named(connector.name, role)
            if principal is None and not overrides_security(role, connector.config):
                principal = worker.principals.get(role)
            if principal is None:
                principal = principal_of(config)
            self._clients[role] = principal, servers if own else ""

    def needs(self) -> list[Need]:
        """Return all needs, also those of later phases."""
        if self._connector.type == "sink":
            return list(self._sink())
        name, clients = self._connector.name, self._clients
        if len({server_set(servers) for _, servers in clients.values()}) > 1:
            self.notes.append(
                f"{name}: its producer, consumer and admin client have different clusters:"
                " fencing and offsets would go to another cluster than its records"
            )
        return list(self._source())

    @cached_property
    def transactional_ids(self) -> tuple[str, ...]:
        """The id of our agents' changes of offsets, then the ids of tasks.

        Tasks are the running ones, those that may be configured, and those to fence.
        """
        connector = self._connector
        count = max(connector.tasks, tasks_max(connector.config), connector.fenced_tasks or 0)
        return source_transactional_ids(self._worker.group_id, connector.name, count)

    @property
    def offsets_topic(self) -> str:
        """The topic of the connector's offsets: its own, or with exactly-once the worker's."""
        own = self._connector.config.get("offsets.storage.topic")
        return own or self._worker.properties.get("offset.storage.topic") or ""

    def principal(self, role: Role) -> str | None:
        """Return the principal of a client, None if it is unknown."""
        return self._clients[role][0]

    def _source(self) -> Iterator[Need]:
        connector = self._connector
        topics = set(connector.topics)
        configured = connector.config.get("topic")
        if configured and not connector.config.get("transforms"):
            topics.add(configured)
        if not topics:
            self.notes.append(
                f"{connector.name}: its target topics are not known yet; give them with"
                f" --topic {connector.name}=TOPIC"
            )
        creates = any(key.startswith("topic.creation.") for key in connector.config)
        enabled = self._worker.properties.get("topic.creation.enable") or "true"
        creates = creates and enabled.strip().lower() != "false"
        for topic in sorted(topics):
            yield self._need("S1", ResourceType.TOPIC, topic)
            if creates:
                yield self._need("S2", ResourceType.TOPIC, topic)
            if self._missing(topic, Role.PRODUCER):
                yield self._need("S3" if creates else "S4", ResourceType.TOPIC, topic)
        own = bool(connector.config.get("offsets.storage.topic"))
        phase = Phase.DISABLED if own else Phase.ENABLED
        rules = ["O1", "O2", "O3", "O5"]
        if own and self._missing(self.offsets_topic, Role.PRODUCER):
            rules.append("O4")
        # Agents read the workers' topic themselves, so that connectors' clients only write to it.
        unread = not own and all(worker.is_agent for worker in self._facts.workers)
        for rule in rules:
            severity = NeedSeverity.WARNING if unread and rule in {"O2", "O3"} else None
            yield self._need(
                rule, ResourceType.TOPIC, self.offsets_topic, phase=phase, severity=severity
            )
        yield self._need("O6", ResourceType.GROUP, self._group(), phase=phase)
        altering, *tasks = self.transactional_ids
        fencing = NeedSeverity.BLOCKER if len(tasks) > 1 else NeedSeverity.WARNING
        for transactional_id in tasks:
            yield self._need("X1", ResourceType.TRANSACTIONAL_ID, transactional_id)
            yield self._need(
                "X2", ResourceType.TRANSACTIONAL_ID, transactional_id, severity=fencing
            )
        yield self._need("X3", ResourceType.TRANSACTIONAL_ID, f"{altering}-0")
        yield self._need("X4", ResourceType.TRANSACTIONAL_ID, altering)
        if self._facts.old_brokers:
            for rule in ("X5p", "X5a"):
                yield self._need(rule, *CLUSTER)

    def _sink(self) -> Iterator[Need]:
        group = self._group()
        yield self._need("K1", ResourceType.GROUP, group)
        for rule in ("K5", "K6", "K7"):
            yield self._need(rule, ResourceType.GROUP, group)
        config = self._connector.config
        named = {name.strip() for name in (config.get("topics") or "").split(",") if name.strip()}
        listed = named.union(self._connector.topics)
        if pattern := config.get("topics.regex"):
            existing = self._existing(Role.CONSUMER)
            try:
                matches = re.compile(pattern).fullmatch
                listed |= {topic for topic in existing or () if matches(topic)}
            except re.error:
                existing = None
            if existing is None:
                self.notes.append(
                    f"{self._connector.name}: the topics that match topics.regex={pattern} are"
                    " not known; they need the same grants as topics=…"
                )
        for topic in sorted(listed):
            yield self._need("K2", ResourceType.TOPIC, topic)
            yield self._need("K6", ResourceType.TOPIC, topic)
        if dead_letters := self._connector.config.get(DEAD_LETTER_TOPIC):
            yield self._need("K3", ResourceType.TOPIC, dead_letters)
            yield self._need("K4d", ResourceType.TOPIC, dead_letters)
            if self._missing(dead_letters, Role.ADMIN):
                yield self._need("K4c", ResourceType.TOPIC, dead_letters)

    def _group(self) -> str:
        connector = self._connector
        return sink_group_id(connector.name, connector.config, self._worker.properties)

    def _existing(self, role: Role) -> frozenset[str] | None:
        return self._facts.existing_topics.get(self._clients[role][1])

    def _missing(self, topic: str, role: Role) -> bool:
        existing = self._existing(role)
        return existing is not None and topic not in existing

    def _need(
        self,
        rule_id: str,
        kind: ResourceType,
        name: str,
        *,
        phase: Phase | None = None,
        severity: NeedSeverity | None = None,
    ) -> Need:
        principal, servers = self._clients[RULES[rule_id].role]
        need = _need(rule_id, self._connector.name, principal, Resource(kind, name))
        return need._replace(
            phase=phase or need.phase, severity=severity or need.severity, servers=servers
        )


def _need(rule_id: str, owner: str, principal: str | None, resource: Resource) -> Need:
    rule = RULES[rule_id]
    return Need(
        rule=rule,
        owner=owner,
        principal=principal,
        resource=resource,
        phase=rule.first_phase,
        severity=rule.severity,
    )


_CLIENTS = (Role.PRODUCER, Role.CONSUMER, Role.ADMIN)

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
    # Each worker may run a connector's tasks, and fence them as leader.
    found: dict[object, WorkerFacts] = {}
    for worker in facts.workers:
        clients = tuple(
            (worker.principals.get(role), *client_config(role, worker.properties, {}).items())
            for role in _CLIENTS
        )
        found.setdefault(clients, worker)
    profiles = list(found.values())
    for connector in facts.connectors:
        own = ConnectorNeeds(facts, connector, profiles[0])
        needs += own.needs()
        notes += own.notes
        if len(profiles) > 1:
            needs += _needs_elsewhere(facts, connector, profiles)
        if connector.type != "sink":
            ids[connector.name] = own.transactional_ids
            protocol = facts.workers[0].properties.get("security.protocol") or "PLAINTEXT"
            if protocol.upper() != "PLAINTEXT" and own.principal(Role.PRODUCER) == ANONYMOUS:
                notes.append(
                    f"{connector.name}: its producer has no security settings although the worker"
                    " has some: producers use only the worker's producer.* properties"
                )
    needs += _tool_needs(facts)
    if phase is Phase.ENABLED:
        notes += (
            f"{collision}, which would fence each other; rename a connector"
            for collision in collisions(facts.workers[0].leader_transactional_id, ids)
        )
    wanted = tuple(need for need in needs if need.phase.rank <= phase.rank)
    unknown = {(need.rule.role, need.owner) for need in wanted if need.principal is None}
    return Needs(
        wanted,
        (
            *notes,
            *[
                f"{owner}: the principal of its {role.value} client is not known; give it"
                f" with --principal {owner}:{role.value}=User:NAME"
                for role, owner in sorted(unknown, key=lambda item: (item[1], item[0].value))
            ],
        ),
    )


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
        or principal_of(worker.properties)
    )

    def need(rule_id: str, kind: ResourceType, name: str) -> Need:
        return _need(rule_id, worker.name, principal, Resource(kind, name))

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
        yield _need(rule_id, TOOL, facts.tool, resource)
