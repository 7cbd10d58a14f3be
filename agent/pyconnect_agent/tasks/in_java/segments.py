"""Transformations in Python of the records of a Java connector.

Layer: tasks. A segment is a number of transformations in Python that follow each other. The Java
process asks for many records at once, on the thread that answers its questions. Errors stay here
under a number; the Java process reports them with the record, at its place among the others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.java_processes.crossing import Crossing
from pyconnect_agent.tasks.records.tolerance import ErrorCounts, repeated
from pyconnect_agent.tasks.records.transformations import TransformationStage
from pyconnect_api import ConnectException, ConnectRecord

LOG = logging.getLogger(__name__)


class PythonSegments:
    """`stop_requested` interrupts the wait before an operation is repeated."""

    def __init__(
        self,
        segments: Sequence[Sequence[TransformationStage]],
        settings: ConnectorSettings,
        stop_requested: threading.Event,
    ) -> None:
        self._segments = segments
        self._policy = RetryPolicy(
            timeout_ms=settings.errors_retry_timeout_ms,
            delay_max_ms=settings.errors_retry_delay_max_ms,
        )
        self._stop_requested = stop_requested
        self._crossing = Crossing()
        self._numbers = count()
        self._errors: dict[int, Exception] = {}

    def transform(self, payload: bytes) -> bytes:
        """Answer a question of the Java process."""
        segment, records = self._crossing.decode(payload)
        stages = self._segments[segment]
        outcomes = [self._outcome(record, stages) for record in records]
        last = stages[-1]
        return self._crossing.encode(outcomes, lambda _, exc: self._failure(last, exc, 0))

    def take_errors(self, failures: Iterable[dict[str, Any]]) -> None:
        """Give failures that the Java process reports the errors that were raised here."""
        for failure in failures:
            if "python" in failure:
                failure["raised"] = self._errors.pop(failure["python"])

    def close(self) -> None:
        for stages in self._segments:
            for stage in stages:
                try:
                    stage.close()
                except Exception:  # plugin code; the others are closed too
                    LOG.exception("a transformation could not be closed")

    def _outcome(self, original: ConnectRecord, stages: Sequence[TransformationStage]) -> object:
        record: ConnectRecord | None = original
        for stage in stages:
            assert record is not None
            try:
                record = stage.apply(record)
            except Exception as exc:  # noqa: BLE001  plugin code
                counts = ErrorCounts()
                try:
                    record = repeated(
                        exc, self._policy, self._stop_requested, counts, stage.apply, record
                    )
                except Exception as last:  # noqa: BLE001  plugin code
                    return self._failure(stage, last, counts.retries)
            if record is None:
                return None
        return True if record is original else record

    def _failure(
        self, stage: TransformationStage, error: Exception, retries: int
    ) -> dict[str, object]:
        number = next(self._numbers)
        self._errors[number] = error
        kind = type(stage.transformation)
        text = str(error) if isinstance(error, ConnectException) else repr(error)
        return {
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "retries": retries,
            "python": number,
            "text": text,
        }
