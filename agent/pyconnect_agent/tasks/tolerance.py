"""What happens when a record's conversion or transformation fails.

Layer: tasks. Kafka: RetryWithToleranceOperator, KIP-298. The happy path costs nothing: callers try
the operation themselves and come here with the exception only.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar

from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_api import ConnectException, RetriableException

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


class Stage(Enum):
    """Where a record failed; the names are Kafka's."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed operation; `record` is a SourceRecord as polled, or a consumed message."""

    stage: Stage
    class_name: str
    error: Exception
    record: object


class ErrorReporter(Protocol):
    """Log or dead letter queue."""

    def report(self, failure: Failure) -> None: ...


class RecordSkipped(Exception):
    """The record failed and is to be left out: errors are tolerated."""


class Tolerance:
    """Retries, reports, and then skips the record or fails the task.

    `stop_requested` interrupts the wait between attempts.
    """

    def __init__(
        self,
        *,
        tolerate_all: bool,
        policy: RetryPolicy,
        reporters: Sequence[ErrorReporter],
        stop_requested: threading.Event,
    ) -> None:
        self.tolerate_all = tolerate_all
        self._policy = policy
        self._reporters = tuple(reporters)
        self._stop_requested = stop_requested

    def recover(
        self,
        stage: Stage,
        operator: type,
        error: Exception,
        record: object,
        operation: Callable[..., Result],
        *arguments: Any,
    ) -> Result:
        """Go on after the first attempt of `operation(*arguments)` raised `error`.

        Raises RecordSkipped when the record is to be left out, ConnectException otherwise.
        """
        attempt, started_s = 1, time.monotonic()
        while isinstance(error, RetriableException):
            elapsed_ms = int((time.monotonic() - started_s) * 1000)
            delay_ms = self._policy.delay_ms(attempt, elapsed_ms, random.random())
            if delay_ms is None or self._stop_requested.wait(delay_ms / 1000):
                break
            attempt += 1
            try:
                return operation(*arguments)
            except Exception as exc:  # noqa: BLE001  every failure of plugin code is this method's subject
                error = exc
        self.failed(
            Failure(
                stage=stage,
                class_name=f"{operator.__module__}.{operator.__qualname__}",
                error=error,
                record=record,
            )
        )
        raise RecordSkipped

    def failed(self, failure: Failure) -> None:
        """Report a failure that nobody retries; raises ConnectException unless tolerated."""
        for reporter in self._reporters:
            reporter.report(failure)
        if not self.tolerate_all:
            raise ConnectException("Tolerance exceeded in error handler") from failure.error


class LogReporter:
    """Writes one line per failure (`errors.log.enable`).

    `describe_record` returns what `errors.log.include.messages` adds before the final dot; None
    leaves it out.
    """

    def __init__(self, task_id: str, describe_record: Callable[[object], str] | None) -> None:
        self._task_id = task_id
        self._describe_record = describe_record

    def report(self, failure: Failure) -> None:
        added = "" if self._describe_record is None else self._describe_record(failure.record)
        LOG.error(
            "Error encountered in task %s. Executing stage '%s' with class '%s'%s.",
            self._task_id,
            failure.stage.value,
            failure.class_name,
            added,
            exc_info=failure.error,
        )
