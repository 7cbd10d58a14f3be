"""A sink loop over fakes, one iteration at a time, and a task that notes its calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metric_values import SINK_TASK, TASK
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.dead_letters import ErrantRecords
from pyconnect_agent.tasks.sink.delivery import PutEnd
from pyconnect_agent.tasks.sink.loop import SinkLoop
from pyconnect_agent.tasks.sink.pipeline import Intake, compose_conversion
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_api import SinkRecord, SinkTask, TopicPartition
from tests.agent.tasks.parts import FakeControl, converters, sink_metrics, tolerance
from tests.support.fakes.fake_clients import FakeConsumer, FakeMessage
from tests.support.functions import Function, chain_of

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
INTERVAL_MS, TIMEOUT_MS = 60_000, 5_000


class RecordingTask(SinkTask):
    """Notes every call with the value of `is_closing` during the call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, bool]] = []
        self.put_errors: list[Exception] = []
        self.pre_commit_errors: list[Exception] = []
        self.provide: Callable[[Mapping[TopicPartition, int]], Any] = lambda offsets: offsets
        self.on_open: Callable[[], None] = lambda: None

    def version(self) -> str:
        return "1"

    def start(self, props: Mapping[str, str]) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def note(self, call: str, detail: Any) -> None:
        self.calls.append((call, detail, self.context.is_closing))

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.note("put", [record.value for record in records])
        if self.put_errors:
            raise self.put_errors.pop(0)

    def pre_commit(self, current_offsets: Mapping[TopicPartition, int]) -> Any:
        self.note("pre_commit", dict(current_offsets))
        if self.pre_commit_errors:
            raise self.pre_commit_errors.pop(0)
        return self.provide(current_offsets)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.note("open", set(partitions))
        self.on_open()

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.note("close", set(partitions))

    def puts(self) -> list[list[str]]:
        return [detail for call, detail, _ in self.calls if call == "put"]

    def names(self) -> list[str]:
        return [call for call, _, _ in self.calls]


class Sink:
    """A loop over fakes, one iteration at a time; `now_ms` is the clock."""

    def __init__(
        self,
        *,
        transform: Function | None = None,
        tolerate_all: bool = False,
        task: RecordingTask | None = None,
        consumer: Callable[[Sink], FakeConsumer] = lambda _: FakeConsumer(),
        overlapped: bool = False,
        put_records: int = 500,
        slow_puts: bool = False,
        reports: ErrantRecords | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """Make the loop; with `overlapped` a put is done only when the loop waits for its end.

        `begun` counts batches with records. After slow puts the rest of a batch is not taken.
        """
        self.put_records = put_records
        self.slow_puts = slow_puts
        self.round = 0
        self.now_ms = 0
        self.begun = 0
        self.task = task or RecordingTask()
        self.consumer = consumer(self)
        self.control = FakeControl()
        self.states: list[State] = []
        self.retries: list[str | None] = []
        self.topics: list[str] = []
        self.context = WorkerSinkTaskContext(
            configs=dict, connector_paused=lambda: self.control.should_pause, reporter=None
        )
        handling = tolerance(tolerate_all=tolerate_all)
        self.metrics = sink_metrics()
        if not overlapped:
            put = self.task.put

            def counted(records: Sequence[SinkRecord]) -> None:
                self.begun += bool(records)
                put(records)

            self.task.put = counted  # type: ignore[method-assign]
        self.loop = SinkLoop(
            task=self.task,
            consumer=self.consumer,
            convert=compose_conversion(
                Intake(
                    topic_used=self.topics.append,
                    is_assigned=self.consumer.is_assigned,
                    check_error=lambda message: None,
                ),
                converters=converters(),
                chain=None if transform is None else chain_of(transform, tolerance=handling),
                tolerance=handling,
            ),
            context=self.context,
            control=self.control,  # type: ignore[arg-type]
            reports=reports,
            metrics=self.metrics,
            report=self.states.append,
            retries=ShownRetries(self.retries.append),
            flush_interval_ms=INTERVAL_MS,
            flush_timeout_ms=TIMEOUT_MS,
            max_poll_records=put_records,
            now_ms=self.tick,
            tracing=tracing,
            begin_put=self.begin_put if overlapped else None,
        )
        self.context.connect(self.consumer)
        self.task.initialize(self.context)

    def begin_put(self, records: Sequence[SinkRecord]) -> Callable[[], PutEnd]:
        """Begin a put as a Java process does, which refuses it after a frame that ended early."""
        self.begun += bool(records)
        return partial(self._take, self.round, list(records))

    def _take(self, begun_in: int, records: list[SinkRecord]) -> PutEnd:
        if begun_in < self.round:
            return PutEnd(taken=0, puts=(), stopped=True)
        taken, stopped = 0, False
        due: list[SinkRecord] = []
        error = None
        puts: list[tuple[int, float]] = []
        while not stopped and (taken < len(records) or not puts):
            due = records[taken : taken + self.put_records]
            asked = set(self.context.paused)
            try:
                self.task.put(list(due))
            except Exception as exc:
                error = exc
                break
            puts.append((len(due), 1.0))
            taken, due = taken + len(due), []
            late = self.slow_puts and taken < len(records)
            stopped = late or self.context.wants_offsets or bool(self.context.paused - asked)
        stopped |= error is not None
        self.round += stopped
        return PutEnd(taken=taken, puts=puts, stopped=stopped, due=len(due), error=error)

    def tick(self) -> int:
        # Time must pass while a poll waits, or the loop would never end.
        if self.consumer.timeouts_s:
            self.now_ms += int(sum(self.consumer.timeouts_s) * 1000)
            self.consumer.timeouts_s.clear()
        return self.now_ms

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self.consumer.assigned |= set(positions)
        self.loop.on_assigned(positions)

    def revoke(self, *partitions: TopicPartition) -> None:
        self.loop.on_revoked(partitions)
        self.consumer.assigned -= set(partitions)

    def lose(self, *partitions: TopicPartition) -> None:
        self.loop.on_lost(partitions)
        self.consumer.assigned -= set(partitions)

    def committed(self, figure: str) -> object:
        """Return a figure of the commits, such as `skip-total`."""
        groups = self.metrics.values()
        return {**groups[TASK], **groups[SINK_TASK]}[f"offset-commit-{figure}"]

    def deliver(self, *messages: FakeMessage) -> None:
        self.consumer.polls.append(messages)
        self.loop.step()

    def next_commit(self) -> None:
        """Do one iteration with the commit due, and nothing to consume."""
        self.now_ms += INTERVAL_MS
        self.consumer.polls.append([])
        self.context.timeout(1)
        self.loop.step()


def message(offset: int, partition: int = 0) -> FakeMessage:
    return FakeMessage("t", partition, offset, b"v%d" % offset)


def assigned_sink(reports: ErrantRecords | None = None) -> Sink:
    """Return a sink that has P0 and P1, and has noted nothing yet."""
    made = Sink(reports=reports)
    made.assign({P0: 0, P1: 0})
    made.task.calls.clear()
    return made
