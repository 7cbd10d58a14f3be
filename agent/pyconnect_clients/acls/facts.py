"""The facts that determine the needs of a Connect cluster: workers, connectors, clients. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyconnect_clients.acls.model import Role
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC, Phase, leader_transactional_id

Config = Mapping[str, str | None]

SECURITY_KEYS = ("security.protocol", "sasl.mechanism", "sasl.jaas.config")
_KEYS = ("bootstrap.servers", *SECURITY_KEYS, "group.id")


def client_layers(
    role: Role, worker: Config, connector: Config
) -> dict[str, tuple[str, str | None]]:
    """Return the worker's keys for one kind of connectors' clients, and the connector's overrides.

    By the client's own key: the key as it is written, and its value.
    """
    return {
        key.removeprefix(prefix): (key, value)
        for config, prefix in ((worker, f"{role.value}."), (connector, f"{role.value}.override."))
        for key, value in config.items()
        if key.startswith(prefix)
    }


def client_config(role: Role, worker: Config, connector: Config) -> dict[str, str | None]:
    """Return the keys that determine cluster and principal of a connector's client; no others.

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
    """Return addresses as a set: their order does not matter."""
    return frozenset(part.strip() for part in (servers or "").split(",") if part.strip())


_TOPIC_KEYS = ("topic", "offsets.storage.topic", DEAD_LETTER_TOPIC)
JOURNAL_TOPIC_KEY = "agent.journal.topic"
SHARED_TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """One worker; `name` is its URL or its file.

    `properties`: as in worker.properties; secrets may be masked. `principals`: as the worker
    reported them, of its own clients and of connectors' clients without overrides. `is_agent`:
    whether it is a pyconnect agent, which reads the workers' offsets topic for its connectors.
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
        """Empty when it is not known."""
        return self.properties.get("group.id") or ""

    @property
    def leader_transactional_id(self) -> str:
        """The transactional id with which it writes to the config topic as leader."""
        return leader_transactional_id(self.group_id, self.properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFacts:
    """One connector.

    `tasks`: their present number. `fenced_tasks`: the number in the last task count record, None
    without one. `topics`: the known topics that it writes to or reads from.
    """

    name: str
    type: str
    config: Config
    tasks: int = 0
    fenced_tasks: int | None = None
    topics: tuple[str, ...] = ()


class Named(NamedTuple):
    """The owner of a principal that the user gave: a connector or worker; `owner` None: all."""

    owner: str | None
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A Connect cluster.

    `existing_topics`: by bootstrap servers as in `Need.servers` (empty: the workers' own cluster);
    an absent cluster was not asked. `old_brokers`: a version before 2.8. `tool`: the principal of
    this command; None: unknown. `principals`: as the user gave them; they win over all others.
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
        """Return the principal that the user gave."""
        return self.principals.get(Named(owner, role)) or self.principals.get(Named(None, role))
