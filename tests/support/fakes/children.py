"""A listener that remembers what children reported, and an offset store in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State
from pyconnect_agent.core.reporting import Reported


@dataclass
class RecordingListener:
    """Implements `children.ports.ChildListener`."""

    tasks: dict[ConnectorTaskId, list[Reported]] = field(default_factory=dict)
    connectors: dict[str, list[Reported]] = field(default_factory=dict)
    reconfigurations: list[str] = field(default_factory=list)
    topics: list[tuple[ConnectorTaskId, str]] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    expired_leases: int = 0
    starts_asked: list[tuple[ConnectorTaskId, int]] = field(default_factory=list)

    def reported(self, item: Instance, report: Reported) -> None:
        if isinstance(item, ConnectorTaskId):
            self.tasks.setdefault(item, []).append(report)
        else:
            self.connectors.setdefault(item, []).append(report)

    def task_reconfiguration_requested(self, connector: str) -> None:
        self.reconfigurations.append(connector)

    def task_start_asked(self, task_id: ConnectorTaskId, request_id: int) -> None:
        self.starts_asked.append((task_id, request_id))

    def topic_used(self, task_id: ConnectorTaskId, topic: str) -> None:
        self.topics.append((task_id, topic))

    def config_ttl_expired(self, connector: str) -> None:
        self.expired.append(connector)

    def lease_expired(self) -> None:
        self.expired_leases += 1

    def task_states(self, task_id: ConnectorTaskId) -> list[State]:
        """States of one task in the order they came."""
        return [reported.state for reported in self.tasks.get(task_id, [])]

    def connector_states(self, connector: str) -> list[State]:
        """States of one connector in the order they came."""
        return [reported.state for reported in self.connectors.get(connector, [])]

    def task_trace(self, task_id: ConnectorTaskId) -> str:
        """The trace of the last state, empty without one."""
        return self.tasks[task_id][-1].trace or ""

    def connector_trace(self, connector: str) -> str:
        """The trace of the last state, empty without one."""
        return self.connectors[connector][-1].trace or ""


class MemoryOffsetStore:
    """Implements `stores.ports.OffsetStore`; `failure` is raised by reads and writes when set."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.failure: Exception | None = None

    def start(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        if self.failure is not None:
            raise self.failure
        return {key: self.entries[key] for key in keys if key in self.entries}

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        if self.failure is not None:
            raise self.failure
        for key, value in entries.items():
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = value

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        return {key: (key,) if key in self.entries else () for key in keys}

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        return dict(self.entries)
