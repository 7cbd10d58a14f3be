"""The loop of a sink task (Kafka: WorkerSinkTask).

The loop runs on the process's main thread, rebalance callbacks included. The consumer's poll calls
these, and they must not raise: their exceptions are kept and raised after the poll.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from pyconnect_agent.core.ids import State
from pyconnect_agent.core.offsets.sink import SinkOffsets
from pyconnect_agent.kafka.task_consumer import ConsumedMessage, TaskConsumer
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.dead_letters import ErrantRecords
from pyconnect_agent.tasks.sink.delivery import (
    BeginPut,
    FrameSize,
    SinkCommits,
    SinkDelivery,
    put_at_once,
)
from pyconnect_agent.tasks.sink.pipeline import Convert
from pyconnect_agent.tasks.task_metrics import SinkMetrics
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_api import ConnectException, RetriableException, SinkRecord, SinkTask, TopicPartition

LOG = logging.getLogger(__name__)

UNRECOVERABLE = "Exiting WorkerSinkTask due to unrecoverable exception."
POLL_SLICE_S = 0.1
"""How long the consumer may wait before the loop reads the worker's requests again."""


class SinkLoop:
    """Consumes, converts, delivers and commits until the worker asks for a stop.

    `report` sends a state to the worker; `now_ms` is any monotonic clock. With `begin_put` the loop
    begins batches while the task takes one. The task sees no difference: the loop waits for the end
    of all puts before any other call of the task, and the offsets of a batch count after its end.
    """

    def __init__(
        self,
        *,
        task: SinkTask,
        consumer: TaskConsumer,
        convert: Convert,
        context: WorkerSinkTaskContext,
        control: Control,
        reports: ErrantRecords | None,
        metrics: SinkMetrics,
        report: Callable[[State], None],
        retries: ShownRetries,
        flush_interval_ms: int,
        flush_timeout_ms: int,
        max_poll_records: int,
        now_ms: Callable[[], int],
        begin_put: BeginPut | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._task = task
        self._overlaps = begin_put is not None
        self._consumer = consumer
        self._convert = convert
        self._context = context
        self._control = control
        self._reports = reports
        self._metrics = metrics
        self._report = report
        self._tracing = tracing
        self._retries = retries
        self._flush_interval_ms = flush_interval_ms
        self._max_poll_records = max_poll_records
        self._now_ms = now_ms
        self._paused_for_redelivery = False
        self._unopened: set[TopicPartition] = set()
        self._paused_for_opening = False
        self._paused = False
        self._rebalance_error: Exception | None = None
        self._task_stopped = False
        self._next_commit_ms = now_ms() + flush_interval_ms
        self.last_put_ms: int | None = None
        self.offsets = SinkOffsets()
        self._delivery = SinkDelivery(
            begin_put=begin_put or put_at_once(task),
            frame=FrameSize(max_poll_records, grows=self._overlaps),
            offsets=self.offsets,
            consumer=consumer,
            reports=reports,
            metrics=metrics,
            tracing=tracing,
        )
        self.commits = SinkCommits(
            task=task,
            consumer=consumer,
            offsets=self.offsets,
            context=context,
            reports=reports,
            metrics=metrics,
            flush_timeout_ms=flush_timeout_ms,
            now_ms=now_ms,
        )

    def run(self) -> None:
        """Return when the worker asks for a stop. Any exception makes the task FAILED.

        The loop closes all partitions in either case, with a last commit.
        """
        try:
            try:
                while not self._control.stopping:
                    self.step()
            finally:
                self._finish_puts()
        finally:
            self._close_partitions(tuple(self.offsets.current))
            self._metrics.partition_count = 0

    @property
    def pending(self) -> int:
        """Number of records that the task has not taken yet; other threads read it too."""
        return self._delivery.pending

    def task_stopped(self) -> None:
        """Keep rebalances, such as that of the consumer's close, from the task from now on."""
        self._task_stopped = True

    def step(self) -> None:
        """Do one iteration: maybe a commit, one poll, one put."""
        self._follow_target_state()
        now_ms = self._now_ms()
        commits = self.commits
        if not commits.committing and (
            self._context.commit_requested.is_set() or now_ms >= self._next_commit_ms
        ):
            self._finish_puts()
            commits.commit(self._consumer.assignment() - self._unopened, closing=False)
            self._next_commit_ms = now_ms + self._flush_interval_ms
            self._context.commit_requested.clear()
        commits.give_up_late()
        if self._delivery.puts and self._put_ahead():
            return
        messages = self._poll(max(self._next_commit_ms - now_ms, 0))
        if messages is None:
            return
        if messages:
            self._delivery.add(messages, *self._converted(messages))
        if self._paused_for_opening:
            self._open()
        if not self._paused_for_opening:
            self._deliver()

    def _put_ahead(self) -> bool:
        """Begin the next put while others are under way; return False if there is nothing to put.

        If one of the others does not take all its records, the records consumed here are consumed
        again.
        """
        messages = self._poll_for(0)
        if not messages:
            self._finish_puts()
            return False
        records, ends, foreign = self._converted(messages)
        # A rebalance within the poll ends all puts.
        goes_on = bool(self._delivery.puts)
        # A batch smaller than a put may still grow while the task takes another.
        most = self._delivery.frame.under_way if len(messages) >= self._max_poll_records else 1
        while goes_on and len(self._delivery.puts) >= most:
            goes_on = self._finish_put()
        if goes_on and not self._context.wants_offsets:
            self._delivery.add(messages, records, ends, foreign)
            self._deliver()
        else:
            self._finish_puts()
            self._delivery.give_back(ends)
        return True

    def _converted(
        self, messages: Sequence[ConsumedMessage]
    ) -> tuple[Sequence[SinkRecord], dict[TopicPartition, int], int]:
        ends: dict[TopicPartition, int] = {}
        records, foreign = self._convert(messages, ends)
        return records, ends, foreign

    def _follow_target_state(self) -> None:
        if self._control.should_pause == self._paused:
            return
        self._finish_puts()
        self._paused = self._control.should_pause
        if self._paused:
            self._consumer.pause(self._consumer.assignment())
            self._report(State.PAUSED)
            self._context.request_commit()
        else:
            if not (self._paused_for_redelivery or self._paused_for_opening):
                self._resume_all()
            self._retries.forget()
            self._report(State.RUNNING)

    def _resume_all(self) -> None:
        self._consumer.resume(self._consumer.assignment() - self._context.paused)

    def _poll(self, timeout_ms: int) -> Sequence[ConsumedMessage] | None:
        """Wait for messages; return None when a request of the worker comes first."""
        self._rewind()
        retry_ms = self._context.take_timeout_ms()
        if retry_ms > 0:
            timeout_ms = min(timeout_ms, retry_ms)
        deadline_ms = self._now_ms() + timeout_ms
        while True:
            remaining_s = max(0.0, (deadline_ms - self._now_ms()) / 1000)
            messages = self._poll_for(min(POLL_SLICE_S, remaining_s))
            if messages or remaining_s <= POLL_SLICE_S:
                return messages
            if self._control.stopping or self._control.should_pause != self._paused:
                return None
            if self._context.commit_requested.is_set() and not self.commits.committing:
                return ()

    def _poll_for(self, timeout_s: float) -> Sequence[ConsumedMessage]:
        messages = self._consumer.poll(self._delivery.frame.records, timeout_s)
        if self._rebalance_error is not None:
            error, self._rebalance_error = self._rebalance_error, None
            raise error
        if self._tracing is not None:
            self._tracing.read(messages)
        return messages

    def _rewind(self) -> None:
        wanted = self._context.take_offsets()
        if not wanted:
            return
        for partition, offset in wanted.items():
            self._consumer.seek(partition, offset)
        self.offsets.rewind(wanted)

    def _deliver(self) -> None:
        self.last_put_ms = int(time.time() * 1000)
        try:
            self._delivery.begin()
        except Exception as exc:
            raise ConnectException(UNRECOVERABLE) from exc
        if not self._overlaps:
            self._finish_put()

    def _finish_puts(self) -> None:
        """Wait for the end of all puts that are under way."""
        while self._delivery.puts:
            self._finish_put()

    def _finish_put(self) -> bool:
        """Wait for the end of the oldest put; return whether the puts after it go on."""
        try:
            goes_on = self._delivery.finish_oldest()
        except RetriableException as exc:
            LOG.exception("put failed and is repeated")
            self._retries.failed(exc)
            if not self._paused_for_redelivery:
                # Paused, so that no new records come before the batch is taken; polls go on, as
                # they keep the membership alive.
                self._paused_for_redelivery = True
                self._consumer.pause(self._consumer.assignment())
            return False
        except Exception as exc:
            self._delivery.puts.clear()
            raise ConnectException(UNRECOVERABLE) from exc
        self._retries.succeeded()
        if self._paused_for_redelivery:
            if not self._control.should_pause:
                self._resume_all()
            self._paused_for_redelivery = False
        return goes_on

    def _open(self) -> None:
        """Open the partitions that are not open; after a RetriableException a later step does it.

        Until then nothing is consumed, but polls go on: they keep the membership alive.
        """
        try:
            if self._unopened:
                self._task.open(list(self._unopened))
        except RetriableException as exc:
            LOG.warning("open failed and is repeated", exc_info=True)
            self._retries.failed(exc)
            self._paused_for_opening = True
            self._consumer.pause(self._consumer.assignment())
            return
        self._unopened.clear()
        self._rewind()
        if self._paused_for_opening:
            self._paused_for_opening = False
            self._retries.succeeded()
            if not (self._paused_for_redelivery or self._control.should_pause):
                self._resume_all()

    def on_assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """Open new partitions. Called by the consumer's poll; never raises."""
        if self._task_stopped:
            return
        self._finish_puts_in_poll()
        self.offsets.assign(positions)
        self._metrics.partition_count = len(self.offsets.current)
        self._pause_after_assignment()
        if not positions or self._rebalance_error is not None:
            return
        self._unopened.update(positions)
        try:
            self._open()
        except Exception as exc:  # noqa: BLE001  raised again after the poll
            self._rebalance_error = exc

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Commit and close partitions that the consumer gives up."""
        self._removed(partitions, lost=False)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Close partitions that another member already has."""
        self._removed(partitions, lost=True)

    def _finish_puts_in_poll(self) -> None:
        """Do first what would have happened before the poll without a put under way."""
        if not self._delivery.puts:
            return
        try:
            self._finish_puts()
            self._rewind()
        except Exception as exc:  # noqa: BLE001  raised again after the poll
            self._rebalance_error = exc

    def _pause_after_assignment(self) -> None:
        assignment = self._consumer.assignment()
        was_paused = self._paused_for_redelivery
        self._paused_for_redelivery = was_paused and self._delivery.has_batch
        if self._paused_for_redelivery:
            self._consumer.pause(assignment)
            return
        if was_paused:
            self._resume_all()
        self._context.paused.intersection_update(assignment)
        if self._control.should_pause:
            self._consumer.pause(assignment)
        elif self._context.paused:
            self._consumer.pause(self._context.paused)

    def _removed(self, partitions: Sequence[TopicPartition], *, lost: bool) -> None:
        if self._task_stopped or not partitions:
            return
        self._finish_puts_in_poll()
        try:
            if lost:
                if opened := [p for p in partitions if p not in self._unopened]:
                    self._task.close(opened)
                if self._reports is not None:
                    self._reports.abandon(partitions)
            else:
                self._close_partitions(partitions)
        except Exception as exc:  # noqa: BLE001  raised again after the poll
            self._rebalance_error = exc
        finally:
            self.offsets.forget(partitions)
            gone = set(partitions)
            self._unopened -= gone
            self._metrics.partition_count = len(self.offsets.current)
            self._delivery.drop(gone)

    def _close_partitions(self, partitions: Collection[TopicPartition]) -> None:
        opened = [p for p in partitions if p not in self._unopened]
        self.commits.commit(opened, closing=True)
        self.offsets.forget(partitions)
