"""The source loop at-least-once: what is sent, tracked, committed and told to the task."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.builtin.converters.simple_header import SimpleHeaderConverter
from pyconnect_agent.builtin.converters.string import StringConverter
from pyconnect_agent.core.errors import RetriableKafkaError
from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metrics.catalog import SOURCE_TASK
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.active_topics import ActiveTopics
from pyconnect_agent.tasks.at_least_once_sender import AtLeastOnceSender
from pyconnect_agent.tasks.source import SourceLoop
from pyconnect_agent.tasks.source_committer import SourceCommitter
from pyconnect_agent.tasks.source_pipeline import Transform, compose
from pyconnect_agent.tasks.task_plugins import Converters
from pyconnect_agent.tasks.tolerance import Tolerance
from pyconnect_api import (
    STRING_SCHEMA,
    ConnectException,
    ConnectHeaders,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
)
from tests.support.fake_clients import FakeProducer
from tests.support.fake_control import FakeControl
from tests.support.metrics import source_metrics

FATAL = ClientError.TOPIC_AUTHORIZATION_FAILED


def record(position: int, partition: str = "f", **values: Any) -> SourceRecord:
    settings: dict[str, Any] = {"value_schema": STRING_SCHEMA, "value": f"v{position}", **values}
    return SourceRecord({"file": partition}, {"position": position}, "t", **settings)


class ScriptedTask(SourceTask):
    """Returns or raises what `polls` holds, one each; notes what it is told."""

    def __init__(self) -> None:
        self.polls: list[Sequence[SourceRecord] | Exception | None] = []
        self.records: list[tuple[Any, RecordMetadata | None]] = []
        self.commits = 0

    def version(self) -> str:
        return "1"

    def start(self, props: Mapping[str, str]) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""

    def poll(self) -> Sequence[SourceRecord] | None:
        polled = self.polls.pop(0) if self.polls else None
        if isinstance(polled, Exception):
            raise polled
        return polled

    def commit(self) -> None:
        self.commits += 1

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self.records.append((record.value, metadata))


class Source:
    """A loop over fakes, stepped by hand; `written` is the offset store."""

    def __init__(self, *, transform: Transform | None = None, tolerate_all: bool = False) -> None:
        self.task = ScriptedTask()
        self.producer = FakeProducer()
        self.control = FakeControl()
        self.states: list[State] = []
        self.topics: list[str] = []
        self.written: list[dict[bytes, bytes | None]] = []
        self.write_failure: Exception | None = None
        tolerance = Tolerance(
            tolerate_all=tolerate_all,
            policy=RetryPolicy(),
            reporters=(),
            stop_requested=threading.Event(),
        )
        self.metrics = source_metrics()
        self.committer = SourceCommitter(
            connector="c",
            task=self.task,
            write=self.write,
            flush_interval_ms=60_000,
            flush_timeout_ms=5_000,
            serve_if_idle=lambda: None,
            metrics=self.metrics.task,
        )
        self.sender = AtLeastOnceSender(
            task=self.task,
            producer=self.producer,  # type: ignore[arg-type]
            tolerance=tolerance,
            topics=ActiveTopics(self.topics.append),
            stop_requested=lambda: self.control.stopping,
            offer=self.offer,
            commit=self.commit,
            flush_timeout_s=5,
            not_delivered=lambda: self.metrics.left_out(1),
        )
        converter = StringConverter()
        self.loop = SourceLoop(
            task=self.task,
            convert=compose(
                converters=Converters(
                    key=converter, value=converter, header=SimpleHeaderConverter()
                ),
                transform=transform,
                tolerance=tolerance,
            ),
            sender=self.sender,
            control=self.control,  # type: ignore[arg-type]
            report=self.states.append,
            metrics=self.metrics,
        )

    def write(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        assert 0 <= timeout_ms <= 5_000
        if self.write_failure is not None:
            raise self.write_failure
        self.written.append(entries)

    def offer(self) -> None:
        self.committer.offer(self.sender.submitted.committable_offsets())

    def commit(self) -> None:
        self.committer.commit()

    def poll(self, *records: SourceRecord) -> None:
        self.task.polls.append(records)
        self.loop.step()


@pytest.fixture
def source() -> Source:
    return Source()


def entry(position: int, partition: str = "f") -> dict[bytes, bytes | None]:
    return {b'["c",{"file":"%s"}]' % partition.encode(): b'{"position":%d}' % position}


def test_only_the_acknowledged_prefix_is_committed(source: Source) -> None:
    """A gap holds back everything behind it."""
    source.poll(record(1), record(2), record(3))
    source.producer.deliver(0)
    source.producer.deliver(1)
    source.loop.step()
    source.committer.commit()
    assert source.written == [entry(1)]
    source.producer.deliver()
    source.loop.step()
    source.committer.commit()
    assert source.written == [entry(1), entry(3)]


def test_partitions_are_committed_side_by_side(source: Source) -> None:
    """A slow one does not hold back another."""
    source.poll(record(1, "a"), record(1, "b"), record(2, "b"))
    source.producer.deliver(1, 2)
    source.loop.step()
    source.committer.commit()
    assert source.written == [entry(2, "b")]


def test_commit_is_called_even_when_there_is_nothing_to_write(source: Source) -> None:
    """SourceTask.commit tells that all is well."""
    source.committer.commit()
    assert source.written == []
    assert source.task.commits == 1


def test_a_failed_write_is_repeated_with_newer_offsets_on_top(source: Source) -> None:
    """Nothing is forgotten, and commit() is not called for it."""
    source.producer.auto_deliver = True
    source.poll(record(1, "a"), record(1, "b"))
    source.loop.step()
    source.write_failure = RetriableKafkaError("away")
    assert source.committer.commit() is False
    assert source.task.commits == 0
    source.write_failure = None
    source.poll(record(2, "b"))
    source.loop.step()
    assert source.committer.commit() is True
    assert source.written == [entry(1, "a") | entry(2, "b")]


def test_offsets_that_cannot_be_written_fail_only_the_commit(source: Source) -> None:
    """The task goes on; the text is Connect's."""
    source.producer.auto_deliver = True
    bad = SourceRecord({"file": "f"}, {"position": [1]}, "t", value="v")
    source.poll(bad)
    source.loop.step()
    assert source.committer.commit() is False
    assert source.written == []


def test_a_record_is_told_after_its_delivery(source: Source) -> None:
    """With its metadata and as it was before transformations; the topic is told once."""
    source.poll(record(1), record(2))
    assert source.task.records == []
    source.producer.deliver()
    source.loop.step()
    assert source.task.records == [
        ("v1", RecordMetadata("t", 0, 0, 1_700_000_000_000)),
        ("v2", RecordMetadata("t", 0, 1, 1_700_000_000_000)),
    ]
    assert source.topics == ["t"]


def test_a_dropped_record_is_told_but_does_not_advance_the_offset() -> None:
    """The next record that is sent does."""
    source = Source(transform=lambda r: None if r.value == "v1" else r)
    source.producer.auto_deliver = True
    source.poll(record(1))
    source.loop.step()
    source.committer.commit()
    assert source.task.records == [("v1", None)]
    assert source.written == []
    source.poll(record(2))
    source.loop.step()
    source.committer.commit()
    assert source.written == [entry(2)]


def test_a_failed_delivery_fails_the_task_before_the_next_poll(source: Source) -> None:
    """Its offset and those behind it are never committed."""
    source.poll(record(1), record(2))
    source.producer.fail(0, FATAL)
    source.producer.deliver()
    with pytest.raises(ConnectException, match="Unrecoverable exception from producer send"):
        source.loop.step()
    source.sender.finish(failed=True)
    assert source.written == []


def test_a_failed_delivery_is_skipped_when_errors_are_tolerated() -> None:
    """It is told as None and counts as acknowledged."""
    source = Source(tolerate_all=True)
    source.poll(record(1), record(2))
    source.producer.fail(0, FATAL)
    source.producer.deliver()
    source.loop.step()
    source.committer.commit()
    assert source.task.records[0] == ("v1", None)
    assert source.written == [entry(2)]


def test_an_oversized_record_fails_as_a_delivery_would(source: Source) -> None:
    """Java's producer reports it by callback, so the text is that of callbacks."""
    source.producer.refusals = [KafkaException(ClientError(ClientError.MSG_SIZE_TOO_LARGE))]
    source.poll(record(1))
    with pytest.raises(ConnectException, match="from producer send callback"):
        source.loop.step()


def test_another_refusal_fails_at_once(source: Source) -> None:
    """Connect's text for what send itself raises."""
    source.producer.refusals = [KafkaException(ClientError(FATAL))]
    with pytest.raises(ConnectException, match="Unrecoverable exception trying to send"):
        source.poll(record(1))


def test_a_full_queue_is_waited_out(source: Source) -> None:
    """Back-pressure is no error and no record is sent twice."""
    source.producer.refusals = [BufferError(), BufferError()]
    source.poll(record(1), record(2))
    assert [sent.value for sent in source.producer.sent] == [b"v1", b"v2"]


def test_a_stop_interrupts_the_wait_for_a_full_queue(source: Source) -> None:
    """The rest of the batch stays unsent, and its offsets are not tracked."""
    source.control.stop_requested.set()
    source.producer.refusals = [BufferError()]
    source.poll(record(1), record(2))
    assert source.producer.sent == []
    assert source.sender.submitted.committable_offsets().uncommittable_count == 0


def test_a_retriable_poll_counts_as_empty_and_another_error_ends(source: Source) -> None:
    """RetriableException means try again."""
    source.task.polls = [RetriableException("later"), [record(1)], ValueError("broken")]
    source.loop.step()
    source.loop.step()
    assert len(source.producer.sent) == 1
    with pytest.raises(ValueError, match="broken"):
        source.loop.step()


def test_a_pause_reports_and_polls_no_more(source: Source) -> None:
    """After it RUNNING is reported again."""
    source.control.should_pause = True
    source.task.polls = [[record(1)]]

    def resume(timeout_s: float | None = None) -> None:
        source.control.should_pause = False

    source.control.wait = resume  # type: ignore[method-assign]
    source.loop.step()
    assert source.states == [State.PAUSED, State.RUNNING]
    assert source.producer.sent == []


def test_the_last_commit_waits_for_what_is_in_flight(source: Source) -> None:
    """Everything acknowledged in time is committed."""
    source.poll(record(1), record(2))
    source.producer.deliver()
    source.sender.finish(failed=False)
    assert source.written == [entry(2)]
    assert source.task.commits == 1


def test_what_is_sent_is_what_the_converters_made(source: Source) -> None:
    """Key, partition, timestamp and headers; no timestamp and -1 mean now."""
    headers = ConnectHeaders().add_string("h", "x")
    source.poll(
        record(1, key="k", kafka_partition=3, timestamp=12, headers=headers),
        record(2, timestamp=-1),
        record(3, value=None),
    )
    first, second, third = source.producer.sent
    assert (first.key, first.value, first.partition, first.timestamp) == (b"k", b"v1", 3, 12)
    assert first.headers == [("h", b"x")]
    assert (second.key, second.partition, second.timestamp, second.headers) == (None, -1, 0, None)
    assert third.value is None


def test_a_negative_timestamp_fails_the_task(source: Source) -> None:
    """-1 alone stands for none."""
    with pytest.raises(ConnectException, match="Invalid record timestamp -5"):
        source.poll(record(1, timestamp=-5))


def test_a_task_without_commit_record_is_not_asked() -> None:
    """The hook costs nothing unless it is overridden."""

    class Plain(ScriptedTask):
        commit_record = SourceTask.commit_record  # type: ignore[assignment]

    source = Source()
    sender = AtLeastOnceSender(
        task=Plain(),
        producer=source.producer,  # type: ignore[arg-type]
        tolerance=source.sender._tolerance,
        topics=ActiveTopics(source.topics.append),
        stop_requested=lambda: False,
        offer=lambda: None,
        commit=lambda: None,
        flush_timeout_s=5,
        not_delivered=lambda: None,
    )
    sender.send(record(1), ("t", b"v", None, -1, 0, None))
    source.producer.deliver()
    source.producer.serve()
    assert sender.submitted.committable_offsets().committable_count == 1


def test_errors_of_the_hooks_are_swallowed(source: Source) -> None:
    """A task that fails to take note goes on all the same."""

    def fail(*_: object) -> None:
        raise ValueError("cannot note")

    source.sender._commit_record = fail
    source.task.commit = fail  # type: ignore[method-assign]
    source.producer.auto_deliver = True
    source.poll(record(1))
    source.loop.step()
    assert source.committer.commit() is True
    assert source.written == [entry(1)]


def test_records_are_counted_on_their_way() -> None:
    """Polled, filtered, under way, written; what the brokers refuse is not written."""
    source = Source(
        transform=lambda record: None if record.value == "v2" else record, tolerate_all=True
    )

    def counts() -> tuple[object, ...]:
        source.loop.count_under_way()
        found = source.metrics.values()[SOURCE_TASK]
        names = ("poll-total", "active-count", "write-total")
        return tuple(found[f"source-record-{name}"] for name in names)

    source.poll(record(1), record(2), record(3))
    assert counts() == (3, 2, 0)
    source.producer.deliver(0)
    source.loop.step()
    assert counts() == (3, 1, 1)
    source.producer.fail(0, FATAL)
    source.loop.step()
    assert counts() == (3, 0, 1)


@pytest.mark.parametrize("tolerate_all", [True, False])
def test_records_the_brokers_refuse_count_as_kafka_counts_them(tolerate_all: bool) -> None:
    """A tolerated one is a failure, but neither error nor skipped; another one ends the task."""
    source = Source(tolerate_all=tolerate_all)
    source.poll(record(1))
    source.producer.fail(0, FATAL)
    source.producer.serve()
    counts = source.sender._tolerance.counts
    assert counts.record_failures == int(tolerate_all)
    assert (counts.record_errors, counts.records_skipped) == (0, 0)
