"""Tasks in a Java process, over a link with prepared batches, and records of a sink."""

import gc
import queue
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from pyconnect_agent.core.transaction_boundary import Decision, RequestedTransactions
from pyconnect_agent.java_processes.frames import FrameKind
from pyconnect_agent.java_processes.link import JavaLink
from pyconnect_agent.tasks.in_java import source_task
from pyconnect_agent.tasks.in_java.sink_task import JavaSinkRecords
from pyconnect_agent.tasks.in_java.source_task import (
    RESULTS,
    JavaSourceTask,
    ListeningJavaSourceTask,
    read_offsets,
)
from pyconnect_agent.tasks.sink.pipeline import MessageRun
from pyconnect_agent.tasks.source.offsets import WorkerOffsetReader
from pyconnect_agent.tasks.source.pipeline import SourceOffset
from pyconnect_api import ConnectException, RetriableException, SourceRecord, SourceTaskContext
from tests.agent.java_processes.test_frames import payload
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.fake_clients import FakeMessage

FAILED = {"kind": "retriable", "class": "C", "message": "later", "trace": "C: later"}


class FilledLink:
    """A link with batches; counts the polls that it is asked for."""

    def __init__(self, *batches: bytes) -> None:
        self.batches: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
        for batch in batches:
            self.batches.put(memoryview(batch))
        self.asked = 0

    def tell(self, kind: FrameKind, *_: bytes) -> None:
        self.asked += kind is FrameKind.CREDIT


class Context(SourceTaskContext):
    def __init__(self, transactions: RequestedTransactions | None) -> None:
        self._transactions = transactions

    @property
    def transaction_context(self) -> RequestedTransactions | None:
        return self._transactions

    def configs(self) -> dict[str, str]:
        return {}

    @property
    def offset_storage_reader(self) -> Any:
        raise AssertionError


def batch(*numbers: int, last: bool = True, **more: Any) -> bytes:
    rows: Any = [(0, b'{"n":%d}' % number, None, b"v") for number in numbers]
    boundaries: Any = {"commitsAfter": [], "abortsAfter": []}
    return payload(rows, last=last, **boundaries, **more)


def task_of(
    link: FilledLink, *, in_turn: bool = False, transactions: RequestedTransactions | None = None
) -> JavaSourceTask:
    facts = {"version": "1", "hearsOfCommits": True}
    task = JavaSourceTask(cast("JavaLink", link), facts, exactly_once=in_turn)
    task.initialize(Context(transactions))
    return task


def offsets(records: Any) -> list[SourceOffset]:
    return [cast("SourceRecord", record).source_offset for record in records]


@cases("in_turn", True, False)
def test_parts_of_a_poll_are_one_credit(*, in_turn: bool) -> None:
    """The next poll is asked for only after the last part of the present one has come."""
    link = FilledLink(batch(1, 2, last=False), batch(3, last=False), batch(), batch(4))
    task = task_of(link, in_turn=in_turn)
    found = [offsets(task.poll()), offsets(task.next_part())]
    asked = link.asked
    assert asked == (1 if in_turn else 2)
    assert not task.next_part()
    assert not task.next_part()
    assert [*found, offsets(task.poll())] == [[{"n": 1}, {"n": 2}], [{"n": 3}], [{"n": 4}]]
    assert link.asked == asked + 1


def test_a_poll_that_has_not_ended() -> None:
    """`is_waiting` is True until a batch of the poll comes."""
    link = FilledLink()
    task = task_of(link)
    assert (task.poll(), task.is_waiting) == ((), True)
    link.batches.put(memoryview(batch(1)))
    assert (offsets(task.poll()), task.is_waiting) == ([{"n": 1}], False)


def test_a_failed_poll_is_repeated_and_a_failed_part_is_not() -> None:
    """A failed part fails the task, as an earlier part is sent and later parts are lost."""
    link = FilledLink(batch(error=FAILED), batch(1, last=False), batch(error=FAILED))
    task = task_of(link)
    with pytest.raises(RetriableException, match="later"):
        task.poll()
    assert offsets(task.poll()) == [{"n": 1}]
    with pytest.raises(ConnectException, match="later") as failed:
        task.next_part()
    assert not isinstance(failed.value, RetriableException)


def test_a_poll_in_turn_ends_with_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The poll waits for its batch, as the loop would otherwise commit before the poll ends."""
    monkeypatch.setattr(source_task, "WAIT_S", 0.0)
    link = FilledLink()
    task = task_of(link, in_turn=True)
    with ThreadPoolExecutor(1) as pool:
        polled = pool.submit(task.poll)
        eventually(lambda: link.asked)
        link.batches.put(memoryview(batch(1)))
        assert offsets(polled.result()) == [{"n": 1}]


def test_a_failed_poll_may_request_a_commit() -> None:
    """A request for a commit counts even if the poll failed, as it is about earlier polls."""
    transactions = RequestedTransactions()
    task = task_of(
        FilledLink(payload([], last=True, error=FAILED, commit=True)), transactions=transactions
    )
    with pytest.raises(RetriableException):
        task.poll()
    assert transactions.take_batch() is Decision.COMMIT


def test_results_do_not_fail_once_the_process_has_ended() -> None:
    """Results come in callbacks, which must not raise; the next poll finds the end."""

    class Ended(FilledLink):
        def tell(self, kind: FrameKind, *_: bytes) -> None:
            raise ConnectException("The Java process has ended")

    facts = {"version": "1", "hearsOfCommits": False}
    task = ListeningJavaSourceTask(cast("JavaLink", Ended()), facts, exactly_once=False)
    for number in range(RESULTS):
        task.commit_number(number, None)
    with pytest.raises(ConnectException, match="has ended"):
        task.poll()


def test_an_offset_that_cannot_be_decoded_is_none() -> None:
    """One undecodable offset does not affect the offsets of other partitions."""

    def read(keys: tuple[bytes, ...], _: int) -> dict[bytes, bytes | None]:
        return dict(zip(keys, (b"no JSON", b'{"n":2}', None), strict=True))

    reader = WorkerOffsetReader("c", read)
    asked = {"partitions": [{"p": 1}, {"p": 2}, {"p": 3}]}
    assert read_offsets(reader, asked) == [None, {"n": 2}, None]


class Message(FakeMessage):
    """A message that can have weak references."""


def test_records_end_with_their_last_use() -> None:
    """Consumed records form no cycle, so they do not stay in memory until a collection."""
    message = Message("t", 0, 1, b"v")
    end = weakref.ref(message)
    run = MessageRun.of([message])
    assert run is not None
    records = JavaSinkRecords(run)
    assert records[0].kafka_offset == 1
    gc.disable()
    try:
        del message, run, records
        assert end() is None
    finally:
        gc.enable()
