"""The contract of sink tasks, and the consumer group that the harness plays."""

from collections.abc import Collection, Mapping

import pytest

from pyconnect_api import (
    ConnectException,
    IllegalWorkerStateException,
    RetriableException,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from pyconnect_api.testing import RecordingReporter, SinkHarness
from tests.support.cases import cases

P0, P1 = TopicPartition("topic", 0), TopicPartition("topic", 1)


class Log(SinkTask):
    """Notes each call."""

    def start(self, props: Mapping[str, str]) -> None:
        self.calls: list[object] = []
        self.refusals = 0

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("open", *map(str, partitions)))

    def put(self, records: Collection[SinkRecord]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise RetriableException("later")
        self.calls.append([record.value for record in records])

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        self.calls.append(("pre_commit", self.context.is_closing, *current_offsets.values()))
        return current_offsets

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("close", *map(str, partitions)))

    def stop(self) -> None:
        self.calls.append("stop")

    def version(self) -> str:
        return "1"


def started(*partitions: TopicPartition) -> tuple[SinkHarness, Log]:
    sink = SinkHarness(Log, {}, partitions=partitions or (P0,))
    task = sink.start()
    assert isinstance(task, Log)
    return sink, task


def test_the_calls_come_in_a_workers_order() -> None:
    """Closing commits are told apart, in a rebalance and at the end."""
    sink, task = started(P0, P1)
    sink.send("a")
    sink.send("b", partition=P1)
    sink.deliver()
    sink.commit()
    sink.revoke(P1)
    sink.stop()
    assert sorted(task.calls[0]) == ["open", "topic-0", "topic-1"]  # type: ignore[call-overload]
    assert task.calls[1:] == [
        ["a", "b"],
        ("pre_commit", False, 1, 1),
        ("pre_commit", True, 1),
        ("close", "topic-1"),
        ("pre_commit", True, 1),
        ("close", "topic-0"),
        "stop",
    ]
    assert not sink.context.is_closing


def test_a_batch_that_is_to_come_again_comes_again_whole() -> None:
    """And its offsets are not offered before it is taken."""
    sink, task = started()
    sink.send("a")
    task.refusals = 2
    assert sink.deliver() == []
    sink.send("b")
    assert sink.deliver() == []
    assert sink.commit() == {P0: 0}
    assert [record.value for record in sink.deliver()] == ["a"]
    assert [record.value for record in sink.deliver()] == ["b"]
    assert sink.commit() == {P0: 2}


def test_uncommitted_records_are_read_again() -> None:
    """After a crash, and after partitions were lost."""
    sink, _ = started()
    sink.send("a")
    sink.deliver()
    sink.commit()
    sink.send("b")
    sink.deliver()
    sink.lose()
    assert sink.committed == {P0: 1}
    sink.assign(P0)
    assert [record.value for record in sink.deliver()] == ["b"]
    sink.crash()
    assert [record.value for record in sink.deliver()] == ["b"]


def test_a_task_may_say_where_to_read_on() -> None:
    """With `offset`, from `open` on."""

    class Own(Log):
        def open(self, partitions: Collection[TopicPartition]) -> None:
            for partition in partitions:
                self.context.offset(partition, 2)

    sink = SinkHarness(Own, {})
    for text in "abc":
        sink.send(text)
    sink.start()
    assert [record.value for record in sink.deliver()] == ["c"]
    sink.context.offset({P0: 1})
    assert [record.value for record in sink.deliver()] == ["b", "c"]


def test_paused_partitions_are_not_delivered() -> None:
    """Until they are resumed."""
    sink, _ = started(P0, P1)
    sink.send("a")
    sink.send("b", partition=P1)
    sink.context.pause(P0)
    assert [record.value for record in sink.deliver()] == ["b"]
    sink.context.resume(P0)
    assert [record.value for record in sink.deliver()] == ["a"]
    with pytest.raises(IllegalWorkerStateException):
        sink.context.pause(TopicPartition("other", 0))


@cases("answer, text", ({P1: 0}, "not offered"), ({P0: 5}, "beyond 1"), ({P0: -1}, "beyond"))
def test_offsets_must_have_been_offered(answer: dict[TopicPartition, int], text: str) -> None:
    """A worker would warn and ignore them; in a test they are mistakes."""

    class Wrong(Log):
        def pre_commit(
            self, current_offsets: Mapping[TopicPartition, int]
        ) -> Mapping[TopicPartition, int]:
            return answer

    sink = SinkHarness(Wrong, {})
    sink.start()
    sink.send("a")
    sink.deliver()
    with pytest.raises(AssertionError, match=text):
        sink.commit()


def test_reports_of_bad_records_are_kept() -> None:
    """And are errors too when nothing is tolerated."""
    reporter = RecordingReporter()
    sink = SinkHarness(Log, {}, reporter=reporter)
    record = sink.send("bad")
    sink.start()
    found = sink.context.errant_record_reporter()
    assert found is not None
    assert found.report(record, ValueError("no")).done()
    assert [(r.value, str(error)) for r, error in reporter.reports] == [("bad", "no")]
    with pytest.raises(ConnectException, match="none"):
        RecordingReporter(tolerate=False).report(record, ValueError("no"))
