"""The at-least-once loop of a source task over fakes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pyconnect_agent.core.ids import State
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_agent.tasks.control import ActiveTopics
from pyconnect_agent.tasks.source.at_least_once import AtLeastOnceSender, SourceCommitter
from pyconnect_agent.tasks.source.loop import SourceLoop
from pyconnect_agent.tasks.source.pipeline import compose
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_api import STRING_SCHEMA, RecordMetadata, SourceRecord, SourceTask
from tests.agent.tasks.parts import FakeControl, converters, source_metrics, tolerance
from tests.support.fakes.fake_clients import FakeProducer
from tests.support.functions import Function, chain_of


def record(position: int, partition: str = "f", **values: Any) -> SourceRecord:
    settings: dict[str, Any] = {
        "topic": "t",
        "value_schema": STRING_SCHEMA,
        "value": f"v{position}",
        **values,
    }
    return SourceRecord({"file": partition}, {"position": position}, **settings)


Polls: TypeAlias = Sequence[Sequence[SourceRecord] | Exception | None]


class ScriptedTask(SourceTask):
    """Returns or raises the items of `polls`, one in each poll."""

    def __init__(self, polls: Polls = ()) -> None:
        self.polls = list(polls)
        self.commits = 0

    def version(self) -> str:
        return "1"

    def start(self, props: Mapping[str, str]) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def poll(self) -> Sequence[SourceRecord] | None:
        polled = self.polls.pop(0) if self.polls else None
        if isinstance(polled, Exception):
            raise polled
        return polled

    def commit(self) -> None:
        self.commits += 1


class NotingTask(ScriptedTask):
    """Notes the results of its records, by their values."""

    def __init__(self, polls: Polls = ()) -> None:
        super().__init__(polls)
        self.records: list[tuple[Any, RecordMetadata | None]] = []

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self.records.append((record.value, metadata))


class Source:
    """A loop over fakes, one iteration at a time; `written` is the offset store."""

    def __init__(
        self,
        *,
        transform: Function | None = None,
        tolerate_all: bool = False,
        task: NotingTask | None = None,
        producer: TaskProducer | None = None,
    ) -> None:
        """Make the loop; `producer`: a real one in place of the fake."""
        self.task = NotingTask() if task is None else task
        self.producer = FakeProducer()
        self.control = FakeControl()
        self.states: list[State] = []
        self.retries: list[str | None] = []
        self.topics: list[str] = []
        self.written: list[dict[bytes, bytes | None]] = []
        self.write_failure: Exception | None = None
        handling = tolerance(tolerate_all=tolerate_all)
        self.metrics = source_metrics()
        self.committer = SourceCommitter(
            connector="c",
            task=self.task,
            write=self.write,
            flush_interval_ms=60_000,
            flush_timeout_ms=5_000,
            serve_if_idle=lambda: None,
            metrics=self.metrics,
        )
        self.sender = AtLeastOnceSender(
            task=self.task,
            producer=producer or self.producer,  # type: ignore[arg-type]
            tolerance=handling,
            topics=ActiveTopics(self.topics.append),
            stop_requested=lambda: self.control.stopping,
            committer=self.committer,
            metrics=self.metrics,
        )
        # Other tests compare runs with single records.
        self.sender.takes_runs = False
        self.loop = SourceLoop(
            task=self.task,
            pipeline=compose(
                converters=converters(),
                chain=None if transform is None else chain_of(transform, tolerance=handling),
                tolerance=handling,
            ),
            sender=self.sender,
            control=self.control,  # type: ignore[arg-type]
            report=self.states.append,
            retries=ShownRetries(self.retries.append),
            metrics=self.metrics,
        )

    def write(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        assert 0 <= timeout_ms <= 5_000
        if self.write_failure is not None:
            raise self.write_failure
        self.written.append(entries)

    def poll(self, *records: SourceRecord) -> None:
        self.task.polls.append(records)
        self.loop.step()


def entry(position: int, partition: str = "f") -> dict[bytes, bytes | None]:
    return {b'["c",{"file":"%s"}]' % partition.encode(): b'{"position":%d}' % position}
