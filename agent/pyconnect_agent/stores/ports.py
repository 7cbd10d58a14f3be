"""What the herder and the rooms of the children need of the stores.

Distributed mode backs them with compacted topics, standalone mode with memory and a file.
`start`, `stop`, `refresh` and every write block: call them from an executor thread, never from the
event loop. Reads return immutable snapshots and never block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import (
    ConfigSnapshot,
    ConnectorConfig,
    SessionKey,
)
from pyconnect_agent.core.internal_topics.configlog import (
    ConfigChange,
    ConnectorConfigRemoved,
    ConnectorConfigUpdated,
    LoggerLevelUpdated,
    RestartRequested,
    SessionKeyUpdated,
    TargetStateChanged,
    TaskConfigsUpdated,
)
from pyconnect_agent.core.reporting import Status

__all__ = [
    "ConfigChange",
    "ConfigStore",
    "ConnectorConfigRemoved",
    "ConnectorConfigUpdated",
    "LoggerLevelUpdated",
    "OffsetStore",
    "RestartRequested",
    "SessionKeyUpdated",
    "StatusStore",
    "TargetStateChanged",
    "TaskConfigsUpdated",
]


class ConfigStore(Protocol):
    def start(self, on_change: Callable[[ConfigSnapshot, tuple[ConfigChange, ...]], None]) -> None:
        """Create or check the topic, read it to its end, then tail it.

        `on_change` is called on the tailing thread with changes and the snapshot right after them,
        before `snapshot()` shows it.
        """
        ...

    def stop(self) -> None: ...
    def snapshot(self) -> ConfigSnapshot: ...

    def refresh(self, timeout_ms: int) -> None:
        """Read to the end as of now; RetriableKafkaError on timeout."""
        ...

    def claim_write_privileges(self) -> None: ...
    def relinquish_write_privileges(self) -> None: ...

    def put_connector_config(
        self, connector: str, config: ConnectorConfig, target_state: TargetState | None
    ) -> None: ...
    def remove_connector_config(self, connector: str) -> None: ...
    def put_task_configs(self, connector: str, configs: Sequence[ConnectorConfig]) -> None: ...
    def put_target_state(self, connector: str, target_state: TargetState) -> None: ...
    def put_session_key(self, session_key: SessionKey) -> None: ...
    def put_restart_request(
        self, connector: str, *, only_failed: bool, include_tasks: bool
    ) -> None: ...
    def put_task_count_record(self, connector: str, task_count: int) -> None: ...
    def put_logger_level(self, namespace: str, level: str) -> None: ...


class StatusStore(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...

    def flush(self, timeout_ms: int) -> None:
        """Wait for outstanding sends."""
        ...

    def put_connector(self, connector: str, status: Status, *, safe: bool = False) -> None:
        """Send without waiting. `safe`: only if no other worker wrote since (Kafka's putSafe)."""
        ...

    def put_task(self, task_id: ConnectorTaskId, status: Status, *, safe: bool = False) -> None: ...
    def delete_connector(self, connector: str) -> None: ...
    def delete_task(self, task_id: ConnectorTaskId) -> None: ...
    def connector(self, connector: str) -> Status | None: ...
    def task(self, task_id: ConnectorTaskId) -> Status | None: ...
    def tasks(self, connector: str) -> Mapping[int, Status]: ...
    def connectors(self) -> frozenset[str]: ...
    def put_topic(self, connector: str, task: int, topic: str, discovered_ms: int) -> None: ...
    def delete_topic(self, connector: str, topic: str) -> None: ...
    def topics(self, connector: str) -> tuple[str, ...]: ...
    def has_topic(self, connector: str, topic: str) -> bool: ...


class OffsetStore(Protocol):
    """Raw offset entries of source connectors: key and value are the bytes of the topic."""

    def start(self) -> None: ...
    def stop(self) -> None: ...

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        """Read to the end first, then look up.

        A key of equal content but other member order is found too.
        RetriableKafkaError at the deadline.
        """
        ...

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        """Write and wait for the acknowledgement of all; None is a tombstone."""
        ...

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        """Find the live raw keys of equal content, newest first, without reading on."""
        ...

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        """Every live raw entry of a connector."""
        ...
