"""The `errors.*` settings of a connector, as a task's tolerance (KIP-298).

Layer: tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.records.tolerance import (
    ErrorCounts,
    ErrorReporter,
    LogReporter,
    Tolerance,
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

    `describe_record` returns the text about a record for the log when messages are to be included;
    for `place_of` see `Tolerance`. `further_reporters` come after the log.
    """
    settings = ConnectorSettings.parse(config)
    counts = counts or ErrorCounts()
    reporters: list[ErrorReporter] = []
    if settings.errors_log_enable:
        describe = describe_record if settings.errors_log_include_messages else None
        reporters.append(LogReporter(task_id, describe, counts))
    reporters += further_reporters
    return Tolerance(
        tolerate_all=settings.tolerate_all_errors,
        policy=RetryPolicy(
            timeout_ms=settings.errors_retry_timeout_ms,
            delay_max_ms=settings.errors_retry_delay_max_ms,
        ),
        reporters=reporters,
        stop_requested=stop_requested,
        place_of=place_of,
        counts=counts,
    )
