"""A task's producer and consumer in memory, at the seams of `kafka.task_producer` and
`kafka.task_consumer`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError
from pyconnect_agent.kafka.task_producer import RecordColumns, TaskProducer
from pyconnect_api import TopicPartition

RebalanceStep = Callable[[], None]


@dataclass(frozen=True, slots=True)
class FakeMessage:
    """A consumed or delivered message with the client's accessors."""

    the_topic: str = "t"
    the_partition: int = 0
    the_offset: int = 0
    the_value: bytes | None = None
    the_key: bytes | None = None
    the_timestamp: tuple[int, int] = (1, 1_700_000_000_000)
    the_headers: tuple[tuple[str, bytes | None], ...] = ()
    the_error: Any = None

    def topic(self) -> str:
        return self.the_topic

    def partition(self) -> int:
        return self.the_partition

    def offset(self) -> int:
        return self.the_offset

    def key(self) -> bytes | None:
        return self.the_key

    def value(self) -> bytes | None:
        return self.the_value

    def timestamp(self) -> tuple[int, int]:
        return self.the_timestamp if self.the_error is None else (0, -1)

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self.the_headers) or None

    def error(self) -> Any:
        return self.the_error

    def __len__(self) -> int:
        return len(self.the_value or b"")


@dataclass(slots=True)
class Sent:
    """A record in the fake producer that is not yet delivered."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int
    done: Callable[[Any, Any], None]
    timestamp: int
    headers: Any = None


def explained(failure: Any, text: str) -> KafkaError:
    """Return a producer's explanation of an error; only a timeout is temporary."""
    error = failure.args[0] if isinstance(failure, KafkaException) else failure
    retriable = isinstance(error, ClientError) and error.code() == ClientError._TIMED_OUT
    return RetriableKafkaError(text) if retriable else KafkaError(text)


def produce_each(
    produce: Callable[..., None], records: RecordColumns, on_delivery: Iterable[Any]
) -> int:
    """Produce one record after the other, with the result of `TaskProducer.produce_many`."""
    for place, done in zip(range(len(records.values)), on_delivery, strict=False):
        try:
            produce(
                records.topics[place],
                records.values[place],
                records.keys[place],
                records.partitions[place],
                done,
                timestamp=records.timestamps[place],
                headers=records.headers[place],
            )
        except (BufferError, KafkaException):
            return place
    return len(records.values)


class FakeProducer:
    """A producer that keeps records until `deliver` or `fail`; `serve` runs due callbacks.

    `refusals` are raised by the next calls of `produce`, one each. `auto_deliver`: every `serve`
    delivers all.
    """

    def __init__(self, *, auto_deliver: bool = False) -> None:
        self.auto_deliver = auto_deliver
        self.sent: list[Sent] = []
        self.waiting: list[Sent] = []
        self.refusals: list[BaseException] = []
        self._due: list[Callable[[], None]] = []
        self._offset = 0

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        on_delivery: Callable[[Any, Any], None],
        # The order of these arguments differs between versions of the real client; their names do
        # not.
        *,
        timestamp: int,
        headers: Any = None,
    ) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        record = Sent(topic, value, key, partition, on_delivery, timestamp, headers)
        self.sent.append(record)
        self.waiting.append(record)

    def produce_many(self, records: RecordColumns, on_delivery: Iterable[Any]) -> int:
        return produce_each(self.produce, records, on_delivery)

    def deliver(self, *indexes: int) -> None:
        """Acknowledge waiting records; without indexes all of them."""
        for record in [self.waiting[i] for i in indexes] if indexes else list(self.waiting):
            self.waiting.remove(record)
            message = FakeMessage(record.topic, max(record.partition, 0), self._offset)
            self._offset += 1
            self._due.append(lambda r=record, m=message: r.done(None, m))  # type: ignore[misc]

    def fail(self, index: int, code: int) -> None:
        """Fail a waiting record permanently."""
        record = self.waiting.pop(index)
        error = ClientError(code)
        message = FakeMessage(record.topic, 0, -1, record.value)
        self._due.append(lambda: record.done(error, message))

    def serve(self, timeout_s: float = 0.0) -> int:
        if self.auto_deliver:
            self.deliver()
        due, self._due = self._due, []
        for callback in due:
            callback()
        return len(due)

    def in_flight(self) -> int:
        return len(self.waiting) + len(self._due)

    def drain(self, timeout_s: float, *, until: Callable[[], bool]) -> bool:
        self.serve()
        return until()

    def open_topic(self, topic: str, *, give_up: Callable[[], bool]) -> None:
        """Return at once: the test delivers."""

    def explain(self, failure: Any, topic: str, size: int) -> KafkaError:
        return explained(failure, f"{failure} ({size} bytes to {topic})")

    @staticmethod
    def is_asynchronous(failure: BaseException) -> bool:
        return TaskProducer.is_asynchronous(failure)


@dataclass
class FakeConsumer:
    """A consumer that returns `polls` one by one: messages, or functions that act as a rebalance.

    Commits are kept; `finish_commit` completes the oldest asynchronous one.
    """

    polls: list[Sequence[FakeMessage] | RebalanceStep] = field(default_factory=list)
    assigned: set[TopicPartition] = field(default_factory=set)
    paused: set[TopicPartition] = field(default_factory=set)
    seeks: list[tuple[TopicPartition, int]] = field(default_factory=list)
    committed: list[dict[TopicPartition, int]] = field(default_factory=list)
    pending: list[tuple[dict[TopicPartition, int], Callable[[KafkaError | None], None]]] = field(
        default_factory=list
    )
    commit_failure: KafkaError | None = None
    timeouts_s: list[float] = field(default_factory=list)

    def poll(self, max_records: int, timeout_s: float) -> list[Any]:
        self.timeouts_s.append(timeout_s)
        if not self.polls:
            return []
        step = self.polls.pop(0)
        if callable(step):
            step()
            return []
        return [m for m in step if TopicPartition(m.topic(), m.partition()) not in self.paused]

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self.assigned)

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self.assigned

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused |= self.assigned.intersection(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused -= set(partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.seeks.append((partition, offset))

    def commit_sync(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self.commit_failure is not None:
            raise self.commit_failure
        self.committed.append(dict(offsets))

    def commit_async(
        self, offsets: Mapping[TopicPartition, int], done: Callable[[KafkaError | None], None]
    ) -> None:
        self.pending.append((dict(offsets), done))

    def finish_commit(self, error: KafkaError | None = None) -> None:
        """Complete the oldest asynchronous commit."""
        offsets, done = self.pending.pop(0)
        if error is None:
            self.committed.append(offsets)
        done(error)
