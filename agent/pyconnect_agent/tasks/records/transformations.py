"""A connector's transformations in order, each with its condition (Kafka: TransformationChain).

Failures go through the task's tolerance, one stage per transformation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from pyconnect_agent.core.metric_values import (
    DEFAULT_SAMPLING,
    TRANSFORMATION,
    Metric,
    Sampled,
    Sampling,
    tagged,
)
from pyconnect_agent.tasks.records.tolerance import RecordSkipped, RecordStage, Tolerance
from pyconnect_api import ConnectRecord, Predicate, Transformation


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformationStage:
    """`predicate` None: applies always; `negate`: applies where the predicate does not hold.

    `predicate_alias` is the name the connector's config gives the predicate.
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
    """A part of a chain; one in another process may be several transformations."""

    @property
    def alias(self) -> str: ...
    def apply(self, record: ConnectRecord) -> ConnectRecord | None: ...
    def close(self) -> None: ...


TIMED_EVERY = 100
"""Records of which one is timed."""


class StageCounts:
    """What has become of the records that one transformation got; `us`: times of some of them."""

    __slots__ = ("alias", "came", "dropped", "failed", "us")

    def __init__(self, alias: str, sampling: Sampling) -> None:
        self.alias = alias
        self.came = self.dropped = self.failed = 0
        self.us = Sampled(sampling)

    def add(self, came: int, dropped: int, failed: int, *us: float) -> None:
        """Add what another process has counted."""
        self.came += came
        self.dropped += dropped
        self.failed += failed
        for time_us in us:
            self.us.record(time_us, time.monotonic() * 1000)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the numbers; any thread, also while records go through."""
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

    Only records that do not reach the end of the chain are counted one by one: the others are those
    that came less those. A record that a predicate exempts goes in and out.

    For one record it returns None when the record is dropped, and raises RecordSkipped or
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
        """Transform records up to the first that fails; return results, and None if none does.

        Else a function that goes on with the record that failed, as if it were the only one. The
        caller calls it after it has finished the records before it, so that failures are reported
        in the order of the records. No transformation sees a record twice.
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
    """Return what the step returns, and record its time."""
    began_ns = time.perf_counter_ns()
    result = step(record)
    us.record((time.perf_counter_ns() - began_ns) / 1000, time.monotonic() * 1000)
    return result
