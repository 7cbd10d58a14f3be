"""How a connector wants record failures handled (`errors.*`).

Layer: tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.tolerance import ErrorCounts, ErrorReporter, LogReporter, Tolerance
from pyconnect_api import ConfigDef, ConfigType, Importance, ValidString

_TOLERANCE = "errors.tolerance"
_RETRY_TIMEOUT = "errors.retry.timeout"
_RETRY_DELAY_MAX = "errors.retry.delay.max.ms"
_LOG = "errors.log.enable"
_LOG_MESSAGES = "errors.log.include.messages"


def _definition() -> ConfigDef:
    low, medium = Importance.LOW, Importance.MEDIUM
    return (
        ConfigDef()
        .define(_RETRY_TIMEOUT, ConfigType.LONG, default=0, importance=medium)
        .define(_RETRY_DELAY_MAX, ConfigType.LONG, default=60_000, importance=medium)
        .define(
            _TOLERANCE,
            ConfigType.STRING,
            default="none",
            validator=ValidString(("none", "all")),
            importance=medium,
        )
        .define(_LOG, ConfigType.BOOLEAN, default=False, importance=low)
        .define(_LOG_MESSAGES, ConfigType.BOOLEAN, default=False, importance=low)
    )


def tolerance_of(
    config: Mapping[str, str],
    *,
    task_id: str,
    describe_record: Callable[[object], str],
    stop_requested: threading.Event,
    place_of: Callable[[object], str] | None = None,
    further_reporters: Sequence[ErrorReporter] = (),
    counts: ErrorCounts | None = None,
) -> Tolerance:
    """Build the tolerance of a task. Raises ConfigException.

    `describe_record` gives what the log says of a record when messages are to be included; for
    `place_of` see `Tolerance`. `further_reporters` come after the log.
    """
    values = _definition().parse(config)
    counts = counts or ErrorCounts()
    reporters: list[ErrorReporter] = []
    if values[_LOG]:
        describe = describe_record if values[_LOG_MESSAGES] else None
        reporters.append(LogReporter(task_id, describe, counts))
    reporters += further_reporters
    return Tolerance(
        tolerate_all=values[_TOLERANCE] == "all",
        policy=RetryPolicy(
            timeout_ms=int(str(values[_RETRY_TIMEOUT])),
            delay_max_ms=int(str(values[_RETRY_DELAY_MAX])),
        ),
        reporters=reporters,
        stop_requested=stop_requested,
        place_of=place_of,
        counts=counts,
    )
