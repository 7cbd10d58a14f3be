"""Offset commits of a sink task (Kafka: WorkerSinkTask.commitOffsets, KIP-275).

Everything runs on the task's thread, results of asynchronous commits included.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.offsets.sink import SinkOffsets, validate
from pyconnect_agent.kafka.task_consumer import TaskConsumer
from pyconnect_agent.tasks.setup.plugins import plain_offsets
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.dead_letters import ErrantRecords
from pyconnect_agent.tasks.task_metrics import SinkMetrics
from pyconnect_api import SinkTask, TopicPartition

LOG = logging.getLogger(__name__)


class SinkCommits:
    """At most one commit is under way; `now_ms` is any monotonic clock."""

    def __init__(
        self,
        *,
        task: SinkTask,
        consumer: TaskConsumer,
        offsets: SinkOffsets,
        context: WorkerSinkTaskContext,
        reports: ErrantRecords | None,
        metrics: SinkMetrics,
        flush_timeout_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._task = task
        self._consumer = consumer
        self._offsets = offsets
        self._context = context
        self._reports = reports
        self._metrics = metrics
        self._flush_timeout_ms = flush_timeout_ms
        self._now_ms = now_ms
        self._sequence = 0
        self._started_ms = 0
        self._closing = False
        self.committing = False
        self.last_commit_ms: int | None = None

    def give_up_late(self) -> None:
        """Stop waiting for a commit that is out of time; its result still counts when it comes."""
        if self.committing and self._now_ms() >= self._started_ms + self._flush_timeout_ms:
            LOG.warning("commit of offsets timed out")
            self._failed(self._now_ms() - self._started_ms)
            self.committing = False

    def commit(self, partitions: Collection[TopicPartition], *, closing: bool) -> None:
        """Commit the offsets of these partitions that the task allows; `closing` also closes them.

        Raises ConnectException for a failed error report, and exceptions of `task.close`.
        """
        if self._reports is not None:
            self._reports.await_reports(partitions)
        offered = self._offsets.offered(partitions)
        if not offered:
            return
        self.committing = True
        self._closing = closing
        self._sequence += 1
        self._metrics.sequence = self._sequence
        self._started_ms = self._now_ms()
        base = self._offsets.base(offered)
        provided = self._pre_commit(offered, base, partitions, closing)
        if provided is None:
            return
        sequence = self._sequence
        if not provided:
            LOG.debug("offset commit skipped: the task returned no offsets")
            self._completed(None, sequence, None)
            return
        result = validate(
            base=base,
            offered=offered,
            provided=provided,
            assignment=self._consumer.assignment(),
        )
        for partition, offset, reason in result.refused:
            LOG.warning(
                "invalid offset of the task ignored",
                extra={"partition": str(partition), "offset": offset, "reason": reason},
            )
        offsets = result.offsets
        if offsets == base:
            LOG.debug("offset commit skipped: no change since the last one")
            self._completed(None, sequence, None)
        elif closing:
            try:
                self._consumer.commit_sync(offsets)
            except KafkaError as exc:
                self._completed(exc, sequence, offsets)
            else:
                self._completed(None, sequence, offsets)
        else:
            self._consumer.commit_async(
                offsets, lambda error: self._completed(error, sequence, offsets)
            )

    def _pre_commit(
        self,
        offered: dict[TopicPartition, int],
        base: dict[TopicPartition, int],
        partitions: Collection[TopicPartition],
        closing: bool,
    ) -> Mapping[TopicPartition, int] | None:
        """Ask the task; None when it raised, which is dealt with here."""
        provided: Mapping[TopicPartition, int] | None = None
        error: Exception | None = None
        self._context.is_closing = closing
        try:
            provided = self._task.pre_commit(dict(offered))
        except Exception as exc:  # noqa: BLE001  plugin code: a failed commit must not end the task
            error = exc
        finally:
            self._context.is_closing = False
        if closing:
            self._task.close(partitions)
        if error is None:
            return plain_offsets(provided, type(self._task).__qualname__)
        if closing:
            LOG.warning("offset commit failed during close", exc_info=error)
        else:
            LOG.error("offset commit failed, rewinding to last committed offsets", exc_info=error)
            for partition, offset in base.items():
                self._consumer.seek(partition, offset)
            self._offsets.rewind(base)
        self._completed(error, self._sequence, None)
        return None

    def _completed(
        self,
        error: Exception | None,
        sequence: int,
        offsets: Mapping[TopicPartition, int] | None,
    ) -> None:
        if sequence != self._sequence:
            self._metrics.commit_skipped()
            return
        self.committing = False
        duration_ms = self._now_ms() - self._started_ms
        if error is not None:
            LOG.error("commit of offsets failed", extra={"reason": str(error)})
            self._failed(duration_ms)
            return
        if offsets is not None:
            self.last_commit_ms = int(time.time() * 1000)
            # Partitions that were lost meanwhile stay forgotten.
            current = self._offsets.current
            self._offsets.committed.update(
                {p: offset for p, offset in offsets.items() if p in current}
            )
        self._metrics.committed(duration_ms, success=True, closing=self._closing)
        self._metrics.look_at(self._offsets, at_once=True)

    def _failed(self, duration_ms: int) -> None:
        self._metrics.committed(duration_ms, success=False, closing=self._closing)
