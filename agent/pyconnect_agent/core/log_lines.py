"""The last lines of each connector's and task's log in bounded memory; levels of loggers.

No Kafka counterpart. Each line is a value; `LineRings` is the one mutable owner, and its caller
holds the lock. Lines stay when a process ends, when its successor starts, and when another worker
gets the work, until newer ones need the room.

Levels change at run time (KIP-495, KIP-976; Kafka's ``Loggers`` and the rules of
``LoggingResource``). A logger is known when the log configuration names it or a level was set for
it; the root logger is always known, as `root`. Names form no tree here except for inheriting a
level: a change affects every known logger whose name starts with the text of the given one.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import Any

from pyconnect_agent.core.errors import InternalError, NotFoundError
from pyconnect_agent.core.reporting import LoggerLevel

ROOT = "root"
LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


@dataclass(frozen=True, slots=True)
class LevelChange:
    """The known loggers after a change, and the sorted names of those whose level changed."""

    loggers: Mapping[str, LoggerLevel]
    changed: tuple[str, ...]


def parse_level(text: str) -> str:
    """Return a level's name in upper case.

    Raises InternalError for an empty text and NotFoundError for anything else: both are Apache's.
    """
    if not text:
        raise InternalError("Illegal null or empty Level name.")
    level = known_level(text)
    if level is None:
        raise NotFoundError(f"invalid log level '{text}'.")
    return level


def known_level(text: str) -> str | None:
    """Return a level's name in upper case, None when there is no such level."""
    level = text.strip().upper()
    return level if level in LEVELS else None


def logger_name(text: str) -> str:
    """Return the name under which a logger is known; only `root` ignores case."""
    return ROOT if text.lower() == ROOT else text


def initial_loggers(levels: Mapping[str, str]) -> dict[str, LoggerLevel]:
    """Return the loggers of a log configuration; the root logger's level is INFO unless given."""
    return {
        name: LoggerLevel(level=level, last_modified_ms=None)
        for name, level in sorted({ROOT: "INFO", **levels}.items())
    }


def effective_level(loggers: Mapping[str, LoggerLevel], name: str) -> str:
    """Return the level of the logger or of its nearest known ancestor."""
    while name not in loggers:
        name = name.rpartition(".")[0] or ROOT
    return loggers[name].level


def set_level(
    loggers: Mapping[str, LoggerLevel], namespace: str, level: str, now_ms: int
) -> LevelChange:
    """Set the level of every known logger whose name starts with `namespace`.

    A new `namespace` becomes known. Loggers that have the level already are not touched.
    """
    name = logger_name(namespace)
    result = dict(loggers)
    if name not in result:
        inherited = effective_level(loggers, name)
        result[name] = LoggerLevel(level=inherited, last_modified_ms=None)
    affected = result if name == ROOT else [known for known in result if known.startswith(name)]
    changed = tuple(sorted(known for known in affected if result[known].level != level))
    for known in changed:
        result[known] = LoggerLevel(level=level, last_modified_ms=now_ms)
    return LevelChange(dict(sorted(result.items())), changed)


Item = tuple[str, int | None]
"""Connector name and task number; the number is None for the connector itself."""

OVERHEAD_BYTES = 200
"""The bytes that a line counts beside its text."""
TOTAL_BYTES = 64 << 20
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line. `number` counts all lines of a worker; `pid` None: the line is the worker's own."""

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
        """The bytes that the line counts."""
        return OVERHEAD_BYTES + len(self.text)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuestion:
    """A selection of a connector's lines: `task` None selects its own and those of all tasks."""

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
            # A line of an unknown level is always shown.
            and _RANKS.get(line.level, len(_RANKS)) >= _RANKS[self.level]
        )


class LineRings:
    """The last lines of each item. `item_bytes`: the limit of one item; 0 keeps nothing."""

    def __init__(self, item_bytes: int, total_bytes: int = TOTAL_BYTES) -> None:
        self._item_bytes = item_bytes
        self._total_bytes = total_bytes
        self._rings: OrderedDict[Item, deque[LogLine]] = OrderedDict()
        self._sizes: dict[Item, int] = {}
        self._size = 0

    def add(self, line: LogLine) -> None:
        """Keep a line; drop its item's oldest lines, then the items silent for longest."""
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
