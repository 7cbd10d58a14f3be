"""A transactional producer in memory, with the records that a consumer would read as committed."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from pyconnect_agent.core.errors import AgentError, KafkaError
from pyconnect_agent.kafka.task_producer import RecordColumns, TaskProducer
from tests.support.fakes.fake_clients import FakeMessage, explained, produce_each

Written = tuple[str, bytes | None, bytes | None]
"""Topic, value, key."""


@dataclass
class FakeTransactions:
    """The producer as `tasks.source.exactly_once` uses it.

    `calls` are begin, commit and abort in order. `refusals` are raised by the next calls of
    `produce`, `commit_failures` by the next commits, `serve_failures` by the next `serve`, one
    each. Records are delivered by a commit, or by `serve` when there is one.
    """

    transaction_timeout_ms: int = 60_000
    committed: list[list[Written]] = field(default_factory=list)
    aborted: list[list[Written]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    refusals: list[BaseException] = field(default_factory=list)
    commit_failures: list[AgentError] = field(default_factory=list)
    serve_failures: list[AgentError] = field(default_factory=list)
    _open: list[Written] | None = None
    _waiting: list[Callable[[], None]] = field(default_factory=list)

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = -1,
        on_delivery: Callable[[Any, Any], None] | None = None,
        *,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        assert self._open is not None, "produced outside a transaction"
        if self.refusals:
            raise self.refusals.pop(0)
        if on_delivery is not None:
            message = FakeMessage(topic, max(partition, 0), len(self._open))
            self._waiting.append(lambda: on_delivery(None, message))
        self._open.append((topic, value, key))

    def produce_many(self, records: RecordColumns, on_delivery: Iterable[Any]) -> int:
        return produce_each(self.produce, records, on_delivery)

    def begin(self) -> None:
        assert self._open is None, "began within a transaction"
        self.calls.append("begin")
        self._open = []

    def commit(self, topics: Collection[str] = ()) -> None:
        assert self._open is not None
        self.calls.append("commit")
        if self.commit_failures:
            raise self.commit_failures.pop(0)
        self.serve()
        self.committed.append(self._open)
        self._open = None

    def abort(self) -> None:
        assert self._open is not None
        self.calls.append("abort")
        self._waiting.clear()
        self.aborted.append(self._open)
        self._open = None

    def in_flight(self) -> int:
        return len(self._waiting)

    def serve(self, timeout_s: float = 0.0) -> int:
        if self.serve_failures:
            raise self.serve_failures.pop(0)
        waiting, self._waiting = self._waiting, []
        for deliver in waiting:
            deliver()
        return len(waiting)

    def explain(self, failure: Any, topic: str, size: int) -> KafkaError:
        return explained(failure, f"{failure} ({size} bytes to {topic})")

    def is_asynchronous(self, failure: BaseException) -> bool:
        return TaskProducer.is_asynchronous(failure)
