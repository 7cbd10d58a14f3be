"""The status stores over a log in memory."""

from collections.abc import Iterator

import pytest

from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics.statuslog import encode_status
from pyconnect_agent.core.reporting import Status
from pyconnect_agent.stores import MemoryLog
from pyconnect_agent.stores.status import StatusStore
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.fake_log import FakeLog

TASK = ConnectorTaskId("c", 0)
RETRIABLE = RetriableKafkaError("not enough replicas")


def status(state: State = State.RUNNING, worker: str = "w:1", generation: int = 1) -> Status:
    return Status(state=state, worker_id=worker, generation=generation)


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


@pytest.fixture
def store(log: FakeLog) -> Iterator[StatusStore]:
    store = StatusStore(log, retry_backoff_s=0)
    store.start()
    yield store
    store.stop()


def test_a_put_is_visible_only_when_read_back(log: FakeLog, store: StatusStore) -> None:
    """A status is visible only after it is read back, so that all workers show the same."""
    store.put(TASK, status())
    assert store.task(TASK) is None
    log.settle()
    log.tail()
    assert store.task(TASK) == status()


def test_retriable_failures_are_repeated(log: FakeLog, store: StatusStore) -> None:
    """The producer does not retry, so the store repeats a failed send."""
    store.put("c", status())
    for _ in range(3):
        assert log.settle(RETRIABLE) == 1
        eventually(lambda: log.pending)
    log.settle()
    store.flush(1_000)
    assert [record.key for record in log.topic.records] == [b"status-connector-c"]


TASK_KEY = b"status-task-c-0"
NEWER = Status(state=State.RUNNING, worker_id="new:1", generation=2)


def test_failed_sends_are_repeated_after_a_read(log: FakeLog, store: StatusStore) -> None:
    """A failed send is dropped if another worker's later status was read meanwhile."""
    store.put(TASK, status(generation=1))
    first, log.pending = log.pending, []
    log.topic.append(TASK_KEY, encode_status(NEWER))
    first[0][1](RETRIABLE)
    store.flush(5_000)
    assert log.pending == []
    assert store.task(TASK) == NEWER


@cases("moved", True, False)
def test_a_late_status_waits_for_a_read(log: FakeLog, store: StatusStore, moved: bool) -> None:
    """A late status is sent only after a read that shows no other worker's status."""
    store.put(TASK, status())
    log.settle()
    log.read_failures = [RETRIABLE] * 3
    store.put(TASK, status(State.UNASSIGNED), safe=True, late=True)
    if moved:
        log.topic.append(TASK_KEY, encode_status(NEWER))
    eventually(lambda: not log.read_failures)
    if not moved:
        eventually(lambda: log.pending)
        log.settle()
    store.flush(5_000)
    log.tail()
    assert store.task(TASK) == (NEWER if moved else status(State.UNASSIGNED))


def test_a_denied_read_does_not_hold_statuses_back(log: FakeLog, store: StatusStore) -> None:
    """Without the right to read, a late status is sent unchecked."""
    log.read_failures = [KafkaError("denied")]
    store.put(TASK, status(State.UNASSIGNED), safe=True, late=True)
    eventually(lambda: log.pending)


def test_an_owner_writes_its_status_again(log: FakeLog, store: StatusStore) -> None:
    """The owner overwrites a late status of a former owner."""
    store.put(TASK, NEWER)
    log.settle()
    log.topic.append(TASK_KEY, encode_status(status(State.UNASSIGNED)))
    log.tail()
    log.settle()
    assert log.topic.live()[TASK_KEY] == encode_status(NEWER)


def test_a_fatal_failure_is_given_up(log: FakeLog, store: StatusStore) -> None:
    """A fatal failure drops the send, and later sends are not affected."""
    store.put("c", status())
    log.settle(KafkaError("not authorized"))
    store.flush(1_000)
    store.put("c", status())
    log.settle()
    assert len(log.topic.records) == 1


def test_topic_statuses_are_repeated_without_conditions(log: FakeLog, store: StatusStore) -> None:
    """A failed topic status is repeated in any generation."""
    store.put_topic("c", 0, "t", 5)
    store.put("c", status(generation=9))
    log.settle(RETRIABLE)
    eventually(lambda: len(log.pending) == 2)
    log.settle()
    log.tail()
    assert store.has_topic("c", "t")


def test_flush_waits_for_outstanding_sends(log: FakeLog, store: StatusStore) -> None:
    """A flush ends when all sends have ended, which a rebalance waits for."""
    store.flush(0)
    store.put("c", status())
    with pytest.raises(RetriableKafkaError, match="Timed out"):
        store.flush(20)
    log.settle()
    store.flush(0)


def test_a_safe_put_leaves_a_newer_workers_status(log: FakeLog, store: StatusStore) -> None:
    """The status that was read decides about a safe put; other puts are always sent."""
    store.put(TASK, status(worker="new:1", generation=5))
    log.settle()
    log.tail()
    store.put(TASK, status(State.UNASSIGNED, worker="old:1", generation=4), safe=True)
    assert log.pending == []
    store.put(TASK, status(State.FAILED, worker="old:1", generation=4))
    assert len(log.pending) == 1


def test_a_stopped_store_drops_failed_sends(log: FakeLog) -> None:
    """A send that fails after the stop is dropped, so that a flush ends."""
    store = StatusStore(log)
    store.start()
    store.put("c", status())
    pending, log.pending = log.pending, []
    store.stop()
    pending[0][1](RETRIABLE)
    store.flush(1_000)
    assert log.stopped


@cases("kind", "kafka", "memory")
def test_both_stores_hold_the_same_state(kind: str) -> None:
    """The stores of standalone and distributed workers have equal statuses after equal puts."""
    log = FakeLog()
    store = StatusStore(MemoryLog() if kind == "memory" else log)
    store.start()

    def settle() -> None:
        if kind == "kafka":
            log.settle()
            log.tail()

    store.put("c", status())
    store.put(TASK, status())
    store.put(ConnectorTaskId("c", 1), status(State.FAILED))
    store.put(ConnectorTaskId("d", 0), status())
    store.put_topic("c", 0, "t1", 1)
    store.put_topic("c", 0, "t2", 1)
    settle()
    store.delete(ConnectorTaskId("c", 1))
    store.delete_topic("c", "t1")
    store.put(ConnectorTaskId("d", 0), status(State.DESTROYED))
    settle()
    assert store.connectors() == {"c"}
    assert store.tasks("c") == {0: status()}
    assert store.task(ConnectorTaskId("d", 0)) is None
    assert (store.topics("c"), store.has_topic("c", "t1")) == (("t2",), False)
    store.delete("c")
    settle()
    assert (store.connector("c"), store.tasks("c")) == (None, {})
    store.stop()
