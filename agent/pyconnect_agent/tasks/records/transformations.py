"""A connector's transformations in order, each with its condition (Kafka: TransformationChain).

Layer: tasks. Failures go through the task's tolerance, one stage per transformation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

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


class Chain:
    """The transformations of a connector, as one function of a record or of many.

    For one record it returns None when the record is dropped, and raises RecordSkipped or
    ConnectException when it fails; reports of a failure name the record as it was before the chain.
    """

    def __init__(self, stages: Sequence[TransformationStage], tolerance: Tolerance) -> None:
        self._steps = tuple((stage.apply, type(stage.transformation)) for stage in stages)
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
        for original in originals:
            record = original
            for place, (step, _) in enumerate(steps):
                try:
                    record = step(record)
                except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
                    return done, partial(self._resume, original, record, place, exc)
                if record is None:
                    break
            append(record)
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
        for step, kind in self._steps[place:]:
            try:
                if error is not None:
                    raise error
                record = step(record)
            except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
                error = None
                record = self._recover(
                    RecordStage.TRANSFORMATION, kind, exc, original, step, record
                )
            if record is None:
                return None
        return record


def chain(stages: Sequence[TransformationStage], tolerance: Tolerance) -> Chain | None:
    """Return the chain, None when there is nothing to do."""
    return Chain(stages, tolerance) if stages else None
