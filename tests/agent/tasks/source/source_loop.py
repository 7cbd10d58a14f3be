"""The at-least-once loop of a source task over fakes."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pyconnect_agent.builtin.converters.base import SimpleHeaderConverter, StringConverter
from pyconnect_agent.core.ids import State
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_agent.tasks.control import ActiveTopics
from pyconnect_agent.tasks.plugins import Converters
from pyconnect_agent.tasks.records import Tolerance
from pyconnect_agent.tasks.source.at_least_once import AtLeastOnceSender, SourceCommitter
from pyconnect_agent.tasks.source.loop import SourceLoop
from pyconnect_agent.tasks.source.pipeline import compose
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_api import STRING_SCHEMA, RecordMetadata, SourceRecord, SourceTask
from tests.agent.tasks.fake_control import FakeControl
from tests.agent.tasks.metrics import source_metrics
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


class ScriptedTask(SourceTask):
    """Returns or raises what `polls` holds, one each; notes what it is told."""

    def __init__(self) -> None:
        self.polls: list[Sequence[SourceRecord] | Exception | None] = []
        self.records: list[tuple[Any, RecordMetadata | None]] = []
        self.commits = 0

    def version(self) -> str:
        return "1"

    def start(self, props: Mapping[str, str]) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""

    def poll(self) -> Sequence[SourceRecord] | None:
        polled = self.polls.pop(0) if self.polls else None
        if isinstance(polled, Exception):
            raise polled
        return polled

    def commit(self) -> None:
        self.commits += 1

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self.records.append((record.value, metadata))


class Source:
    """A loop over fakes, stepped by hand; `written` is the offset store."""

    def __init__(
        self,
        *,
        transform: Function | None = None,
        tolerate_all: bool = False,
        task: ScriptedTask | None = None,
        producer: TaskProducer | None = None,
    ) -> None:
        """`producer`: a real one in place of the fake."""
        self.task = ScriptedTask() if task is None else task
        self.producer = FakeProducer()
        self.control = FakeControl()
        self.states: list[State] = []
        self.retries: list[str | None] = []
        self.topics: list[str] = []
        self.written: list[dict[bytes, bytes | None]] = []
        self.write_failure: Exception | None = None
        tolerance = Tolerance(
            tolerate_all=tolerate_all,
            policy=RetryPolicy(),
            reporters=(),
            stop_requested=threading.Event(),
        )
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
            tolerance=tolerance,
            topics=ActiveTopics(self.topics.append),
            stop_requested=lambda: self.control.stopping,
            committer=self.committer,
            metrics=self.metrics,
        )
        # Runs are compared to single records elsewhere.
        self.sender.takes_runs = False
        converter = StringConverter()
        self.loop = SourceLoop(
            task=self.task,
            pipeline=compose(
                converters=Converters(
                    key=converter, value=converter, header=SimpleHeaderConverter()
                ),
                chain=None if transform is None else chain_of(transform, tolerance=tolerance),
                tolerance=tolerance,
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
