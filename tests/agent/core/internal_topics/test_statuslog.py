"""The reducer of the status topic and its rules of writing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics import LogRecord, NoticeLevel
from pyconnect_agent.core.internal_topics.statuslog import (
    StatusLog,
    StatusSend,
    TopicStatus,
    encode_status,
    topic_record,
    topic_removal,
)
from pyconnect_agent.core.reporting import Status
from tests.support.cases import cases

TASK = ConnectorTaskId("c-1", 0)


def status(
    state: State = State.RUNNING,
    *,
    worker: str = "w:1",
    generation: int = 1,
    trace: str | None = None,
) -> Status:
    return Status(state=state, worker_id=worker, generation=generation, trace=trace, version="1.2")


def sent(send: StatusSend | None) -> StatusSend:
    assert send is not None
    return send


@pytest.fixture
def log() -> StatusLog:
    return StatusLog()


def test_a_long_trace_is_cut_in_its_middle() -> None:
    """A record without the cut would be refused, and the task would never be shown as FAILED."""
    trace = "java.sql.BatchUpdateException: " + "\u00e4" * 3_000_000 + "\nCaused by: timeout"
    written = encode_status(status(State.FAILED, trace=trace))
    assert 200_000 < len(written) < 1_000_000
    assert b'"trace":"java.sql.BatchUpdateException: ' in written
    assert b"\\n[... 2800050 characters are left out ...]\\n" in written
    assert b"\\nCaused by: timeout" in written


def test_records_have_the_bytes_that_apache_writes(log: StatusLog) -> None:
    """Keys, members and their order are Apache's; missing traces and versions are null."""
    plain = Status(state=State.FAILED, worker_id="w:1", generation=3)
    assert sent(log.send("c", plain, safe=False)).record == (
        b"status-connector-c",
        b'{"state":"FAILED","trace":null,"worker_id":"w:1","generation":3,"version":null}',
    )
    assert sent(log.send(TASK, status(trace="a\n\tb"), safe=False)).record == (
        b"status-task-c-1-0",
        b'{"state":"RUNNING","trace":"a\\n\\tb","worker_id":"w:1","generation":1,"version":"1.2"}',
    )
    assert log.send_removal(TASK).record == (b"status-task-c-1-0", None)
    assert topic_record(TopicStatus(topic="t", connector="c", task=2, discovered_ms=5)) == (
        b"status-topic-t:connector-c",
        b'{"topic":{"name":"t","connector":"c","task":2,"discoverTimestamp":5}}',
    )
    assert topic_removal("c", "t") == (b"status-topic-t:connector-c", None)


def test_destroyed_is_written_as_a_tombstone(log: StatusLog) -> None:
    """DESTROYED is never the content of a record."""
    destroyed = log.send("c", status(State.DESTROYED), safe=False)
    assert sent(destroyed).record == (b"status-connector-c", None)


def test_written_entries_are_read_back(log: StatusLog) -> None:
    """Statuses and topics that this worker writes are readable for it."""
    written = status(State.FAILED, trace="t")
    assert log.apply(*sent(log.send("c", written, safe=False)).record) == ()
    assert log.apply(*sent(log.send(TASK, written, safe=False)).record) == ()
    assert (
        log.apply(*topic_record(TopicStatus(topic="t", connector="c", task=0, discovered_ms=1)))
        == ()
    )
    assert (log.connector("c"), log.task(TASK)) == (written, written)
    assert log.tasks("c-1") == {0: written}
    assert log.connectors() == {"c"}
    assert log.topics("c") == ("t",)


def test_a_status_without_version_is_read(log: StatusLog) -> None:
    """Older workers write no version."""
    log.apply(b"status-connector-c", b'{"state":"RUNNING","worker_id":"w:1","generation":1}')
    found = log.connector("c")
    assert found is not None
    assert (found.version, found.trace) == (None, None)


def test_removing_a_connector_drops_its_tasks(log: StatusLog) -> None:
    """The topics of a removed connector stay, because each has its own tombstone."""
    for number in range(2):
        log.apply(f"status-task-c-{number}".encode(), encode_status(status()))
    log.apply(b"status-task-d-0", encode_status(status()))
    log.apply(b"status-connector-c", encode_status(status()))
    log.apply(*topic_record(TopicStatus(topic="t", connector="c", task=0, discovered_ms=1)))
    log.apply(b"status-connector-c", None)
    assert (log.connector("c"), log.tasks("c"), log.connectors()) == (None, {}, frozenset())
    assert log.tasks("d") != {}
    assert log.topics("c") == ("t",)
    log.apply(b"status-task-d-0", None)
    assert log.tasks("d") == {}
    log.apply(*topic_removal("c", "t"))
    assert log.topics("c") == ()


@cases(
    "key, worker, generation, hides",
    (b"status-task-c-0", "old:1", 1, False),
    (b"status-task-c-0", "old:1", 2, False),
    (b"status-task-c-0", "old:1", 3, True),
    (b"status-task-c-0", "new:1", 1, False),
    (b"status-task-c-0", "new:1", 2, True),
    (b"status-connector-c", "old:1", 1, False),
    (b"status-connector-c", "old:1", 2, True),
    (b"status-connector-c", "new:1", 1, True),
    (b"status-connector-c", "new:1", 2, True),
)
def test_a_late_unassigned_of_a_former_owner_hides_no_running_work(
    log: StatusLog, key: bytes, worker: str, generation: int, hides: bool
) -> None:
    """A former owner that was frozen may report UNASSIGNED late; own reports come in order."""
    running = status(State.RUNNING, worker="new:1", generation=2)
    late = status(State.UNASSIGNED, worker=worker, generation=generation)
    for said in (running, late):
        log.apply(key, encode_status(said))
    found = log.connector("c") if b"connector" in key else log.task(ConnectorTaskId("c", 0))
    assert found == (late if hides else running)


@cases(
    "worker, generation, written",
    ("w:1", 1, True),
    ("other:1", 5, True),
    ("other:1", 6, True),
    ("other:1", 4, False),
)
def test_a_safe_write_never_hides_a_newer_workers_status(
    log: StatusLog, worker: str, generation: int, written: bool
) -> None:
    """A safe write needs the same worker, or no older generation than the status read."""
    log.apply(b"status-connector-c", encode_status(status(worker="w:1", generation=5)))
    late = status(State.UNASSIGNED, worker=worker, generation=generation)
    assert (log.send("c", late, safe=True) is not None) is written
    assert log.send("c", late, safe=False) is not None


def test_a_failed_send_is_repeated_until_it_is_replaced(log: StatusLog) -> None:
    """A failed send is repeated unless its entry is deleted or a newer status was sent."""
    send = sent(log.send(TASK, status(State.FAILED, generation=1), safe=False))
    log.send("other", status(generation=2), safe=False)
    assert log.should_repeat(send)
    second = sent(log.send(TASK, status(State.UNASSIGNED), safe=True))
    third = sent(log.send(TASK, status(State.PAUSED), safe=False))
    assert [log.should_repeat(each) for each in (send, second, third)] == [False, False, True]
    log.apply(b"status-task-c-1-0", encode_status(status()))
    log.apply(b"status-task-c-1-0", None)
    assert not log.should_repeat(third)


@cases("safe", True, False)
def test_a_failed_send_is_not_repeated_over_a_later_owner(log: StatusLog, safe: bool) -> None:
    """A failed send is dropped once a later owner's status has been read."""
    send = sent(log.send(TASK, status(generation=1), safe=safe))
    assert log.should_repeat(send)
    log.apply(b"status-task-c-1-0", encode_status(status(worker="new:1", generation=2)))
    assert not log.should_repeat(send)


@cases("late", State.RUNNING, State.UNASSIGNED, State.FAILED)
@cases("key", b"status-task-c-1-0", b"status-connector-c-1")
def test_an_owner_corrects_an_older_generation(log: StatusLog, key: bytes, late: State) -> None:
    """A late status of a former owner is overwritten once by the present owner."""
    own = status(worker="new:1", generation=6)
    if key.startswith(b"status-task"):
        log.send(TASK, own, safe=False)
    else:
        log.send("c-1", own, safe=False)
    log.apply(key, encode_status(status(late, worker="old:1", generation=5)))
    (correction,) = log.corrections()
    assert (correction.record.key, correction.record.value) == (key, encode_status(own))
    assert log.should_repeat(correction)
    log.apply(key, correction.record.value)
    assert log.corrections() == ()


@cases(
    "own, read",
    (status(State.UNASSIGNED, generation=6), status(worker="old:1", generation=5)),
    (status(generation=6), status(worker="new:1", generation=6)),
    (status(generation=6), status(worker="new:1", generation=7)),
    (status(generation=6), status(generation=5)),
    (None, status(worker="old:1", generation=5)),
)
def test_others_need_no_correction(log: StatusLog, own: Status | None, read: Status) -> None:
    """A status of the same or a newer owner, or of work that is not here, is not corrected."""
    if own is not None:
        log.send(TASK, own, safe=False)
    log.apply(b"status-task-c-1-0", encode_status(read))
    assert log.corrections() == ()


@cases(
    "key, value, severity",
    (None, b"{}", NoticeLevel.WARNING),
    (b"other", b"{}", NoticeLevel.WARNING),
    (b"status-connector-", b"{}", NoticeLevel.WARNING),
    (b"status-task-c", b"{}", NoticeLevel.WARNING),
    (b"status-task-c-x", b"{}", NoticeLevel.WARNING),
    (b"status-topic-t", b"{}", NoticeLevel.WARNING),
    (b"status-topic-:connector-c", b"{}", NoticeLevel.WARNING),
    (b"status-topic-t:connector-", b"{}", NoticeLevel.WARNING),
    (b"status-topic-t:nothing", b"{}", NoticeLevel.WARNING),
    (b"status-connector-c", b"{", NoticeLevel.ERROR),
    (b"status-connector-c", b"", NoticeLevel.ERROR),
    (b"status-connector-c", b"null", NoticeLevel.ERROR),
    (b"status-connector-c", b'{"state":"GONE","worker_id":"w","generation":1}', NoticeLevel.ERROR),
    (b"status-connector-c", b'{"state":"RUNNING","worker_id":"w"}', NoticeLevel.ERROR),
    (b"status-task-c-0", b'{"state":"RUNNING","worker_id":1,"generation":1}', NoticeLevel.ERROR),
    (
        b"status-task-c-0",
        b'{"state":"RUNNING","trace":1,"worker_id":"w","generation":1}',
        NoticeLevel.ERROR,
    ),
    (b"status-topic-t:connector-c", b'{"topic":[]}', NoticeLevel.ERROR),
    (b"status-topic-t:connector-c", b'{"topic":{"name":"t","connector":"c"}}', NoticeLevel.ERROR),
)
def test_a_useless_record_is_noticed_and_changes_nothing(
    log: StatusLog, key: bytes | None, value: bytes, severity: NoticeLevel
) -> None:
    """An unknown key is a warning, an unreadable value an error."""
    log.apply(b"status-connector-c", encode_status(status()))
    (notice,) = log.apply(key, value)
    assert notice.severity is severity
    assert log.connector("c") == status()
    assert (log.tasks("c"), log.topics("c"), log.connectors()) == ({}, (), {"c"})


@given(
    st.lists(
        st.one_of(
            st.builds(
                lambda connector, number, generation: LogRecord(
                    f"status-task-{connector}-{number}".encode(),
                    encode_status(status(generation=generation)),
                ),
                st.sampled_from(["a", "a-0"]),
                st.integers(0, 1),
                st.integers(0, 3),
            ),
            st.builds(
                lambda connector: LogRecord(f"status-connector-{connector}".encode(), None),
                st.sampled_from(["a", "a-0"]),
            ),
            st.tuples(st.one_of(st.none(), st.binary(max_size=30)), st.binary(max_size=10)),
        ),
        max_size=20,
    )
)
def test_the_last_record_of_a_task_wins(records: list[tuple[bytes | None, bytes | None]]) -> None:
    """The last record of a task counts, unless its connector was removed after it."""
    log = StatusLog()
    expected: dict[str, dict[int, bytes]] = {"a": {}, "a-0": {}}
    for key, value in records:
        log.apply(key, value)
        for connector, tasks in expected.items():
            if key == f"status-connector-{connector}".encode() and value is None:
                tasks.clear()
            for number in range(2):
                if key == f"status-task-{connector}-{number}".encode() and value is not None:
                    tasks[number] = value
    for connector, tasks in expected.items():
        found = {number: encode_status(found) for number, found in log.tasks(connector).items()}
        assert found == tasks
