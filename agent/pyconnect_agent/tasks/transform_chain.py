"""A connector's transformations in order, each with its condition (Kafka: TransformationChain).

Layer: tasks. Failures go through the task's tolerance, one stage per transformation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyconnect_agent.tasks.tolerance import Stage, Tolerance
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


def chain(
    stages: Sequence[TransformationStage], tolerance: Tolerance
) -> Callable[[Any], Any] | None:
    """Return the chain as one function of a record, None when there is nothing to do.

    It returns None for a record that is dropped; raises RecordSkipped or ConnectException. The
    reports of a failure name the record as it was before the chain.
    """
    if not stages:
        return None
    steps = tuple((stage.apply, type(stage.transformation)) for stage in stages)
    recover = tolerance.recover

    def apply(original: ConnectRecord) -> ConnectRecord | None:
        record: ConnectRecord | None = original
        for step, kind in steps:
            assert record is not None
            try:
                record = step(record)
            except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
                record = recover(Stage.TRANSFORMATION, kind, exc, original, step, record)
            if record is None:
                return None
        return record

    return apply
