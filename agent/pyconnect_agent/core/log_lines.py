"""The last lines of each connector's and task's log, in bounded memory.

Layer: core. No Kafka counterpart. A value per line; `LineRings` is the one mutable owner, and its
caller holds the lock. Lines stay when a process ends, when its successor starts, and when another
worker gets the work, until newer ones need the room.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import Any

from pyconnect_agent.core.loggers import LEVELS

Item = tuple[str, int | None]
"""Connector and task number; None is the connector itself."""

OVERHEAD_BYTES = 200
"""Of a line, besides its text."""
TOTAL_BYTES = 64 << 20
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """`number` counts all lines of a worker; `pid` None: the worker's own line about it."""

    number: int
    time_ms: int
    level: str
    logger: str
    connector: str
    task: int | None
    pid: int | None
    text: str

    @property
    def size(self) -> int:
        """Bytes that it is counted with."""
        return OVERHEAD_BYTES + len(self.text)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuestion:
    """Which lines of a connector: those of `task` (None: of all, and its own), from `level` on."""

    connector: str
    task: int | None = None
    level: str = "ALL"
    since_ms: int = 0
    after: int = 0
    limit: int = 1_000

    def selects(self, line: LogLine) -> bool:
        return (
            line.number > self.after
            and line.time_ms >= self.since_ms
            # A line of an unknown level is shown rather than lost.
            and _RANKS.get(line.level, len(_RANKS)) >= _RANKS[self.level]
        )


class LineRings:
    """`item_bytes`: of one connector instance or task; 0 keeps nothing."""

    def __init__(self, item_bytes: int, total_bytes: int = TOTAL_BYTES) -> None:
        self._item_bytes = item_bytes
        self._total_bytes = total_bytes
        self._rings: OrderedDict[Item, deque[LogLine]] = OrderedDict()
        self._sizes: dict[Item, int] = {}
        self._size = 0

    def add(self, line: LogLine) -> None:
        """Keep a line; the oldest of its item, then those of the quietest items, make room."""
        if self._item_bytes == 0:
            return
        item = (line.connector, line.task)
        ring = self._rings.setdefault(item, deque())
        self._rings.move_to_end(item)
        ring.append(line)
        self._grow(item, line.size)
        while self._sizes[item] > self._item_bytes and len(ring) > 1:
            self._grow(item, -ring.popleft().size)
        while self._size > self._total_bytes and len(self._rings) > 1:
            quietest = next(iter(self._rings))
            del self._rings[quietest]
            self._size -= self._sizes.pop(quietest)

    def find(self, question: LogQuestion) -> list[LogLine]:
        """Return the newest lines that a question selects, in order."""
        rings = (
            ring
            for (connector, task), ring in self._rings.items()
            if connector == question.connector and question.task in (None, task)
        )
        ordered = merge(*rings, key=attrgetter("number"))
        return list(deque(filter(question.selects, ordered), maxlen=question.limit))

    def _grow(self, item: Item, size: int) -> None:
        self._sizes[item] = self._sizes.get(item, 0) + size
        self._size += size
