"""The facts that determine the needs of a Connect cluster. Pure values, gathered by `gather`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyconnect_clients.acls.model import Role
from pyconnect_clients.acls.principals import Config
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC, leader_transactional_id
from pyconnect_clients.phases import Phase

_TOPIC_KEYS = ("topic", "offsets.storage.topic", DEAD_LETTER_TOPIC)
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
        names = {worker.properties.get(key) for worker in self.workers for key in SHARED_TOPICS}
        for connector in self.connectors:
            names |= {*connector.topics, *(connector.config.get(key) for key in _TOPIC_KEYS)}
        return frozenset(name for name in names if name)

    def named(self, owner: str, role: Role) -> str | None:
        """Return the principal that the user gave."""
        return self.principals.get(Named(owner, role)) or self.principals.get(Named(None, role))
