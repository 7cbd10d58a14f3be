"""An immutable view of the config topic.

Kafka: ClusterConfigState.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState

ConnectorConfig = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """The key that signs requests between workers (KIP-507). `created_ms`: epoch milliseconds."""

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSnapshot:
    """State of the config topic up to `offset`.

    `offset` is the offset of the last decoded record + 1, -1 before any. All maps are keyed by
    connector name unless said otherwise; readers must not change them. Configs are raw:
    `${provider:…}` references are unresolved.
    """

    offset: int = -1
    session_key: SessionKey | None = None
    connector_configs: Mapping[str, ConnectorConfig] = field(default_factory=dict)
    target_states: Mapping[str, TargetState] = field(default_factory=dict)
    task_counts: Mapping[str, int] = field(default_factory=dict)
    task_configs: Mapping[ConnectorTaskId, ConnectorConfig] = field(default_factory=dict)
    inconsistent: frozenset[str] = frozenset()
    task_count_records: Mapping[str, int] = field(default_factory=dict)
    pending_fencing: frozenset[str] = frozenset()
    task_config_generations: Mapping[str, int] = field(default_factory=dict)
    applied_connector_configs: Mapping[str, ConnectorConfig] = field(default_factory=dict)

    def contains(self, connector: str) -> bool:
        return connector in self.connector_configs

    def connectors(self) -> tuple[str, ...]:
        """Return all names of configured connectors, sorted."""
        return tuple(sorted(self.connector_configs))

    def connector_config(self, connector: str) -> ConnectorConfig | None:
        return self.connector_configs.get(connector)

    def target_state(self, connector: str) -> TargetState | None:
        return self.target_states.get(connector)

    def task_count(self, connector: str) -> int:
        """Return the tasks of the last commit, also for an inconsistent connector; 0 when none."""
        return self.task_counts.get(connector, 0)

    def tasks(self, connector: str) -> tuple[ConnectorTaskId, ...]:
        """Return the usable tasks in order; empty for an inconsistent connector."""
        if connector in self.inconsistent:
            return ()
        return tuple(ConnectorTaskId(connector, n) for n in range(self.task_count(connector)))

    def task_config(self, task_id: ConnectorTaskId) -> ConnectorConfig | None:
        return self.task_configs.get(task_id)

    def applied_config(self, connector: str) -> ConnectorConfig | None:
        """Return the connector config from which the current task configs were generated."""
        return self.applied_connector_configs.get(connector)
