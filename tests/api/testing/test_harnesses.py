"""The harnesses of sink and source tasks, and the consumer group that they play."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from pyconnect_api import (
    INT64_SCHEMA,
    ConnectException,
    DataException,
    IllegalWorkerStateException,
    RecordMetadata,
    RetriableException,
    SinkRecord,
    SinkTask,
    SourceRecord,
    SourceTask,
    TopicPartition,
)
from pyconnect_api.testing import (
    ManualStop,
    MemoryOffsets,
    RecordingReporter,
    SinkHarness,
    SourceHarness,
)
from tests.support.cases import cases

P0, P1 = TopicPartition("topic", 0), TopicPartition("topic", 1)


class Log(SinkTask):
    """A sink that notes each call."""

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
    """`is_closing` is true in the commits before a `close`, in a rebalance and at the end."""
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
    """A refused batch is delivered alone, and its offsets are not offered before it is taken."""
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
    """Records after the committed offset are delivered again after a lost partition or a crash."""
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
    """`context.offset` sets the next record of a partition, also in `open`."""

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
    """The records of a paused partition are delivered once it is resumed."""
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
    """The harness fails for offsets that a worker would ignore with a warning."""

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
    """The reporter keeps each record and its error; with `tolerate=False` a report raises."""
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


class Numbers(SourceTask):
    """A source that counts; tests override its `poll`."""

    def start(self, props: Mapping[str, str]) -> None:
        offset = self.context.offset_storage_reader.offset({"n": 1})
        self.next = int(str(offset["last"])) + 1 if offset else 0
        self.done: list[tuple[object, RecordMetadata | None]] = []
        self.commits = 0

    def poll(self) -> Sequence[SourceRecord] | None:
        record = self.number(self.next)
        self.next += 1
        return [record]

    @staticmethod
    def number(value: object, topic: str | None = "t") -> SourceRecord:
        return SourceRecord(
            {"n": 1}, {"last": value}, topic, value_schema=INT64_SCHEMA, value=value
        )

    def commit(self) -> None:
        self.commits += 1

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self.done.append((record.value, metadata))

    def stop(self) -> None:
        pass

    def version(self) -> str:
        return "1"


def started_source(task: type[SourceTask] = Numbers, **options: bool) -> SourceHarness:
    source = SourceHarness(task, {}, **options)  # type: ignore[arg-type]
    source.start()
    return source


def test_acknowledged_records_have_places_and_are_committed() -> None:
    """Offsets count for each partition; a restart begins after the last committed one."""
    source = started_source()
    source.run(2)
    assert isinstance(source.task, Numbers)
    places = [metadata for _, metadata in source.task.done]
    assert places == [RecordMetadata("t", 0, 0), RecordMetadata("t", 0, 1)]
    source = started_source()
    for _ in range(3):
        source.poll()
    source.acknowledge(2)
    source.commit()
    assert source.offsets.all() == [({"n": 1}, {"last": 1})]
    assert isinstance(source.task, Numbers)
    assert source.task.commits == 1
    assert [value for value, _ in source.task.done] == [0, 1]
    source.restart()
    assert source.poll()[0].value == 2


def test_a_retriable_error_is_a_poll_without_records() -> None:
    """`RetriableException` in `poll` means no records, as for a worker."""

    class Later(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            raise RetriableException("later")

    assert started_source(Later).poll() == []


@cases(
    "record, error, text",
    (Numbers.number(1, topic=None), AssertionError, "no topic"),
    (Numbers.number("text"), DataException, "INT64"),
    ("text", AssertionError, "returned a str"),
    (SourceRecord({"n": b"x"}, {}, "t"), AssertionError, "None, bool, int, float and str"),
    (SourceRecord({"n": 1}, {"x": float("nan")}, "t"), AssertionError, "Source partitions"),
)
def test_records_that_a_worker_could_not_produce_are_refused(
    record: SourceRecord, error: type[Exception], text: str
) -> None:
    """`poll` of the harness raises for a record that no worker could produce."""

    class Wrong(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            return [record]

    with pytest.raises(error, match=text):
        started_source(Wrong).poll()


def test_a_task_without_records_is_distinguished_from_a_slow_one() -> None:
    """`run` fails after `max_polls` polls instead of hanging."""

    class Empty(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            self.context.stop_requested.wait(1.0)
            return None

    source = started_source(Empty)
    with pytest.raises(AssertionError, match="5 polls brought 0 records, not 1"):
        source.run(1, max_polls=5)
    assert source.stop_requested.waits_s == [1.0] * 5


def test_transactions_end_where_the_task_says() -> None:
    """A transaction ends after a record or a batch; aborted records are in no transaction."""

    class Deciding(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            records = [self.number(n) for n in range(self.next, self.next + 3)]
            self.next += 3
            context = self.context.transaction_context
            assert context is not None
            context.commit_transaction(records[0])
            if self.next > 3:
                context.abort_transaction()
            return records

    source = started_source(Deciding, define_boundaries=True)
    source.run(6)
    expected = [[0], [1, 2, 3]]
    assert [[r.value for r in transaction] for transaction in source.transactions] == expected


def test_a_boundary_at_a_strange_record_or_of_two_minds_is_refused() -> None:
    """A boundary at a record that was not returned, and commit with abort, fail as for a worker."""

    class Strange(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            context = self.context.transaction_context
            assert context is not None
            context.commit_transaction(self.number(9))
            return [self.number(9)]

    with pytest.raises(AssertionError, match="did not return"):
        started_source(Strange, define_boundaries=True).poll()
    context = started_source(define_boundaries=True).context.transaction_context
    assert context is not None
    context.commit_transaction()
    with pytest.raises(IllegalWorkerStateException):
        context.abort_transaction()


def test_offsets_come_back_as_json_and_can_be_forgotten() -> None:
    """Offsets are found with keys in any order, and removed by storing None."""
    offsets = MemoryOffsets([({"a": 1, "b": 2}, {"x": 1})])
    assert offsets.offset({"b": 2, "a": 1}) == {"x": 1}
    offsets.store({"b": 2, "a": 1}, None)
    assert offsets.offsets([{"a": 1, "b": 2}]) == [({"a": 1, "b": 2}, None)]


def test_a_wait_that_nothing_ends_is_refused() -> None:
    """The harness refuses a wait without a timeout, because it would never end."""
    with pytest.raises(AssertionError, match="nothing else wakes it up"):
        ManualStop().wait()


class Reusing(Numbers):
    """A source that counts in one and the same dict."""

    def start(self, props: Mapping[str, str]) -> None:
        super().start(props)
        self.place: dict[str, object] = {"last": -1}

    def poll(self) -> Sequence[SourceRecord] | None:
        self.place["last"] = self.next
        self.next += 1
        return [SourceRecord({"n": 1}, self.place, "t", value="v")]


def test_an_offset_must_not_change_after_its_record_was_polled() -> None:
    """A source that changes a polled offset fails: a worker would lose records."""
    source = started_source(Reusing)
    source.poll()
    with pytest.raises(AssertionError, match="make a new dict for each record"):
        source.poll()
