"""Records a sink task could not deliver (KIP-610; Kafka: WorkerErrantRecordReporter).

Layer: tasks. `report` may be called from any thread of the task, the rest by the task's loop.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import Future

from pyconnect_agent.tasks.records.tolerance import Failure, RecordStage, Tolerance
from pyconnect_agent.tasks.setup.plugins import Converters
from pyconnect_agent.tasks.sink.errors.consumed_record import (
    ConsumedRecord,
    origin_of,
    serialized,
)
from pyconnect_api import (
    ConnectException,
    ErrantRecordReporter,
    SinkRecord,
    SinkTask,
    TopicPartition,
)

_SINK_TASK = f"{SinkTask.__module__}.{SinkTask.__qualname__}"
_JAVA_SINK_TASK = "org.apache.kafka.connect.sink.SinkTask"


class ErrantRecords(ErrantRecordReporter):
    """The task's reporter, which the loop asks too.

    The converters serialize records that the task made itself; None: the task is a Java task, which
    does that in its process. Commits also wait for dead letters of the worker's own failures: a
    kill after the commit would lose them.
    """

    def __init__(self, tolerance: Tolerance, converters: Converters | None) -> None:
        self._tolerance = tolerance
        tolerance.on_skipped = self._skipped
        self._converters = converters
        self._task_class = _JAVA_SINK_TASK if converters is None else _SINK_TASK
        self._lock = threading.Lock()
        self._unfinished: dict[TopicPartition, set[Future[None]]] = {}
        self._lost: dict[TopicPartition, BaseException] = {}
        self._first: Failure | None = None

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Report; see the API. Raises exceptions of converters for a record that the task made."""
        failure = Failure(
            stage=RecordStage.TASK_PUT,
            class_name=self._task_class,
            error=error,
            record=self._reportable(record),
        )
        with self._lock:
            if self._first is None:
                # Before anything is raised: a task that catches the exception must fail too.
                self._first = failure
        pending = self._tolerance.failed(failure)
        if pending is None:
            pending = Future()
            pending.set_result(None)
        else:
            self._keep(origin_of(record)[0], pending)
        return pending

    def raise_failure(self) -> None:
        """Raise ConnectException when errors are not tolerated and one was reported."""
        failure = self._first
        if failure is not None and not self._tolerance.tolerate_all:
            raise self._tolerance.exceeded(failure) from failure.error

    def await_reports(self, partitions: Collection[TopicPartition]) -> None:
        """Wait until the reports of these partitions are durable, however long that takes.

        Raises ConnectException for one that failed.
        """
        for partition, future in self._take(partitions):
            error = future.exception()
            if error is not None:
                # The task ends of it, and its last commit must not pass the record either.
                self._lost[partition] = error
        for partition in partitions:
            if partition in self._lost:
                raise ConnectException(
                    "Encountered an error while awaiting an errant record future's completion."
                ) from self._lost[partition]

    def abandon(self, partitions: Collection[TopicPartition]) -> None:
        """Forget unfinished reports of lost partitions."""
        self._take(partitions)
        for partition in partitions:
            self._lost.pop(partition, None)

    def _reportable(self, record: SinkRecord) -> object:
        if isinstance(record, ConsumedRecord):
            return record
        converters = self._converters
        assert converters is not None
        return serialized(record, converters.key, converters.value, converters.header)

    def _skipped(self, record: object, pending: Future[None]) -> None:
        """Keep the report of a record that the worker left out.

        As in Kafka one that does not reach the queue is only logged and counted.
        """
        ended: Future[None] = Future()
        self._keep(origin_of(record)[0], ended)
        pending.add_done_callback(lambda _: ended.set_result(None))

    def _keep(self, partition: TopicPartition, pending: Future[None]) -> None:
        with self._lock:
            self._unfinished.setdefault(partition, set()).add(pending)
        pending.add_done_callback(lambda done: self._done(partition, done))

    def _done(self, partition: TopicPartition, future: Future[None]) -> None:
        """Forget a successful report; the next commit must meet a failed one."""
        if future.exception() is None:
            with self._lock:
                self._unfinished.get(partition, set()).discard(future)

    def _take(
        self, partitions: Collection[TopicPartition]
    ) -> list[tuple[TopicPartition, Future[None]]]:
        with self._lock:
            return [
                (partition, future)
                for partition in partitions
                for future in self._unfinished.pop(partition, set())
            ]
