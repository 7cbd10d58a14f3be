"""Polls of a source task in a Java process, over a link that has been filled before."""

from __future__ import annotations

import queue
from typing import Any, cast

import pytest

from pyconnect_agent.java.frames import Kind
from pyconnect_agent.java.link import JavaLink
from pyconnect_agent.tasks.java.source_task import JavaSourceTask
from pyconnect_agent.tasks.source.run import SourceOffset
from pyconnect_api import ConnectException, RetriableException, SourceRecord, SourceTaskContext
from tests.agent.java.test_frames import payload

FAILED = {"kind": "retriable", "class": "C", "message": "later", "trace": "C: later"}


class FilledLink:
    """Has batches; counts the polls that it is asked for."""

    def __init__(self, *batches: bytes) -> None:
        self.batches: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
        for batch in batches:
            self.batches.put(memoryview(batch))
        self.asked = 0

    def tell(self, kind: Kind, *_: bytes) -> None:
        self.asked += kind is Kind.CREDIT


class NoBoundaries(SourceTaskContext):
    transaction_context = None

    def configs(self) -> dict[str, str]:
        return {}

    @property
    def offset_storage_reader(self) -> Any:
        raise AssertionError


def batch(*numbers: int, last: bool = True, **more: Any) -> bytes:
    rows: Any = [(0, b'{"n":%d}' % number, None, b"v") for number in numbers]
    boundaries: Any = {"commitsAfter": [], "abortsAfter": []}
    return payload(rows, last=last, **boundaries, **more)


def task_of(link: FilledLink, *, in_turn: bool = False) -> JavaSourceTask:
    facts = {"version": "1", "hearsOfCommits": True}
    task = JavaSourceTask(cast("JavaLink", link), facts, exactly_once=in_turn)
    task.initialize(NoBoundaries())
    return task


def offsets(records: Any) -> list[SourceOffset]:
    return [cast("SourceRecord", record).source_offset for record in records]


@pytest.mark.parametrize("in_turn", [True, False])
def test_parts_of_a_poll_are_one_credit(*, in_turn: bool) -> None:
    """The next is asked for with the next poll only when the last part has come."""
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
    """It is known until something of it comes."""
    link = FilledLink()
    task = task_of(link)
    assert (task.poll(), task.is_waiting) == ((), True)
    link.batches.put(memoryview(batch(1)))
    assert (offsets(task.poll()), task.is_waiting) == ([{"n": 1}], False)


def test_a_failed_poll_is_repeated_and_a_failed_part_is_not() -> None:
    """A part has been sent already, and its successors are lost."""
    link = FilledLink(batch(error=FAILED), batch(1, last=False), batch(error=FAILED))
    task = task_of(link)
    with pytest.raises(RetriableException, match="later"):
        task.poll()
    assert offsets(task.poll()) == [{"n": 1}]
    with pytest.raises(ConnectException, match="later") as failed:
        task.next_part()
    assert not isinstance(failed.value, RetriableException)
