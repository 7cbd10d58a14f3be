"""The contract of source tasks."""

from collections.abc import Mapping, Sequence

import pytest

from pyconnect_api import (
    INT64_SCHEMA,
    DataException,
    IllegalWorkerStateException,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
)
from pyconnect_api.testing import ManualStop, MemoryOffsets, SourceHarness
from tests.support.cases import cases


class Numbers(SourceTask):
    """Counts; `scripted` replaces what poll does."""

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


def started(task: type[SourceTask] = Numbers, **options: bool) -> SourceHarness:
    source = SourceHarness(task, {}, **options)  # type: ignore[arg-type]
    source.start()
    return source


def test_acknowledged_records_have_places_and_are_committed() -> None:
    """Offsets count per partition; a restart begins after the last one."""
    source = started()
    source.run(2)
    assert isinstance(source.task, Numbers)
    places = [metadata for _, metadata in source.task.done]
    assert places == [RecordMetadata("t", 0, 0), RecordMetadata("t", 0, 1)]
    source = started()
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
    """As for a worker."""

    class Later(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            raise RetriableException("later")

    assert started(Later).poll() == []


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
    """At the poll that returned it."""

    class Wrong(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            return [record]

    with pytest.raises(error, match=text):
        started(Wrong).poll()


def test_a_task_without_records_is_distinguished_from_a_slow_one() -> None:
    """`run` gives up after some polls instead of hanging."""

    class Empty(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            self.context.stop_requested.wait(1.0)
            return None

    source = started(Empty)
    with pytest.raises(AssertionError, match="5 polls brought 0 records, not 1"):
        source.run(1, max_polls=5)
    assert source.stop_requested.waits_s == [1.0] * 5


def test_transactions_end_where_the_task_says() -> None:
    """After a record or a batch; aborted records are in none."""

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

    source = started(Deciding, define_boundaries=True)
    source.run(6)
    expected = [[0], [1, 2, 3]]
    assert [[r.value for r in transaction] for transaction in source.transactions] == expected


def test_a_boundary_at_a_strange_record_or_of_two_minds_is_refused() -> None:
    """Both make a worker fail the task."""

    class Strange(Numbers):
        def poll(self) -> Sequence[SourceRecord] | None:
            context = self.context.transaction_context
            assert context is not None
            context.commit_transaction(self.number(9))
            return [self.number(9)]

    with pytest.raises(AssertionError, match="did not return"):
        started(Strange, define_boundaries=True).poll()
    context = started(define_boundaries=True).context.transaction_context
    assert context is not None
    context.commit_transaction()
    with pytest.raises(IllegalWorkerStateException):
        context.abort_transaction()


def test_offsets_come_back_as_json_and_can_be_forgotten() -> None:
    """A tuple comes back as a list; the order of keys does not matter."""
    offsets = MemoryOffsets([({"a": 1, "b": 2}, {"x": 1})])
    assert offsets.offset({"b": 2, "a": 1}) == {"x": 1}
    offsets.store({"b": 2, "a": 1}, None)
    assert offsets.offsets([{"a": 1, "b": 2}]) == [({"a": 1, "b": 2}, None)]


def test_a_wait_that_nothing_ends_is_refused() -> None:
    """In a test it would wait for ever."""
    with pytest.raises(AssertionError, match="nothing else wakes it up"):
        ManualStop().wait()


class Reusing(Numbers):
    """Counts in one and the same dict."""

    def start(self, props: Mapping[str, str]) -> None:
        super().start(props)
        self.place: dict[str, object] = {"last": -1}

    def poll(self) -> Sequence[SourceRecord] | None:
        self.place["last"] = self.next
        self.next += 1
        return [SourceRecord({"n": 1}, self.place, "t", value="v")]


def test_an_offset_must_not_change_after_its_record_was_polled() -> None:
    """A worker that commits late would commit the present position, and lose records."""
    source = started(Reusing)
    source.poll()
    with pytest.raises(AssertionError, match="make a new dict for each record"):
        source.poll()
