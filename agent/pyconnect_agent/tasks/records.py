"""Stages that records of sources and sinks pass: tolerance and transformations.

Kafka: RetryWithToleranceOperator (`errors.*`, KIP-298), TransformationChain. Tolerance costs
nothing without an error: callers try the operation themselves and use `Tolerance` only with the
exception. It handles failures of transformations one stage per transformation.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Protocol, TypeVar

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.metric_values import (
    DEFAULT_SAMPLING,
    TRANSFORMATION,
    Metric,
    Sampled,
    Sampling,
    tagged,
)
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_api import (
    ConnectException,
    ConnectRecord,
    Predicate,
    RetriableException,
    Transformation,
)

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


class RecordStage(Enum):
    """The step at which a record failed; the names are Kafka's."""

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

    stage: RecordStage
    class_name: str
    error: Exception
    record: object


@dataclass(slots=True)
class ErrorCounts:
    """Kafka's `task-error-metrics` of one task; `last_error_ms` is epoch time, 0 for no error."""

    record_failures: int = 0
    record_errors: int = 0
    records_skipped: int = 0
    retries: int = 0
    errors_logged: int = 0
    dead_letter_requests: int = 0
    dead_letter_failures: int = 0
    last_error_ms: int = 0


class ErrorReporter(Protocol):
    """The log or the dead letter queue."""

    def report(self, failure: Failure) -> Future[None] | None:
        """Return a future that is done when the report is durable, None when it already is.

        Does not raise: the reporter logs and counts a report that fails.
        """
        ...


class RecordSkipped(Exception):
    """The record failed and is to be left out: errors are tolerated."""


def repeated(
    error: Exception,
    policy: RetryPolicy,
    stop_requested: threading.Event,
    counts: ErrorCounts,
    operation: Callable[..., Result],
    *arguments: Any,
) -> Result:
    """Retry an operation that raised `error` as long as the policy allows; raise its last error.

    `stop_requested` interrupts the wait between attempts.
    """
    attempt, started_s = 1, time.monotonic()
    while isinstance(error, RetriableException):
        elapsed_ms = int((time.monotonic() - started_s) * 1000)
        delay_ms = policy.delay_ms(attempt, elapsed_ms, random.random())
        if delay_ms is None or stop_requested.wait(delay_ms / 1000):
            break
        attempt += 1
        counts.record_failures += 1
        counts.retries += 1
        try:
            return operation(*arguments)
        except Exception as exc:  # noqa: BLE001  plugin code
            error = exc
    raise error


class Tolerance:
    """Retries, reports, and then skips the record or fails the task.

    `stop_requested` interrupts the wait between attempts. `place_of` returns where a record came
    from, for the failure's trace; None leaves that out.
    """

    def __init__(
        self,
        *,
        tolerate_all: bool,
        policy: RetryPolicy,
        reporters: Sequence[ErrorReporter],
        stop_requested: threading.Event,
        place_of: Callable[[object], str] | None = None,
        counts: ErrorCounts | None = None,
    ) -> None:
        self.counts = ErrorCounts() if counts is None else counts
        self.tolerate_all = tolerate_all
        self._policy = policy
        self._reporters = tuple(reporters)
        self._stop_requested = stop_requested
        self._place_of = place_of
        self.on_skipped: Callable[[object, Future[None]], object] = lambda *_: None
        """Called with a skipped record, and the future of its report if that is not yet done."""

    def recover(
        self,
        stage: RecordStage,
        operator: type,
        error: Exception,
        record: object,
        operation: Callable[..., Result],
        *arguments: Any,
    ) -> Result:
        """Retry `operation(*arguments)`, whose first attempt raised `error`; return its result.

        Raises RecordSkipped when the record is to be left out, ConnectException otherwise.
        """
        try:
            return repeated(
                error, self._policy, self._stop_requested, self.counts, operation, *arguments
            )
        except Exception as exc:  # noqa: BLE001  every failure of plugin code is this method's subject
            error = exc
        raise self.skipped(
            Failure(
                stage=stage,
                class_name=f"{operator.__module__}.{operator.__qualname__}",
                error=error,
                record=record,
            )
        )

    def skipped(self, failure: Failure) -> RecordSkipped:
        """Report a failure and leave its record out; raises ConnectException unless tolerated."""
        pending = self.failed(failure)
        self.counts.record_errors += 1
        self.counts.records_skipped += 1
        if pending is not None:
            self.on_skipped(failure.record, pending)
        return RecordSkipped()

    def failed(self, failure: Failure) -> Future[None] | None:
        """Report a failure that is not retried; raises ConnectException unless tolerated.

        As in Kafka a tolerated failure counts neither as error nor as skipped: `skipped` counts
        those, for records it leaves out.

        Returns a future that is done when the reports are durable, None when they already are.
        """
        counts = self.counts
        counts.record_failures += 1
        counts.last_error_ms = int(time.time() * 1000)
        pending = None
        for reporter in self._reporters:
            # At most one reporter returns a future: the dead letter queue.
            pending = reporter.report(failure) or pending
        if not self.tolerate_all:
            counts.record_errors += 1
            raise self.exceeded(failure) from failure.error
        return pending

    def exceeded(self, failure: Failure) -> ConnectException:
        """Return the exception that fails a task whose errors are not tolerated."""
        error = ConnectException("Tolerance exceeded in error handler")
        if self._place_of is not None:
            error.add_note(
                f"Stage {failure.stage.value} of class {failure.class_name} failed for the record "
                f"of {self._place_of(failure.record)}"
            )
        return error


class LogReporter:
    """Writes one line per failure (`errors.log.enable`).

    `describe_record` returns the text that `errors.log.include.messages` adds before the final dot;
    None leaves it out.
    """

    def __init__(
        self, task_id: str, describe_record: Callable[[object], str] | None, counts: ErrorCounts
    ) -> None:
        self._task_id = task_id
        self._describe_record = describe_record
        self._counts = counts

    def report(self, failure: Failure) -> Future[None] | None:
        self._counts.errors_logged += 1
        added = "" if self._describe_record is None else self._describe_record(failure.record)
        LOG.error(
            "Error encountered in task %s. Executing stage '%s' with class '%s'%s.",
            self._task_id,
            failure.stage.value,
            failure.class_name,
            added,
            exc_info=failure.error,
        )
        return None


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
        policy=retry_policy(settings),
        reporters=reporters,
        stop_requested=stop_requested,
        place_of=place_of,
        counts=counts,
    )


def retry_policy(settings: ConnectorSettings) -> RetryPolicy:
    """Return the policy of a connector's `errors.retry.*`."""
    return RetryPolicy(
        timeout_ms=settings.errors_retry_timeout_ms, delay_max_ms=settings.errors_retry_delay_max_ms
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformationStage:
    """A transformation with its predicate: it applies where the predicate holds.

    With `negate` it applies where the predicate does not hold; without a predicate (None) it always
    applies. `predicate_alias` is the name that the connector's config gives the predicate.
    """

    alias: str
    transformation: Transformation[Any]
    predicate: Predicate[Any] | None = None
    predicate_alias: str | None = None
    negate: bool = False

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if self.predicate is None or self.predicate.test(record) is not self.negate:
            result: ConnectRecord | None = self.transformation.apply(record)
            return result
        return record

    def close(self) -> None:
        self.transformation.close()
        if self.predicate is not None:
            self.predicate.close()


class ChainPart(Protocol):
    """A part of a chain; a part in another process may be several transformations."""

    @property
    def alias(self) -> str: ...
    def apply(self, record: ConnectRecord) -> ConnectRecord | None: ...
    def close(self) -> None: ...


TIMED_EVERY = 100
"""One record out of so many is timed."""


class StageCounts:
    """The counts of the records that one transformation got; `us`: times of some of them."""

    __slots__ = ("alias", "came", "dropped", "failed", "us")

    def __init__(self, alias: str, sampling: Sampling) -> None:
        self.alias = alias
        self.came = self.dropped = self.failed = 0
        self.us = Sampled(sampling)

    def add(self, came: int, dropped: int, failed: int, *us: float) -> None:
        """Add the counts of another process."""
        self.came += came
        self.dropped += dropped
        self.failed += failed
        for time_us in us:
            self.us.record(time_us, time.monotonic() * 1000)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the numbers; any thread may call this, also while records go through."""
        numbers = {
            "transform-record-in-total": self.came,
            "transform-record-out-total": self.came - self.dropped - self.failed,
            "transform-record-dropped-total": self.dropped,
            "transform-record-failed-total": self.failed,
            "transform-record-avg-time-us": self.us.average(time.monotonic() * 1000),
        }
        return tagged({TRANSFORMATION: numbers}, {"transform": self.alias})


class Chain:
    """The transformations of a connector, as one function of a record or of many.

    Only records that do not reach the end of the chain are counted one by one; the others are the
    difference to those that came in. A record that a predicate exempts is counted as in and out.

    A call with one record returns None when the record is dropped, and raises RecordSkipped or
    ConnectException when it fails; reports of a failure name the record as it was before the chain.
    """

    def __init__(
        self,
        stages: Sequence[TransformationStage],
        tolerance: Tolerance,
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> None:
        self._steps = tuple((stage.apply, type(stage.transformation)) for stage in stages)
        self._counts = [StageCounts(stage.alias, sampling) for stage in stages]
        self._timed_steps = tuple(
            (partial(timed, counts.us, step), kind)
            for counts, (step, kind) in zip(self._counts, self._steps, strict=True)
        )
        self._records = self._timed_at = 0
        self._recover = tolerance.recover

    def __call__(self, original: Any) -> Any:
        done, failed = self.run((original,))
        return done[0] if failed is None else failed()

    def run(self, originals: Sequence[Any]) -> tuple[list[Any], Callable[[], Any] | None]:
        """Transform records up to the first that fails; return the results, and None if none fails.

        If one fails, the second value is a function that goes on with that record, as if it were
        the only one. The caller calls it after finishing the records before it, so that failures
        are reported in the order of the records. No transformation gets a record twice.
        """
        done: list[Any] = []
        append, steps = done.append, self._steps
        if self._records >= self._timed_at:
            self._timed_at = self._records + TIMED_EVERY
            steps = self._timed_steps
        for original in originals:
            record = original
            for place, (step, _) in enumerate(steps):
                try:
                    record = step(record)
                except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
                    self._records += len(done) + 1
                    return done, partial(self._resume, original, record, place, exc)
                if record is None:
                    self._counts[place].dropped += 1
                    break
            append(record)
            steps = self._steps
        self._records += len(done)
        return done, None

    def kept(self, records: Sequence[Any]) -> list[Any]:
        """Transform records; return those that are neither dropped nor skipped."""
        kept: list[Any] = []
        while records:
            done, failed = self.run(records)
            kept += [record for record in done if record is not None]
            if failed is None:
                break
            with suppress(RecordSkipped):
                record = failed()
                if record is not None:
                    kept.append(record)
            records = records[len(done) + 1 :]
        return kept

    def _resume(self, original: Any, record: Any, place: int, error: Exception | None) -> Any:
        """Go on with the step at `place`, whose first attempt raised `error`."""
        for (step, kind), counts in zip(self._steps[place:], self._counts[place:], strict=True):
            try:
                if error is not None:
                    raise error
                record = step(record)
            except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
                error = None
                try:
                    record = self._recover(
                        RecordStage.TRANSFORMATION, kind, exc, original, step, record
                    )
                except Exception:
                    counts.failed += 1
                    raise
            if record is None:
                counts.dropped += 1
                return None
        return record

    def metrics(self) -> list[Metric]:
        """Return the numbers of each transformation; any thread, also while records go through."""
        metrics: list[Metric] = []
        came = self._records
        for counts in self._counts:
            counts.came = came
            metrics += counts.metrics()
            came -= counts.dropped + counts.failed
        return metrics


def timed(us: Sampled, step: Callable[[Any], Any], record: Any) -> Any:
    """Return the result of the step for `record`, and note its time in `us`."""
    began_ns = time.perf_counter_ns()
    result = step(record)
    us.record((time.perf_counter_ns() - began_ns) / 1000, time.monotonic() * 1000)
    return result
