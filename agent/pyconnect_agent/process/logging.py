"""Logs of the worker and of its children: one event, one line; levels that change at run time.

Layer: edge; any process of the agent may use it. Corresponds to Kafka Connect's Log4j
configuration, its `connector.context` (KIP-449) and `Loggers` (KIP-495).

Modules log by `logging.getLogger(__name__)` with a constant text and fields in `extra`. The scope
(`worker`, `connector`, `task`) is bound once by `bind_scope` and is added to
every record of that thread, task or process.

Built on the standard library alone: structlog brings asyncio and rich with it, 17 MiB in every
child process. Thread-safe.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from enum import Enum
from typing import TextIO

from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.log_lines import ROOT, effective_level, initial_loggers, set_level
from pyconnect_agent.core.reporting import LoggerLevel

TRACE = 5
_NUMBERS = {
    "ALL": 1,
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_NAMES = {TRACE: "TRACE", logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}
# Libraries whose events this worker logs itself.
_QUIET_LIBRARIES = {"uvicorn": "WARN", "httpx": "WARN", "httpcore": "WARN", "kafka": "WARN"}
_REPEATING = ("kafka.", "asyncio")
"""Libraries that write the same line again and again."""
REPEAT_AFTER_S = 60.0
_KINDS = 1_000
_DIGITS = re.compile(r"[0-9]+")
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_scope: ContextVar[Mapping[str, str]] = ContextVar("scope")


class LogFormat(Enum):
    """`text`: lines with tracebacks below them; `json`: one object a line."""

    TEXT = "text"
    JSON = "json"


def bind_scope(**fields: str) -> None:
    """Add fields to all later records of this context, or of the process if called at its start."""
    _scope.set({**_scope.get({}), **fields})


def configure_logging(
    *,
    levels: Mapping[str, str] | None = None,
    log_format: LogFormat = LogFormat.TEXT,
    stream: TextIO | None = None,
) -> RuntimeLevels:
    """Send all records to `stream` (default: standard error) and return the levels' owner.

    `levels`: Log4j level by logger name; `root` is the root logger, INFO unless given. Earlier
    handlers and masks are removed.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(RareRepeats())
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    _masks.clear()
    return RuntimeLevels({**_QUIET_LIBRARIES, **(levels or {})})


_masks: dict[str, Callable[[str], str]] = {}


def mask_logs(mask: Callable[[str], str], owner: str = "") -> None:
    """Let `mask` hide values of config providers in later lines of this process.

    It replaces the owner's earlier mask; several tasks may share a process.
    """
    _masks[owner] = mask


def unmask_logs(owner: str) -> None:
    """Forget the mask of an owner that has stopped logging."""
    _masks.pop(owner, None)


def masked(text: str) -> str:
    """Return `text` with the values hidden that log lines of this process hide."""
    for mask in tuple(_masks.values()):
        text = mask(text)
    return text


class OfThisScope(logging.Filter):
    """A filter that passes only lines of code in the scope in which the filter was made."""

    def __init__(self) -> None:
        super().__init__()
        self._scope = _scope.get({})

    def filter(self, record: logging.LogRecord) -> bool:
        del record
        return _scope.get({}) == self._scope


class RareRepeats(logging.Filter):
    """A filter that passes, of a library's equal warnings and errors, one in a minute.

    The line has the number of those left out. kafka-python alone writes five lines a second while a
    broker refuses connections. Lines that differ only in numbers are equal.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._passed: dict[tuple[str, int, str], tuple[float, int]] = {}
        """By line: the time of the last one that passed, and the number left out since then."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or not record.name.startswith(_REPEATING):
            return True
        kind = record.name, record.levelno, _DIGITS.sub("0", record.getMessage())
        now_s = self._clock()
        passed_s, left_out = self._passed.get(kind, (-math.inf, 0))
        if now_s - passed_s < REPEAT_AFTER_S:
            self._passed[kind] = passed_s, left_out + 1
            return False
        if len(self._passed) >= _KINDS:
            self._passed.clear()
        self._passed[kind] = now_s, 0
        if left_out:
            record.repeated = left_out
        return True


class RuntimeLevels:
    """The owner of the levels of this process' known loggers, which it applies to `logging`."""

    def __init__(self, levels: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._loggers: Mapping[str, LoggerLevel] = initial_loggers(levels)
        for name in self._loggers:
            self._apply(name)

    def loggers(self) -> Mapping[str, LoggerLevel]:
        """Return the known loggers by name, sorted."""
        return self._loggers

    def levels(self) -> dict[str, str]:
        """Return the levels of the known loggers by name."""
        return {name: logger.level for name, logger in self._loggers.items()}

    def set_level(self, namespace: str, level: str) -> tuple[str, ...]:
        """Set the level of all known loggers that start with `namespace`; return the changed.

        `level` is one of `core.log_lines.LEVELS`.
        """
        with self._lock:
            before = self._loggers
            change = set_level(before, namespace, level, time.time_ns() // 1_000_000)
            self._loggers = change.loggers
            for name, logger_level in change.loggers.items():
                if before.get(name) is not logger_level:
                    self._apply(name)
        return change.changed

    def _apply(self, name: str) -> None:
        logger = logging.getLogger(None if name == ROOT else name)
        level = _NUMBERS[effective_level(self._loggers, name)]
        # Setting a level writes to all loggers, whose memory a child shares with its fork server.
        if logger.level != level:
            logger.setLevel(level)


def level_name(number: int) -> str:
    """Return Log4j's name of a level number of `logging`."""
    return _NAMES.get(number) or logging.getLevelName(number)


def record_fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the scope's fields, then the record's own."""
    return {**_scope.get({}), **own_fields(record)}


def own_fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of the record itself, without the scope's."""
    own = {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}
    # Uvicorn's records have a coloured copy of their text.
    own.pop("color_message", None)
    return own


class _MaskingFormatter(logging.Formatter):
    """A formatter that masks texts, values of fields and traces, but not times and names."""

    def _trace(self, record: logging.LogRecord) -> str:
        parts = []
        if record.exc_info and record.exc_info[0] is not None:
            parts.append(self.formatException(record.exc_info))
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return masked("\n".join(parts))


class EventFormatter(_MaskingFormatter):
    """`event key=value` without time, level and scope; long texts and a trace on further lines."""

    def format(self, record: logging.LogRecord) -> str:
        text, below = _one_line(masked(record.getMessage())), self._trace(record)
        for key, value in own_fields(record).items():
            shown = masked(str(value))
            if "\n" in shown:
                below = f"{key}:\n{shown}\n{below}"
            else:
                text += f" {key}={_quoted(shown)}"
        return text + "".join(f"\n    {line}" for line in below.splitlines())


class TextFormatter(_MaskingFormatter):
    """`[2026-01-31 12:00:00,123] INFO event key=value (logger)`; a traceback on further lines."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(
            f" {key}={_quoted(masked(str(value)))}" for key, value in record_fields(record).items()
        )
        message = _one_line(masked(record.getMessage()))
        line = f"[{self.formatTime(record)}] {level_name(record.levelno)} {message}{fields}"
        trace = "".join(f"\n    {line}" for line in self._trace(record).splitlines())
        return f"{line} ({record.name}){trace}"


class JsonFormatter(_MaskingFormatter):
    """One JSON object a line: timestamp, level, logger, event, the fields, and the exception."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "timestamp": self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
            + f".{int(record.msecs):03d}{time.strftime('%z', time.localtime(record.created))}",
            "level": level_name(record.levelno),
            "logger": record.name,
            "event": masked(record.getMessage()),
            # JSON would show task ids as lists.
            **{
                name: masked(str(value)) if isinstance(value, str | ConnectorTaskId) else value
                for name, value in record_fields(record).items()
            },
        }
        if trace := self._trace(record):
            event["exception"] = trace
        return json.dumps(event, default=lambda value: masked(str(value)), ensure_ascii=False)


def _quoted(value: object) -> str:
    text = str(value)
    if text and not any(character.isspace() or character in '"=' for character in text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r")
