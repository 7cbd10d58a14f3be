"""A sink task that collects batches."""

from collections.abc import Sequence

import pytest

from pyconnect_api import (
    BackOff,
    BatchingSinkTask,
    ConnectException,
    RetriableException,
    SinkRecord,
    TopicPartition,
)
from pyconnect_api.testing import ManualStop, RecordingReporter, SinkHarness

PARTITION = TopicPartition("topic", 0)


class Batches(BatchingSinkTask):
    """A sink that keeps its batches; `down` makes writes fail, and "bad" records are reported."""

    batch_records = 2
    batch_ms = 60_000
    written: list[list[object]]
    down = False

    def initialize(self, context) -> None:  # type: ignore[no-untyped-def]
        super().initialize(context)
        self.written = []

    def write(self, records: Sequence[SinkRecord]) -> None:
        if self.down:
            raise RetriableException("the endpoint is away")
        for record in records:
            if record.value == "bad":
                self.report(record, ConnectException("refused"))
        self.written.append([record.value for record in records])


def started(
    task_class: type[Batches] = Batches, reporter: RecordingReporter | None = None
) -> tuple[SinkHarness, Batches]:
    sink = SinkHarness(task_class, {}, reporter=reporter)
    task = sink.start()
    assert isinstance(task, Batches)
    return sink, task


def record(value: str, offset: int) -> SinkRecord:
    return SinkRecord(PARTITION.topic, PARTITION.partition, None, None, None, value, offset)


def send(sink: SinkHarness, *values: str) -> None:
    for value in values:
        sink.send(value)
    sink.deliver()


def test_only_written_records_are_committed() -> None:
    """A record's offset is committed once its batch is written; `stop` writes the last batch."""
    sink, task = started()
    send(sink, "a", "b", "c")
    assert task.written == [["a", "b"]]
    assert sink.commit() == {PARTITION: 2}
    assert 0 < sink.context.timeouts_ms[-1] <= 60_001
    sink.stop()
    assert task.written == [["a", "b"], ["c"]]
    assert sink.committed == {PARTITION: 3}


def test_a_batch_is_written_when_it_is_full_or_old() -> None:
    """A batch is written at its limit of records or bytes, or when its time is over."""

    class Small(Batches):
        batch_records = 100
        batch_bytes = 3

    sink, task = started(Small)
    send(sink, "aa", "bb", "cccc", "d")
    assert task.written == [["aa", "bb"], ["cccc"]]

    class Due(Batches):
        batch_ms = 0

    sink, task = started(Due)
    send(sink, "a")
    assert task.written == [["a"]]


def test_a_batch_is_repeated_with_growing_waits_up_to_its_last_attempt() -> None:
    """A failed batch is written again without new records; a success sets the waits back."""
    sink, task = started()
    task.down = True
    send(sink, "a", "b")
    sink.deliver()
    assert sink.context.timeouts_ms == [100, 200]
    assert sink.commit() == {PARTITION: 0}
    task.down = False
    sink.deliver()
    assert task.written == [["a", "b"]]
    assert sink.commit() == {PARTITION: 2}
    assert task.back_off.failures == 0

    class Impatient(Batches):
        max_retries = 1
        down = True

    sink, _ = started(Impatient)
    send(sink, "a", "b")
    with pytest.raises(ConnectException, match="2 attempts"):
        sink.deliver()


def test_a_refused_record_is_reported_or_fails_the_task() -> None:
    """With a reporter the refused record is reported; without a reporter the task fails."""
    reporter = RecordingReporter()
    sink, task = started(reporter=reporter)
    send(sink, "a", "bad")
    assert [record.value for record, _ in reporter.reports] == ["bad"]
    assert task.written == [["a", "bad"]]
    without, _ = started()
    with pytest.raises(ConnectException, match="refused"):
        send(without, "a", "bad")


def test_a_record_is_reported_once_however_often_its_batch_is_repeated() -> None:
    """A repeated batch leaves out the reported record; all offsets are committed together."""

    class AwayAfterwards(Batches):
        def write(self, records: Sequence[SinkRecord]) -> None:
            super().write(records)
            if len(self.written) < 3:
                raise RetriableException("the endpoint is away")

    reporter = RecordingReporter()
    sink, task = started(AwayAfterwards, reporter)
    send(sink, "a", "bad")
    assert sink.commit() == {PARTITION: 0}
    sink.deliver()
    sink.deliver()
    assert task.written == [["a", "bad"], ["a"], ["a"]]
    assert [record.value for record, _ in reporter.reports] == ["bad"]
    assert sink.commit() == {PARTITION: 2}


def test_lost_partitions_are_dropped_and_read_again() -> None:
    """The batch of a lost partition is dropped, so a record that comes again is written once."""
    sink, task = started()
    send(sink, "a")
    sink.lose()
    sink.assign(PARTITION)
    sink.send("b")
    sink.deliver()
    assert task.written == [["a", "b"]]
    sink, task = started()
    task.down = True
    send(sink, "a", "b")
    sink.lose()
    sink.assign(PARTITION)
    task.down = False
    task.put([record("a", 0), record("b", 1)])
    assert task.written == [["a", "b"]]


def test_a_topic_made_anew_begins_at_0_again() -> None:
    """Lower offsets than before mean a new topic, whose records are written."""
    sink, task = started()
    send(sink, "a", "b")
    task.put([record("c", 0), record("d", 1)])
    assert task.written == [["a", "b"], ["c", "d"]]


def test_waits_double_up_to_a_limit() -> None:
    """`BackOff.reset` starts again with the first wait."""
    back_off = BackOff(first_ms=100, max_ms=350)
    assert [back_off.next_ms() for _ in range(4)] == [100, 200, 350, 350]
    back_off.reset()
    stop = ManualStop()
    assert not back_off.wait(stop)
    assert stop.waits_s == [0.1]
