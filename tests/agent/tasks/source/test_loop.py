"""The loop of a source task: its polls and pauses, and the records that it sends and counts."""

import math
import time
from typing import Any

import pytest
from confluent_kafka import KafkaError as ClientError

from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metric_values import SOURCE_TASK
from pyconnect_api import ConnectException, ConnectHeaders, Header, RetriableException, SourceRecord
from tests.agent.tasks.source.source_loop import NotingTask, Source, entry, record
from tests.support.cases import cases

TRACE = (
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("tracestate", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
    ("tracestate", "vendor=1"),
)


def test_a_retriable_poll_counts_as_empty_and_another_error_ends(source: Source) -> None:
    """The loop polls again after a RetriableException; any other exception ends it."""
    source.task.polls = [RetriableException("later"), [record(1)], ValueError("broken")]
    source.loop.step()
    source.loop.step()
    assert len(source.producer.sent) == 1
    with pytest.raises(ValueError, match="broken"):
        source.loop.step()


@cases(
    "polled, named",
    ([{"a": 1}], "a list of dict"),
    ("line", "str"),
    (record(1), "pyconnect_api.record.SourceRecord"),
    ((each for each in [record(1)]), "generator"),
)
def test_a_poll_that_returns_no_records_is_named(source: Source, polled: Any, named: str) -> None:
    """The task fails with the type that `poll` has returned."""
    source.task.polls = [polled]
    with pytest.raises(ConnectException, match=f"NotingTask.poll returned {named}; it returns"):
        source.loop.step()


def test_a_pause_reports_and_polls_no_more(source: Source) -> None:
    """A paused task is not polled, and RUNNING is reported at its resume."""
    source.control.should_pause = True
    source.task.polls = [[record(1)]]

    def resume(timeout_s: float | None = None) -> None:
        source.control.should_pause = False

    source.control.wait = resume  # type: ignore[method-assign]
    source.loop.step()
    assert source.states == [State.PAUSED, State.RUNNING]
    assert source.producer.sent == []


class TaskOfAProcess(NotingTask):
    def __init__(self, *, is_waiting: bool) -> None:
        super().__init__()
        self.is_waiting = is_waiting

    def check_process(self) -> None:
        raise ConnectException("The Java process was killed")


@cases("is_waiting", True, False)
def test_a_poll_that_hangs_in_another_process_is_no_activity(*, is_waiting: bool) -> None:
    """A poll counts as activity only when the process is not still in an earlier poll."""
    source = Source(task=TaskOfAProcess(is_waiting=is_waiting))
    source.loop.step()
    assert (source.loop.last_poll_ms is None) is is_waiting


def test_a_paused_task_whose_process_has_ended_fails() -> None:
    """The loop checks the process during a pause, not only when the task is resumed."""

    source = Source(task=TaskOfAProcess(is_waiting=False))
    source.control.should_pause = True
    source.control.wait = lambda timeout_s=None: None  # type: ignore[method-assign]
    with pytest.raises(ConnectException, match="was killed"):
        source.loop.step()
    assert source.states == [State.PAUSED]


def test_the_last_commit_waits_for_records_in_flight(source: Source) -> None:
    """The last commit includes all records that are acknowledged in time."""
    source.poll(record(1), record(2))
    source.producer.deliver()
    source.sender.finish(failed=False, complete=True)
    assert source.written == [entry(2)]
    assert source.task.commits == 1


def test_a_commit_says_how_far_it_is_behind_the_source(source: Source) -> None:
    """The lag is measured from the timestamp of the last record, if that has one."""

    def longest() -> float:
        return float(source.metrics.values()[SOURCE_TASK]["source-record-commit-lag-max-ms"])

    def committed(*records: SourceRecord) -> None:
        source.poll(*records)
        source.producer.deliver()
        source.sender.finish(failed=False, complete=True)

    committed(record(1))
    assert math.isnan(longest())
    now_ms = int(time.time() * 1000)
    committed(record(2, timestamp=now_ms - 9_000_000), record(3, timestamp=now_ms - 5_000_000))
    assert 5_000_000 <= longest() < 9_000_000


def test_trace_headers_reach_kafka_as_they_are(source: Source) -> None:
    """Headers of W3C Trace Context reach Kafka unchanged and in their order."""
    source.poll(record(1, headers=[Header(name, None, text) for name, text in TRACE]))
    (sent,) = source.producer.sent
    assert sent.headers == [(name, text.encode()) for name, text in TRACE]


def test_sent_records_have_the_converters_results(source: Source) -> None:
    """A sent record has key, partition, timestamp and headers; no timestamp and -1 mean now."""
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
    """Of the negative timestamps only -1 stands for none."""
    with pytest.raises(ConnectException, match="Invalid record timestamp -5"):
        source.poll(record(1, timestamp=-5))


def test_errors_of_the_hooks_are_swallowed(source: Source) -> None:
    """A task whose `commit_record` and `commit` raise goes on."""

    def fail(*_: object) -> None:
        raise ValueError("cannot note")

    source.task.commit_record = fail  # type: ignore[method-assign]
    source.task.commit = fail  # type: ignore[method-assign]
    source.producer.auto_deliver = True
    source.poll(record(1))
    source.loop.step()
    assert source.committer.commit() is True
    assert source.written == [entry(1)]


def test_records_are_counted_on_their_way() -> None:
    """Metrics count polled, active and written records; refused records are not written."""
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
    source.producer.fail(0, ClientError.TOPIC_AUTHORIZATION_FAILED)
    source.loop.step()
    assert counts() == (3, 0, 1)


@cases("tolerate_all", True, False)
def test_records_the_brokers_refuse_count_as_kafka_counts_them(tolerate_all: bool) -> None:
    """A tolerated refusal counts as a failure, but neither as error nor as skipped."""
    source = Source(tolerate_all=tolerate_all)
    source.poll(record(1))
    source.producer.fail(0, ClientError.TOPIC_AUTHORIZATION_FAILED)
    source.producer.serve()
    counts = source.sender._tolerance.counts
    assert counts.record_failures == int(tolerate_all)
    assert (counts.record_errors, counts.records_skipped) == (0, 0)
