"""Batches with retries for sinks, and the wait between attempts for sources.

Kafka has no counterpart. The worker's rules do not change: offsets of a batch that is not written
are not committed, and a RetriableException repeats `put`. A sink waits by `context.timeout`, a
source until `stop_requested` is set at the latest.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pyconnect_api.errors import ConnectException, RetriableException
from pyconnect_api.task import SinkTask, StopSignal, TopicPartition

if TYPE_CHECKING:
    from pyconnect_api.record import SinkRecord
    from pyconnect_api.task import SinkTaskContext


class BackOff:
    """Waits between attempts: each is twice as long as the previous one, up to a limit."""

    def __init__(self, *, first_ms: int = 100, max_ms: int = 60_000) -> None:
        self._first_ms = first_ms
        self._max_ms = max_ms
        self.failures = 0
        """Failures in a row."""

    def next_ms(self) -> int:
        """Count a failure and return the wait before the next attempt, in milliseconds."""
        # The bound keeps the number small: 2**32 times any first wait is more than the limit.
        wait_ms = min(self._first_ms << min(self.failures, 32), self._max_ms)
        self.failures += 1
        return wait_ms

    def wait(self, stop_requested: StopSignal) -> bool:
        """Count a failure and wait in a source's `poll`; return whether the task is to end."""
        return stop_requested.wait(self.next_ms() / 1000)

    def reset(self) -> None:
        """Note a success."""
        self.failures = 0


class BatchingSinkTask(SinkTask):
    """Collects records and calls `write` with a batch; repeats a batch after a RetriableException.

    Delivery is at-least-once: the offset of a record is committed after its `write` has returned.
    Set the limits in the class, or in `start` from the config:

    - ``batch_records``: the maximum number of records in a batch.
    - ``batch_bytes``: a batch ends with the record that brings it to this size; None: no limit.
    - ``batch_ms``: the longest wait of a record for its batch.
    - ``max_retries``: repetitions of a batch before the task fails; None: no limit.
    - ``back_off``: made in `initialize`; replace it in `start` for other waits.
    """

    batch_records: int = 500
    batch_bytes: int | None = None
    batch_ms: int = 1000
    max_retries: int | None = None
    back_off: BackOff

    @abstractmethod
    def write(self, records: Sequence[SinkRecord]) -> None:
        """Deliver a batch and return once it is durable.

        RetriableException: the same batch comes again after a wait. ConnectException fails the
        task; call `report` for refused records that must not stop the others.
        Must last less than ``task.shutdown.graceful.timeout.ms`` (5 s).
        """

    def size_of(self, record: SinkRecord) -> int:
        """Return the bytes of a record for ``batch_bytes``; by default of its text or bytes."""
        value = record.value
        if isinstance(value, bytes):
            return len(value)
        return len(value.encode()) if isinstance(value, str) else len(str(value))

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Report an undeliverable record; raise ``error`` if there is no reporter.

        If the batch is repeated, it comes without the record.
        """
        reporter = self.context.errant_record_reporter()
        if reporter is None:
            raise error
        reporter.report(record, error)
        self._reported.add(_place_of(record))

    def initialize(self, context: SinkTaskContext) -> None:
        super().initialize(context)
        self.back_off = BackOff()
        self._held: list[SinkRecord] = []
        self._given_again: set[tuple[TopicPartition, int]] = set()
        self._reported: set[tuple[TopicPartition, int]] = set()
        self._since = 0.0

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            if _place_of(record) in self._given_again:
                continue
            if not self._held:
                self._since = time.monotonic()
            self._held.append(record)
        self._given_again = set()
        try:
            self._write_batches(everything=False)
        except RetriableException:
            self._given_again = {_place_of(record) for record in records}
            raise
        if self._held:
            left_s = self._since + self.batch_ms / 1000 - time.monotonic()
            # Without a timeout the worker may not call `put` before its next commit.
            self.context.timeout(max(int(left_s * 1000), 0) + 1)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self._forget(partitions)

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        if self.context.is_closing:
            self._write_batches(everything=True)
        safe = dict(current_offsets)
        for record in self._held:
            partition, offset = _place_of(record)
            if partition in safe:
                safe[partition] = min(safe[partition], offset)
        return safe

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._forget(partitions)

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        gone = set(partitions)
        self._held = [record for record in self._held if _place_of(record)[0] not in gone]
        self._given_again = {each for each in self._given_again if each[0] not in gone}

    def _write_batches(self, *, everything: bool) -> None:
        while self._held:
            count, is_full = self._next_batch()
            is_due = time.monotonic() >= self._since + self.batch_ms / 1000
            if not (everything or is_full or is_due):
                return
            self._write(self._held[:count])
            del self._held[:count]
            self._since = time.monotonic()

    def _next_batch(self) -> tuple[int, bool]:
        """Return how many held records the next batch takes, and whether a limit ends it."""
        size = 0
        for count, record in enumerate(self._held, 1):
            if self.batch_bytes is not None:
                size += self.size_of(record)
            if count >= self.batch_records or size >= (self.batch_bytes or size + 1):
                return count, True
        return len(self._held), False

    def _write(self, batch: Sequence[SinkRecord]) -> None:
        self._reported.clear()
        try:
            self.write(batch)
        except RetriableException as error:
            self._held = [each for each in self._held if _place_of(each) not in self._reported]
            # The rest of the batch is due, even if no limit ends it.
            self._since = time.monotonic() - self.batch_ms / 1000
            wait_ms = self.back_off.next_ms()
            failures = self.back_off.failures
            if self.max_retries is not None and failures > self.max_retries:
                raise ConnectException(f"{error} ({failures} attempts)") from error
            self.context.timeout(wait_ms)
            raise RetriableException(f"{error}; the next try is in {wait_ms} ms") from error
        self.back_off.reset()


def _place_of(record: SinkRecord) -> tuple[TopicPartition, int]:
    partition = TopicPartition(record.original_topic, record.original_kafka_partition)
    return partition, record.original_kafka_offset
