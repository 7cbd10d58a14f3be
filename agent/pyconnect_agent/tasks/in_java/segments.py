"""Transformations of one language in the chain of a connector of the other.

A segment is a number of transformations of one language that follow each other. A message between
the processes has many records. A failed record is a map like those of a Java process: `stage`,
`class`, `retries` and the error, which this process raised (`raised`) or the Java process describes
(`error`).

The process of a source in Java has transformed and converted the records. This module decides
whether a record that failed is skipped, and whether its topic exists.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain as chained
from itertools import count
from typing import Any, NoReturn, TypeAlias

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.metric_values import Metric, Sampling
from pyconnect_agent.java_processes.crossing import Crossing
from pyconnect_agent.java_processes.frames import (
    FrameKind,
    JavaSourceRecord,
    JavaSourceRecords,
    unpack_headers,
)
from pyconnect_agent.java_processes.link import JavaLink, java_error
from pyconnect_agent.kafka.task_producer import KafkaHeaders
from pyconnect_agent.tasks.records import (
    TIMED_EVERY,
    Chain,
    ChainPart,
    ErrorCounts,
    Failure,
    RecordSkipped,
    RecordStage,
    StageCounts,
    Tolerance,
    TransformationStage,
    repeated,
    retry_policy,
    timed,
)
from pyconnect_agent.tasks.source.pipeline import (
    NO_TOPIC,
    Outgoing,
    OutgoingRun,
    Pipeline,
    TopicCreation,
    checked_timestamp,
    known_topics_only,
)
from pyconnect_api import ConnectException, ConnectRecord, SourceRecord


def compose_converted(*, tolerance: Tolerance, topics: TopicCreation | None) -> Pipeline:
    """Build the pipeline of a Java source task; `topics` as for `pipeline.compose`."""

    def convert(_: SourceRecord, record: SourceRecord) -> Outgoing:
        assert isinstance(record, JavaSourceRecord)
        if record.failure is not None:
            record_failed(record.failure, record, tolerance)
        if record.is_dropped:
            raise RecordSkipped
        topic, timestamp = record.topic, record.timestamp or 0
        if topic is None:
            raise ConnectException(NO_TOPIC)
        if topics is not None and topic not in topics.known:
            topics.ensure(topic)
        return (
            topic,
            record.value,
            record.key,
            -1 if record.kafka_partition is None else record.kafka_partition,
            timestamp if timestamp > 0 else checked_timestamp(timestamp),
            record.kafka_headers or None,
        )  # type: ignore[return-value]  # key and value are bytes

    return Pipeline(chain=None, convert=convert, convert_run=known_topics_only(_run_of, topics))


def record_failed(failure: Mapping[str, Any], record: object, tolerance: Tolerance) -> NoReturn:
    """Apply the tolerance to a record that failed in the Java process, retries included.

    Raises RecordSkipped, or ConnectException when failures are not tolerated.
    """
    counts = tolerance.counts
    counts.record_failures += failure["retries"]
    counts.retries += failure["retries"]
    raise tolerance.skipped(
        Failure(
            stage=RecordStage(failure["stage"]),
            class_name=failure["class"],
            error=failure.get("raised") or java_error(failure["error"]),
            record=record,
        )
    )


def _run_of(polled: Sequence[SourceRecord], records: Sequence[SourceRecord]) -> OutgoingRun:
    assert isinstance(records, JavaSourceRecords)
    if records.failures:
        raise ValueError("a record has failed")
    places = None
    if records.dropped:
        places = [place for place in range(len(records)) if place not in records.dropped]
        polled = records = records.at(places)
    batch = records.batch
    distinct = frozenset(batch.topics)
    if not records or None in distinct or min(batch.timestamps) < 0:
        raise ValueError("there is no record, or one has no topic or an invalid timestamp")
    headers: list[KafkaHeaders | None] = [None] * len(records)
    if batch.headers is not None:
        # Connectors tend to write the same headers to all of their records.
        unpacked = {packed: unpack_headers(packed) or None for packed in set(batch.headers)}
        headers = [unpacked[packed] for packed in batch.headers]
    return OutgoingRun(
        records=polled,
        distinct_topics=distinct,
        topics=batch.topics,
        values=batch.values,
        keys=batch.keys,
        partitions=batch.partitions,
        timestamps=batch.timestamps,
        headers=headers,
        places=places,
    )


LOG = logging.getLogger(__name__)

PART = 500
"""The most records in one question to the Java process."""
AHEAD = 4
"""The most questions to the Java process before the first is answered."""
STOP_LOOK_S = 0.5

Outcome: TypeAlias = ConnectRecord | dict[str, Any] | None
"""A record, the map of a failure, or None for a record that was dropped."""


class PythonSegment:
    """Transformations in Python; `stop_requested` interrupts the wait before a retry."""

    def __init__(
        self,
        stages: Sequence[TransformationStage],
        settings: ConnectorSettings,
        stop_requested: threading.Event,
        sampling: Sampling,
    ) -> None:
        self.stages = stages
        self.counts = [StageCounts(stage.alias, sampling) for stage in stages]
        self._steps: list[tuple[Callable[[Any], Any], TransformationStage, StageCounts]] = [
            (stage.transformation.apply if stage.predicate is None else stage.apply, stage, counts)
            for stage, counts in zip(stages, self.counts, strict=True)
        ]
        self._policy = retry_policy(settings)
        self._stop_requested = stop_requested

    def begin(self, records: Sequence[ConnectRecord]) -> Callable[[], Sequence[Outcome]]:
        outcomes = list(map(self.outcome, records))
        return lambda: outcomes

    def outcome(self, record: Any) -> Outcome:
        for apply, stage, counts in self._steps:
            is_timed = counts.came % TIMED_EVERY == 0
            counts.came += 1
            try:
                record = timed(counts.us, apply, record) if is_timed else apply(record)
            except Exception as exc:  # noqa: BLE001  plugin code
                errors = ErrorCounts()
                try:
                    record = repeated(
                        exc, self._policy, self._stop_requested, errors, stage.apply, record
                    )
                except Exception as last:  # noqa: BLE001  plugin code
                    counts.failed += 1
                    return failure_of(stage.transformation, last, errors.retries)
            if record is None:
                counts.dropped += 1
                return None
        outcome: ConnectRecord = record
        return outcome


def failure_of(operator: object, error: Exception, retries: int = 0) -> dict[str, Any]:
    kind = type(operator)
    return {
        "stage": "TRANSFORMATION",
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "retries": retries,
        "raised": error,
    }


class PythonSegments:
    """The Python segments of a Java connector's chain, and the counts of its Java transformations.

    The Java process asks for many records at once, on the thread that answers its questions. This
    process keeps errors under a number; the Java process reports the number with the record, at its
    place among the others.
    """

    def __init__(self, segments: Sequence[PythonSegment], java: Sequence[StageCounts]) -> None:
        self._segments = segments
        self._java = java
        self._crossing = Crossing()
        self._numbers = count()
        self._errors: dict[int, Exception] = {}

    def transform(self, payload: bytes) -> bytes:
        """Transform the records in a question of the Java process; return the answer."""
        number, records = self._crossing.decode(payload)
        segment = self._segments[number]
        outcomes: list[object] = []
        for record in records:
            is_unchanged = self._crossing.watch(record)
            outcome = segment.outcome(record)
            if isinstance(outcome, dict):
                outcomes.append(self._numbered(outcome))
            else:
                outcomes.append(True if outcome is record and is_unchanged() else outcome)
        last = segment.stages[-1].transformation
        return self._crossing.encode(
            None, outcomes, lambda _, exc: self._numbered(failure_of(last, exc))
        )

    def take(self, facts: Mapping[str, Any]) -> None:
        """Take the counts out of the facts of a batch, or out of the answer to a put.

        The failures in `facts` get the errors that were raised in this process.
        """
        for counts, row in zip(self._java, facts.get("stages", ()), strict=False):
            counts.add(*row)
        for failure in facts.get("failures", ()):
            if "python" in failure:
                failure["raised"] = self._errors.pop(failure["python"])

    def metrics(self) -> Iterable[Metric]:
        """Return the numbers of all transformations of the chain; any thread may call this."""
        in_python = chained.from_iterable(segment.counts for segment in self._segments)
        return chained.from_iterable(counts.metrics() for counts in (*in_python, *self._java))

    def close(self) -> None:
        for segment in self._segments:
            for stage in segment.stages:
                try:
                    stage.close()
                except Exception:  # plugin code; the other transformations are closed too
                    LOG.exception("a transformation could not be closed")

    def _numbered(self, failure: Mapping[str, Any]) -> dict[str, object]:
        number, error = next(self._numbers), failure["raised"]
        self._errors[number] = error
        text = str(error) if isinstance(error, ConnectException) else repr(error)
        return {
            "class": failure["class"],
            "retries": failure["retries"],
            "python": number,
            "text": text,
        }


class JavaSegment:
    """Transformations in the Java process of a Python connector's chain.

    `number`: the segment's in the job of the process. `stop_requested`: see `PythonSegment`.
    """

    def __init__(
        self,
        link: JavaLink,
        number: int,
        crossing: Crossing,
        counts: Sequence[StageCounts],
        stop_requested: threading.Event,
    ) -> None:
        self.alias = counts[0].alias
        self.counts = counts
        self._link = link
        self._number = number
        self._crossing = crossing
        self._stop_requested = stop_requested

    def begin(self, records: Sequence[ConnectRecord]) -> Callable[[], Sequence[Outcome]]:
        """Send the records; return a function that waits for the outcomes.

        Both raise ConnectException if the process has ended.
        """
        refused: dict[int, dict[str, Any]] = {}

        def refuse(place: int, error: Exception) -> None:
            refused[place] = failure_of(self._crossing, error)

        question = self._crossing.encode(self._number, records, refuse)
        call = self._link.send(FrameKind.TRANSFORM, question)

        def outcomes() -> Sequence[Outcome]:
            while True:
                try:
                    answer = call.result(STOP_LOOK_S)
                    break
                except TimeoutError:
                    if self._stop_requested.is_set():
                        self._link.tell(FrameKind.CALL, b'{"method":"interrupt"}')
            rows, found = self._crossing.decode_outcomes(answer, records, refuse)
            for counts, row in zip(self.counts, rows, strict=True):
                counts.add(*row)  # type: ignore[arg-type]  # whole numbers come first
            for place, failure in refused.items():
                found[place] = failure
            return found

        return outcomes

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Transform one record. Raises the exception of a transformation, after its retries."""
        (outcome,) = self.begin([record])()
        if isinstance(outcome, dict):
            raise outcome.get("raised") or java_error(outcome["error"])
        return outcome

    def close(self) -> None:
        """Close the transformations and end the process; only the first segment does, for all."""
        if not self._number:
            self._link.stop()


Segment: TypeAlias = PythonSegment | JavaSegment
"""Transformations that follow each other; `begin` returns a function that waits for the
outcomes.
"""


class MixedChain(Chain):
    """The chain of a Python connector with transformations in Java.

    Records are transformed in parts. Python works on some while Java works on others.
    """

    def __init__(self, segments: Sequence[Segment], tolerance: Tolerance) -> None:
        super().__init__((), tolerance)
        self._segments = segments
        self._tolerance = tolerance
        self._ahead: list[tuple[ConnectRecord, Outcome]] = []
        """The records behind one that has failed, with their outcomes."""

    def run(self, originals: Sequence[Any]) -> tuple[list[Any], Callable[[], Any] | None]:
        """Run as `Chain.run` does.

        Records behind one that fails are transformed early, but only once.
        """
        ahead, self._ahead = self._ahead, []
        if [id(record) for record, _ in ahead] != [id(record) for record in originals]:
            ahead = list(zip(originals, self._outcomes(originals), strict=True))
        for place, (original, outcome) in enumerate(ahead):
            if isinstance(outcome, dict):
                self._ahead = ahead[place + 1 :]
                failed = partial(record_failed, outcome, original, self._tolerance)
                return [done for _, done in ahead[:place]], failed
        return [outcome for _, outcome in ahead], None

    def metrics(self) -> list[Metric]:
        counts = chained.from_iterable(segment.counts for segment in self._segments)
        return list(chained.from_iterable(each.metrics() for each in counts))

    def _outcomes(self, records: Sequence[ConnectRecord]) -> list[Outcome]:
        begun: deque[tuple[list[Outcome], Iterator[None]]] = deque()
        outcomes: list[Outcome] = []

        def finish() -> None:
            rows, steps = begun.popleft()
            for _ in steps:
                pass
            outcomes.extend(rows)

        for at in range(0, len(records), PART):
            rows: list[Outcome] = list(records[at : at + PART])
            steps = self._steps_of(rows)
            next(steps, None)
            begun.append((rows, steps))
            if len(begun) > AHEAD:
                finish()
        while begun:
            finish()
        return outcomes

    def _steps_of(self, rows: list[Outcome]) -> Iterator[None]:
        """Replace records in `rows` by their outcomes; yield after asking the Java process."""
        for segment in self._segments:
            asked = [(at, row) for at, row in enumerate(rows) if isinstance(row, ConnectRecord)]
            if not asked:
                return
            outcomes = segment.begin([row for _, row in asked])
            if isinstance(segment, JavaSegment):
                yield
            for (at, _), outcome in zip(asked, outcomes(), strict=True):
                rows[at] = outcome


def chain_of(
    stages: Sequence[ChainPart],
    tolerance: Tolerance,
    settings: ConnectorSettings,
    stop_requested: threading.Event,
    sampling: Sampling,
) -> Chain | None:
    """Return the chain of a Python connector, None when there is nothing to do."""
    segments: list[Segment] = []
    own: list[TransformationStage] = []
    for stage in stages:
        if isinstance(stage, TransformationStage):
            own.append(stage)
            continue
        if own:
            segments.append(PythonSegment(own, settings, stop_requested, sampling))
            own = []
        assert isinstance(stage, JavaSegment)
        segments.append(stage)
    if not segments:
        return Chain(own, tolerance, sampling) if own else None
    if own:
        segments.append(PythonSegment(own, settings, stop_requested, sampling))
    return MixedChain(segments, tolerance)
