"""Levels of loggers that change at run time (KIP-495, KIP-976).

Layer: core. Corresponds to Kafka Connect's ``Loggers`` and the level rules of ``LoggingResource``.
A logger is known when the log configuration names it or a level was set for it; the root logger
is always known, as `root`. Names form no tree here except for inheriting a level: a change
affects every known logger whose name starts with the text of the given one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.core.errors import InternalError, NotFoundError
from pyconnect_agent.core.reporting import LoggerLevel

ROOT = "root"
LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


@dataclass(frozen=True, slots=True)
class LevelChange:
    """The known loggers after a change, and the names of those whose level differs now, sorted."""

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
