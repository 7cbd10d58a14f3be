"""Offset stores in memory, with the offsets that a task's process reads and writes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.internal_topics import LogRecord

OFFSETS = "offsets"

Entries = Mapping[bytes, bytes | None]


def as_given(entries: Entries) -> list[LogRecord]:
    return [LogRecord(key, value) for key, value in entries.items()]


@dataclass
class FakeOffsets:
    """A store as `tasks.source.offsets.OffsetStores`; `entries` are the committed ones."""

    topic: str = OFFSETS
    prepared: Callable[[Entries], Sequence[LogRecord]] = as_given
    entries: list[Entries] = field(default_factory=list)

    def start(self, give_up: Callable[[], bool]) -> bool:
        return not give_up()

    def read(self, keys: tuple[bytes, ...], timeout_ms: int) -> Entries:
        return {}

    def connector_entries(self, connector: str, timeout_ms: int) -> dict[bytes, bytes]:
        return {}

    def write(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        self.committed(entries)

    def prepare(self, entries: Entries) -> Sequence[LogRecord]:
        return self.prepared(entries)

    def committed(self, entries: Entries) -> None:
        self.entries.append(entries)

    def close(self) -> None:
        """Do nothing."""


@dataclass
class FakeWorkerStore:
    """A store like `Control`; `writes` are the given entries, `failures` end the next calls."""

    entries: dict[bytes, bytes] = field(default_factory=dict)
    used: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    writes: list[dict[bytes, bytes | None]] = field(default_factory=list)
    asked: list[tuple[bytes, ...]] = field(default_factory=list)
    failures: list[AgentError] = field(default_factory=list)
    reads: int = 0

    def read_offsets(self, keys: tuple[bytes, ...], timeout_ms: int) -> Entries:
        self.reads += 1
        self._fail()
        return {key: self.entries[key] for key in keys if key in self.entries}

    def write_offsets(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        self._fail()
        self.writes.append(entries)

    def offset_keys_in_use(
        self, keys: tuple[bytes, ...], timeout_ms: int
    ) -> Mapping[bytes, tuple[bytes, ...]]:
        self.asked.append(keys)
        return {key: self.used.get(key, ()) for key in keys}

    def connector_offsets(self, connector: str, timeout_ms: int) -> Mapping[bytes, bytes]:
        return {
            key: value for key, value in self.entries.items() if json.loads(key)[0] == connector
        }

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
