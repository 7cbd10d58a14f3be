"""Offset stores in memory: what a task's process reads, and what it is told to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyconnect_agent.core.log_record import LogRecord

OFFSETS = "offsets"

Entries = Mapping[bytes, bytes | None]


def as_given(entries: Entries) -> list[LogRecord]:
    return [LogRecord(key, value) for key, value in entries.items()]


@dataclass
class FakeOffsets:
    """Implements `tasks.source_offset_stores.OffsetStores`; `entries` are those committed."""

    topic: str = OFFSETS
    prepared: Callable[[Entries], Sequence[LogRecord]] = as_given
    entries: list[Entries] = field(default_factory=list)

    def start(self, give_up: Callable[[], bool]) -> bool:
        return not give_up()

    def read(self, keys: tuple[bytes, ...], timeout_ms: int) -> Entries:
        return {}

    def write(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        self.committed(entries)

    def prepare(self, entries: Entries) -> Sequence[LogRecord]:
        return self.prepared(entries)

    def committed(self, entries: Entries) -> None:
        self.entries.append(entries)

    def close(self) -> None:
        """Nothing is open."""
