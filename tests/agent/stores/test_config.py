"""The config stores over a log in memory."""

from collections.abc import Callable

import pytest

from pyconnect_agent.core.errors import (
    BadRequestError,
    KafkaError,
    PrivilegedWriteError,
    RecordTooLargeError,
    RetriableKafkaError,
)
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import LogRecord, config_records
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, SessionKey
from pyconnect_agent.core.internal_topics.configlog import (
    ConfigChange,
    ConnectorConfigRemoved,
    ConnectorConfigUpdated,
    RestartRequested,
    TargetStateChanged,
    TaskConfigsUpdated,
)
from pyconnect_agent.stores import MemoryLog
from pyconnect_agent.stores.config import ConfigStore
from tests.support.cases import cases
from tests.support.fakes.fake_log import FakeLog, FakeTopic

KEY = SessionKey(key=b"k", algorithm="HmacSHA256", created_ms=1)


class Worker:
    """A started store with its reported changes."""

    def __init__(self, topic: FakeTopic | None = None) -> None:
        self.log = FakeLog(topic)
        self.store = ConfigStore(self.log)
        self.changes: list[ConfigChange] = []
        self.store.start(lambda _snapshot, changes: self.changes.extend(changes))


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_the_first_read_is_silent_and_complete() -> None:
    """The first read reports no change, so that old restart requests have no effect."""
    topic = FakeTopic()
    first = Worker(topic)
    first.store.put_connector_config("c", {"a": "1"}, None)
    first.store.put_restart_request("c", only_failed=True, include_tasks=False)
    second = Worker(topic)
    assert second.changes == []
    assert second.store.snapshot().connector_config("c") == {"a": "1"}
    assert second.store.snapshot() == first.store.snapshot()


@cases("kind", "kafka", "memory")
def test_changes_are_reported_before_other_threads_see_their_snapshot(kind: str) -> None:
    """Changes come before their snapshot, which does not show that a config was written again."""
    store = ConfigStore(MemoryLog() if kind == "memory" else FakeLog())
    seen: list[tuple[tuple[ConfigChange, ...], int]] = []
    shown: list[int] = []

    def report(snapshot: ConfigSnapshot, changes: tuple[ConfigChange, ...]) -> None:
        seen.append((changes, snapshot.offset))
        shown.append(store.snapshot().offset)

    store.start(report)
    for _ in range(2):
        store.put_connector_config("c", {"a": "1"}, None)
    change = ConnectorConfigUpdated(connector="c")
    assert [changes for changes, _ in seen] == [(change,), (change,)]
    assert all(before < offset for before, (_, offset) in zip(shown, seen, strict=True))
    assert store.snapshot().offset == seen[-1][1]


def test_a_connector_is_written_with_its_initial_state_before_it(worker: Worker) -> None:
    """One batch has the state before the config, so that no worker starts it in another state."""
    worker.store.put_connector_config("c", {"a": "1"}, TargetState.STOPPED)
    assert worker.log.writes == [
        (
            config_records.target_state("c", TargetState.STOPPED),
            config_records.connector_config("c", {"a": "1"}),
        )
    ]
    assert worker.store.snapshot().target_state("c") is TargetState.STOPPED


def test_a_removal_is_one_batch_of_two_tombstones(worker: Worker) -> None:
    """Records of tasks and commits are not removed."""
    worker.store.put_connector_config("c", {}, None)
    worker.store.remove_connector_config("c")
    expected = (LogRecord(b"connector-c", None), LogRecord(b"target-state-c", None))
    assert worker.log.writes[-1] == expected
    assert worker.changes[-1] == ConnectorConfigRemoved(connector="c")


def test_task_configs_are_committed_by_a_later_write(worker: Worker) -> None:
    """Task configs and their commit are in separate batches."""
    worker.store.put_connector_config("c", {}, None)
    worker.store.put_task_configs("c", [{"n": "0"}, {"n": "1"}])
    assert worker.log.writes[1:] == [
        tuple(config_records.task_config(ConnectorTaskId("c", n), {"n": str(n)}) for n in range(2)),
        (config_records.tasks_commit("c", 2),),
    ]
    tasks = (ConnectorTaskId("c", 0), ConnectorTaskId("c", 1))
    assert worker.changes[-1] == TaskConfigsUpdated(connector="c")
    assert worker.store.snapshot().tasks("c") == tasks


def test_an_empty_task_set_is_only_a_commit(worker: Worker) -> None:
    """A stop writes the commit of an empty task set."""
    worker.store.put_connector_config("c", {}, None)
    worker.store.put_task_configs("c", [])
    assert worker.log.writes[1:] == [(config_records.tasks_commit("c", 0),)]


def test_target_states_and_logger_levels_are_not_read_back(worker: Worker) -> None:
    """Such a write returns at once, and a later read shows the change."""
    worker.store.put_connector_config("c", {}, None)
    worker.store.put_target_state("c", TargetState.PAUSED)
    worker.store.put_logger_level("a", "DEBUG")
    assert worker.store.snapshot().target_state("c") is TargetState.STARTED
    worker.store.refresh(1_000)
    assert worker.store.snapshot().target_state("c") is TargetState.PAUSED
    assert TargetStateChanged(connector="c") in worker.changes


def test_a_bad_record_on_the_topic_stops_nothing(worker: Worker) -> None:
    """An unusable record is logged and ignored."""
    worker.log.topic.append(b"connector-x", b"{")
    worker.log.topic.append(b"nonsense", b"{}")
    worker.log.topic.append(None, None)
    worker.store.put_connector_config("c", {}, None)
    assert worker.store.snapshot().connectors() == ("c",)


PUTS: list[tuple[Callable[[ConfigStore], None], str]] = [
    (
        lambda store: store.put_connector_config("c", {}, None),
        "Error writing connector configuration to Kafka",
    ),
    (
        lambda store: store.remove_connector_config("c"),
        "Error removing connector configuration from Kafka",
    ),
    (lambda store: store.put_task_configs("c", [{}]), "Error writing task configurations to Kafka"),
    (lambda store: store.put_task_configs("c", []), "Error writing root configuration to Kafka"),
    (
        lambda store: store.put_target_state("c", TargetState.PAUSED),
        "Error writing target state to Kafka",
    ),
    (lambda store: store.put_session_key(KEY), "Error writing session key to Kafka"),
    (
        lambda store: store.put_restart_request("c", only_failed=True, include_tasks=False),
        (
            "Error writing restart request for {connectorName='c', onlyFailed=true, "
            "includeTasks=false} to Kafka"
        ),
    ),
    (lambda store: store.put_task_count_record("c", 1), "Error writing task count record to Kafka"),
    (lambda store: store.put_logger_level("a", "INFO"), "Error writing logger level to Kafka"),
]


@pytest.mark.parametrize(("put", "text"), PUTS)
@cases("error", RetriableKafkaError("late"), KafkaError("no"))
def test_a_failed_write_has_apaches_text(
    worker: Worker, put: Callable[[ConfigStore], None], text: str, error: KafkaError
) -> None:
    """The error has Apache's text, and is retriable if its cause is."""
    worker.log.write_failures.append(error)
    with pytest.raises(KafkaError) as failure:
        put(worker.store)
    assert str(failure.value) == text
    assert failure.value.retriable is error.retriable
    assert failure.value.__cause__ is error
    assert worker.log.topic.records == []


@cases("put, text", PUTS[0], PUTS[1], PUTS[5])
def test_a_write_that_is_not_read_back_in_time_fails(
    worker: Worker, put: Callable[[ConfigStore], None], text: str
) -> None:
    """A write without a read-back is an error, although it may have taken effect."""
    worker.log.read_failures.append(RetriableKafkaError("timed out"))
    with pytest.raises(RetriableKafkaError) as failure:
        put(worker.store)
    assert str(failure.value) == text
    assert worker.log.topic.records != []


@cases("largest", 1_000, 999)
def test_a_config_too_large_for_a_record_is_refused(worker: Worker, largest: int) -> None:
    """The error has the connector or task, the size and the limit, and nothing is written."""
    config = {"a": "x" * (1_000 - len('connector-c{"properties":{"a":""}}'))}
    store = ConfigStore(worker.log, record_limit=largest)
    if largest == 1_000:
        store.put_connector_config("c", config, None)
        assert len(worker.log.topic.records) == 1
        return
    with pytest.raises(BadRequestError, match=r"c takes 1000 bytes .* at most 999 bytes"):
        store.put_connector_config("c", config, None)
    with pytest.raises(BadRequestError, match=r"task c-1 takes 1014 bytes"):
        store.put_task_configs("c", [{}, {"a": config["a"] + "x" * 17}])
    assert worker.log.topic.records == []


def test_a_config_that_the_broker_finds_too_large_is_a_wrong_request(worker: Worker) -> None:
    """The topic's limit may be lower than the producer's; the error is a BadRequestError."""
    worker.log.write_failures.append(RecordTooLargeError("no"))
    with pytest.raises(BadRequestError, match=r"max\.message\.bytes"):
        worker.store.put_connector_config("c", {}, None)


class Leader:
    """A leader writer that records its calls."""

    def __init__(self, log: FakeLog) -> None:
        self.log = log
        self.asked: list[str] = []
        self.fenced = False

    def claim(self) -> None:
        self.asked.append("claim")

    def write(self, records: object, timeout_ms: int) -> None:
        if self.fenced:
            raise PrivilegedWriteError("Failed to perform fencable send to config topic")
        self.asked.append("write")
        self.log.write(records, timeout_ms)  # type: ignore[arg-type]

    def relinquish(self) -> None:
        self.asked.append("relinquish")


def test_only_records_of_the_leader_go_through_its_writer() -> None:
    """Target states and logger levels, which any worker writes, are never in a transaction."""
    log = FakeLog()
    leader = Leader(log)
    store = ConfigStore(log, leader)
    store.start(lambda snapshot, changes: None)
    store.claim_write_privileges()
    store.put_target_state("c", TargetState.PAUSED)
    store.put_logger_level("a", "INFO")
    assert leader.asked == ["claim"]
    store.put_connector_config("c", {}, None)
    store.put_task_configs("c", [{}])
    store.put_session_key(KEY)
    store.put_restart_request("c", only_failed=False, include_tasks=False)
    store.put_task_count_record("c", 1)
    store.remove_connector_config("c")
    assert leader.asked == ["claim", *["write"] * 7]
    leader.fenced = True
    with pytest.raises(PrivilegedWriteError, match="Failed to perform fencable send"):
        store.put_connector_config("c", {}, None)
    store.stop()
    assert leader.asked[-1] == "relinquish"


@cases("kind", "kafka", "memory")
def test_both_stores_hold_the_same_state(kind: str) -> None:
    """The stores of standalone and distributed workers have equal snapshots after equal writes."""
    changes: list[ConfigChange] = []
    store = ConfigStore(MemoryLog() if kind == "memory" else FakeLog())
    store.start(lambda _snapshot, found: changes.extend(found))
    store.claim_write_privileges()
    store.put_connector_config("c", {"a": "1"}, TargetState.PAUSED)
    store.put_connector_config("d", {"a": "2"}, None)
    store.put_task_configs("c", [{"t": "0"}])
    store.put_target_state("c", TargetState.STARTED)
    store.put_session_key(KEY)
    store.put_restart_request("c", only_failed=False, include_tasks=True)
    store.put_task_count_record("c", 1)
    store.put_logger_level("a", "INFO")
    store.remove_connector_config("d")
    store.refresh(1_000)
    state = store.snapshot()
    assert state.connectors() == ("c",)
    assert state.task_config(ConnectorTaskId("c", 0)) == {"t": "0"}
    assert state.target_state("c") is TargetState.STARTED
    assert state.session_key == KEY
    assert state.offset == 12
    assert len(changes) == 8
    assert RestartRequested(connector="c", only_failed=False, include_tasks=True) in changes
    store.stop()
