"""The requests of a sink task to the worker (Kafka: WorkerSinkTaskContext).

Only the task's thread makes requests, except that any thread may call `request_commit`.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from pyconnect_agent.kafka.task_consumer import TaskConsumer
from pyconnect_api import (
    ConnectException,
    ErrantRecordReporter,
    IllegalWorkerStateException,
    SinkTaskContext,
    TopicPartition,
)

LOG = logging.getLogger(__name__)


class WorkerSinkTaskContext(SinkTaskContext):
    """The task's context; while `connector_paused` returns True, no partition is resumed."""

    def __init__(
        self,
        *,
        configs: Callable[[], Mapping[str, str]],
        connector_paused: Callable[[], bool],
        reporter: ErrantRecordReporter | None,
    ) -> None:
        self._configs = configs
        self._connector_paused = connector_paused
        self._reporter = reporter
        self._consumer: TaskConsumer | None = None
        self._offsets: dict[TopicPartition, int | None] = {}
        self._timeout_ms = -1
        self.commit_requested = threading.Event()
        self.paused: set[TopicPartition] = set()
        self.is_closing = False

    def connect(self, consumer: TaskConsumer) -> None:
        """Keep the consumer, which other calls need."""
        self._consumer = consumer

    def configs(self) -> Mapping[str, str]:
        return self._configs()

    def offset(
        self,
        target: TopicPartition | Mapping[TopicPartition, int | None],
        offset: int | None = None,
        /,
    ) -> None:
        wanted = target if isinstance(target, Mapping) else {TopicPartition(*target): offset}
        for partition, at in wanted.items():
            if at is not None and at < 0:
                # librdkafka reads negative offsets as the end, the beginning and the last commit.
                raise ConnectException(f"An offset must not be negative: {at} for {partition}")
        self._offsets.update(wanted)

    def timeout(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms

    def assignment(self) -> frozenset[TopicPartition]:
        return self.connected().assignment()

    def pause(self, *partitions: TopicPartition) -> None:
        consumer = self._owner_of(partitions, "pause")
        self.paused.update(partitions)
        if not self._connector_paused():
            consumer.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        consumer = self._owner_of(partitions, "resume")
        self.paused.difference_update(partitions)
        if not self._connector_paused():
            consumer.resume(partitions)

    def request_commit(self) -> None:
        self.commit_requested.set()

    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        return self._reporter

    @property
    def wants_offsets(self) -> bool:
        """Whether the task has asked to go on at other offsets."""
        return bool(self._offsets)

    def take_offsets(self) -> dict[TopicPartition, int]:
        """Return the offsets at which the task wants to go on, and forget them."""
        wanted, self._offsets = self._offsets, {}
        for partition, offset in wanted.items():
            if offset is None:
                LOG.warning("cannot rewind to no offset", extra={"partition": str(partition)})
        return {p: offset for p, offset in wanted.items() if offset is not None}

    def take_timeout_ms(self) -> int:
        """Return the limit of the next wait, -1 for none, and forget it."""
        timeout_ms, self._timeout_ms = self._timeout_ms, -1
        return timeout_ms

    def connected(self) -> TaskConsumer:
        """Return the consumer. Raises IllegalWorkerStateException before there is one."""
        if self._consumer is None:
            raise IllegalWorkerStateException(
                "SinkTaskContext may not be used to look up partition assignment until the task "
                "is initialized"
            )
        return self._consumer

    def _owner_of(self, partitions: Iterable[TopicPartition], what: str) -> TaskConsumer:
        if self._consumer is None:
            raise IllegalWorkerStateException(
                f"SinkTaskContext may not be used to {what} consumption until the task is "
                "initialized"
            )
        for partition in partitions:
            if not self._consumer.is_assigned(partition):
                raise IllegalWorkerStateException(
                    f"SinkTasks may not {what} partitions that are not currently assigned to them."
                )
        return self._consumer
