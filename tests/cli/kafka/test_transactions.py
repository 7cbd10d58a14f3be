"""Brokers' answers about transactions, while coordinators start and transactions end."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pyconnect_cli.errors import Unreachable, WaitTimedOut
from pyconnect_cli.kafka import transactions
from pyconnect_cli.kafka.model import OpenProducer
from pyconnect_cli.kafka.transactions import list_transactional_ids, open_producers
from pyconnect_cli.transactions.find import still_open
from tests.support.cases import cases

LOADED, LOADING, NOT_COORDINATOR, DENIED = 105, 14, 16, 53
NO_SUCH_TOPIC, TOPIC_DENIED = 3, 29


def java_hash(text: str) -> int:
    """Return Java's String.hashCode of a text whose hash does not overflow."""
    value = 0
    for character in text:
        value = value * 31 + ord(character)
    return value


class FakeBroker:
    """One broker, and its client, with three partitions of the coordinators' log.

    `answers`: the codes of a log partition to successive DescribeTransactions; the last one is
    repeated.
    """

    def __init__(self, *answers: dict[int, int], log_error: int = 0) -> None:
        self._answers = list(answers) or [{}]
        self._log_error = log_error
        self.asked: list[set[int]] = []
        self.producers: list[list[SimpleNamespace]] = [[]]
        self.leader = 1
        self.admin = self
        self.time_s = 60.0

    def brokers(self) -> list[int]:
        return [1]

    def remaining_s(self) -> float:
        return self.time_s

    def send(self, what: str, request: Any, node: int | None = None) -> Any:
        return self.send_all(what, [(request, node)])[0]

    def send_all(self, what: str, requests: Sequence[tuple[Any, int | None]]) -> list[Any]:
        answers: dict[str, Callable[[Any], Any]] = {
            "MetadataRequest": self._metadata,
            "FindCoordinatorRequest": self._coordinators,
            "DescribeTransactionsRequest": self._described,
        }
        return [answers[type(request).__name__](request) for request, _ in requests]

    def _metadata(self, request: Any) -> Any:
        (topic,) = request.topics
        if topic.name == "__transaction_state" and self._log_error:
            return ns(topics=[ns(name=topic.name, error_code=self._log_error, partitions=[])])
        partitions = [ns(partition_index=number, leader_id=self.leader) for number in range(3)]
        # One partition of the other topic has producers.
        del partitions[3 if topic.name == "__transaction_state" else 1 :]
        return ns(topics=[ns(name=topic.name, error_code=0, partitions=partitions)])

    def _coordinators(self, request: Any) -> Any:
        return ns(
            coordinators=[ns(key=key, node_id=1, error_code=0) for key in request.coordinator_keys]
        )

    def _described(self, request: Any) -> Any:
        codes = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        partitions = {name: java_hash(name) % 3 for name in request.transactional_ids}
        self.asked.append(set(partitions.values()))
        return ns(
            transaction_states=[
                ns(transactional_id=name, error_code=codes.get(partition, LOADED))
                for name, partition in partitions.items()
            ]
        )

    # Requests of the client itself

    def list_transactions(self, **_: object) -> Any:
        return {1: [ns(transactional_id="g-c-0")]}

    def describe_producers(self, partitions: Sequence[Any]) -> Any:
        found = self.producers.pop(0) if len(self.producers) > 1 else self.producers[0]
        return {partitions[0]: ns(active_producers=found)}


def ns(**values: Any) -> Any:
    return SimpleNamespace(**values)


def producer(**changes: int) -> Any:
    values = {
        "producer_id": 7,
        "producer_epoch": 0,
        "coordinator_epoch": 0,
        "last_timestamp": 5,
        "current_transaction_start_offset": 4,
        **changes,
    }
    return ns(**values)


def opened(broker: FakeBroker) -> list[OpenProducer]:
    return open_producers(broker, ["t"])  # type: ignore[arg-type] # a fake


def test_ids_are_listed_when_every_partition_of_the_log_is_read() -> None:
    """An id that is missing from an incomplete list would seem to have no live transaction."""
    broker = FakeBroker({1: LOADING, 2: NOT_COORDINATOR}, {1: LOADING}, {})
    assert list_transactional_ids(broker) == ["g-c-0"]  # type: ignore[arg-type] # a fake
    assert broker.asked == [{0, 1, 2}, {1, 2}, {1}]
    broker = FakeBroker({1: LOADING})
    broker.time_s = 0.0
    with pytest.raises(WaitTimedOut, match="of 1 partition of __transaction_state"):
        list_transactional_ids(broker)  # type: ignore[arg-type] # a fake


@cases(
    "broker",
    FakeBroker(dict.fromkeys(range(3), DENIED)),
    FakeBroker(log_error=NO_SUCH_TOPIC),
    ids=["denied ids", "no transaction yet"],
)
def test_no_coordinator_is_waited_for_without_need(broker: FakeBroker) -> None:
    """Finding a coordinator would create the log in a cluster without transactions."""
    assert list_transactional_ids(broker) == ["g-c-0"]  # type: ignore[arg-type] # a fake


def test_a_producer_that_goes_on_has_no_hanging_transaction() -> None:
    """A transaction that changes or ends between two questions does not hang."""
    broker = FakeBroker()
    broker.producers = [[producer()], [producer()], [producer(last_timestamp=6)], []]
    found = opened(broker)
    assert [still_open(broker, found) for _ in range(3)] == [found, [], []]  # type: ignore[arg-type]


def test_a_log_without_leader_or_right_is_named_or_assumed() -> None:
    """A partition without leader is an error; for a denied log the default number is assumed."""
    broker = FakeBroker()
    broker.leader = -1
    with pytest.raises(Unreachable, match="partition t:0 has no leader"):
        opened(broker)
    broker = FakeBroker({1: LOADING}, {}, log_error=TOPIC_DENIED)
    list_transactional_ids(broker)  # type: ignore[arg-type] # a fake
    assert len(broker.asked) == 2
    assert transactions._LOG_PARTITIONS == 50
