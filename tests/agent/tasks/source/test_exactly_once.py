"""Content and ends of transactions, and the calls that the task gets."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.core.config.connector_config import SourceTaskSettings
from pyconnect_agent.core.errors import KafkaError, ProducerFencedError
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.metric_values import SOURCE_TASK, TASK
from pyconnect_agent.core.transaction_boundary import (
    BoundaryPolicy,
    ConnectorBoundary,
    Decision,
    IntervalBoundary,
    PollBoundary,
    RequestedTransactions,
)
from pyconnect_agent.tasks.control import ActiveTopics
from pyconnect_agent.tasks.source import exactly_once
from pyconnect_agent.tasks.source.exactly_once import TransactionalSender
from pyconnect_api import ConnectException, RecordMetadata, RetriableException, SourceRecord
from tests.agent.tasks.parts import source_metrics
from tests.agent.tasks.source.fake_offsets import OFFSETS, FakeOffsets
from tests.agent.tasks.source.fake_transactions import FakeTransactions
from tests.agent.tasks.source.source_loop import NotingTask
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases

KEY = b'["c",{"file":"a"}]'


@dataclass
class Case:
    """A sender with its task, producer and stores."""

    boundary: BoundaryPolicy = field(default_factory=PollBoundary)
    offsets: FakeOffsets = field(default_factory=FakeOffsets)
    producer: FakeTransactions = field(default_factory=FakeTransactions)
    task: NotingTask = field(default_factory=NotingTask)
    used: list[str] = field(default_factory=list)
    now_s: float = 0.0
    stopping: bool = False

    def __post_init__(self) -> None:
        self.metrics = source_metrics()
        self.sender = TransactionalSender(
            task_id="c-0",
            connector="c",
            task=self.task,
            producer=self.producer,
            boundary=self.boundary,
            offsets=self.offsets,
            topics=ActiveTopics(self.used.append),
            stop_requested=lambda: self.stopping,
            metrics=self.metrics,
            clock=lambda: self.now_s,
        )

    def send(self, number: int, topic: str = "t") -> SourceRecord:
        record = made(number)
        self.sender.send(record, (topic, str(number).encode(), None, -1, 0, None))
        return record

    def poll(self, *numbers: int) -> None:
        for number in numbers:
            self.send(number)
        self.sender.batch_sent()


def made(number: int) -> SourceRecord:
    return SourceRecord({"file": "a"}, {"position": number}, "t", value=number)


def written(*numbers: int, offset: int) -> list[tuple[str, bytes | None, bytes | None]]:
    records = [("t", str(number).encode(), None) for number in numbers]
    return [*records, (OFFSETS, b'{"position":%d}' % offset, KEY)]


def test_records_share_a_transaction_with_the_last_offset_of_each_partition() -> None:
    """Each poll is one transaction, also when records of several partitions alternate."""
    case = Case()
    case.poll(1, 2)
    case.poll(3)
    assert case.producer.committed == [written(1, 2, offset=2), written(3, offset=3)]
    assert case.task.commits == 2
    assert case.used == ["t"]
    case = Case()
    for file, position in (("a", 1), ("b", 7), ("a", 2)):
        record = SourceRecord({"file": file}, {"position": position}, "t")
        case.sender.send(record, ("t", b"v", None, -1, 0, None))
    case.sender.batch_sent()
    offsets = [(key, value) for topic, value, key in case.producer.committed[0] if topic == OFFSETS]
    assert offsets == [(KEY, b'{"position":2}'), (b'["c",{"file":"b"}]', b'{"position":7}')]


def test_a_record_that_the_producer_did_not_take_leaves_no_offset() -> None:
    """The last commit of a stopped task ends before the record that met a full queue."""
    case = Case(stopping=True)
    case.send(1)
    case.producer.refusals.append(BufferError("queue full"))
    with pytest.raises(RetriableException):
        case.send(2)
    case.sender.finish(failed=False, complete=False)
    assert case.producer.committed == [written(1, offset=1)]


@cases("rest", "pause", "stop")
def test_records_that_a_connector_wants_together_are_never_committed_in_part(rest: str) -> None:
    """After a full queue, either all records of a requested transaction are committed or none."""
    requested = RequestedTransactions()
    case = Case(boundary=ConnectorBoundary(requested), stopping=True)
    requested.commit_transaction()
    case.send(1)
    case.producer.refusals.append(BufferError("queue full"))
    with pytest.raises(RetriableException):
        case.send(2)
    if rest == "stop":
        case.sender.finish(failed=False, complete=False)
        assert case.producer.committed == []
        return
    case.sender.paused(complete=False)
    assert case.producer.committed == []
    case.sender.resumed()
    case.poll(2)
    assert case.producer.committed == [written(1, 2, offset=2)]


def test_an_empty_transaction_is_neither_begun_nor_aborted() -> None:
    """An empty batch calls the task's `commit`, but not the broker."""
    case = Case()
    case.poll()
    assert case.producer.calls == []
    assert case.task.commits == 1
    requested = RequestedTransactions()
    case = Case(boundary=ConnectorBoundary(requested))
    requested.abort_transaction()
    case.sender.batch_sent()
    assert case.producer.calls == []
    assert case.task.commits == 1


def test_commit_record_is_called_for_dropped_records_at_the_next_commit() -> None:
    """`commit_record` gets None for a dropped record, whose offset is not stored."""
    case = Case()
    case.sender.dropped(made(1))
    case.sender.batch_sent()
    assert case.task.records == []
    case.poll(2)
    assert case.task.records == [(1, None), (2, RecordMetadata("t", 0, 0, 1_700_000_000_000))]


def test_a_record_for_the_offsets_topic_fails_the_task() -> None:
    """A record for the offsets topic could wait for its own transaction for ever."""
    with pytest.raises(ConnectException, match="may not produce to their own offsets topics"):
        Case().send(1, OFFSETS)


@cases("code", ClientError._FENCED, ClientError.UNKNOWN_PRODUCER_ID)
def test_a_record_that_was_refused_fails_the_task(code: int) -> None:
    """The offset of a refused record is in no transaction."""
    case = Case()
    case.producer.refusals.append(KafkaException(ClientError(code)))
    with pytest.raises(ConnectException, match="Unrecoverable exception trying to send"):
        case.send(1)
    assert case.producer.committed == []


@cases("code", ClientError.MSG_SIZE_TOO_LARGE, ClientError.TOPIC_AUTHORIZATION_FAILED)
def test_a_record_that_java_would_refuse_later_prevents_the_commit(code: int) -> None:
    """Such a refusal fails the commit and not the send, as in Java; its transaction stays open."""
    case = Case()
    case.send(1)
    case.producer.refusals.append(KafkaException(ClientError(code)))
    case.send(2)
    with pytest.raises(ConnectException, match="Failed to flush offsets and/or records for task"):
        case.sender.batch_sent()
    assert case.producer.calls == ["begin"]
    assert case.task.commits == 0


def test_a_commit_that_fails_calls_no_hook_and_needs_offsets() -> None:
    """Records are not committed without their offsets; after a failure the task gets no call."""
    case = Case()
    record = SourceRecord({"file": "a"}, {"position": [1]}, "t")
    case.sender.send(record, ("t", b"v", None, -1, 0, None))
    with pytest.raises(ConnectException, match="Failed to flush offsets"):
        case.sender.batch_sent()
    assert case.producer.calls == ["begin"]
    case = Case()
    case.send(1)
    case.producer.commit_failures.append(KafkaError("no"))
    with pytest.raises(ConnectException, match="Failed to flush offsets and/or records for task"):
        case.sender.batch_sent()
    assert (case.task.commits, case.task.records) == (0, [])


@cases("age_s, text", (1, "Failed to flush offsets"), (60, "before its producer transaction"))
def test_an_expired_transaction_is_distinguished_from_a_fenced_one(age_s: int, text: str) -> None:
    """The broker gives both the same error; the age of the transaction distinguishes them."""
    case = Case()
    case.send(1)
    case.now_s = age_s
    case.producer.commit_failures.append(ProducerFencedError("fenced"))
    with pytest.raises(ConnectException, match=text) as failure:
        case.sender.batch_sent()
    assert isinstance(failure.value.__cause__, ProducerFencedError)


def test_a_fenced_producer_fails_the_task_at_its_next_iteration() -> None:
    """librdkafka may report the fencing before the commit, when its callbacks are served."""
    case = Case()
    case.send(1)
    case.producer.serve_failures.append(ProducerFencedError("fenced"))
    with pytest.raises(ConnectException, match="producer send callback") as failure:
        case.sender.begin_iteration()
    assert isinstance(failure.value.__cause__, ProducerFencedError)


def test_an_interval_spans_polls_and_ends_with_the_task() -> None:
    """An open transaction is committed at a pause and at an orderly end, never after a failure."""
    case = Case(boundary=IntervalBoundary(10_000))
    case.sender.resumed()
    case.poll(1)
    case.poll(2)
    assert case.producer.committed == []
    case.sender.paused(complete=True)
    assert case.producer.committed == [written(1, 2, offset=2)]
    case.sender.resumed()
    case.poll(3)
    case.sender.finish(failed=True, complete=True)
    assert len(case.producer.committed) == 1
    case.sender.finish(failed=False, complete=True)
    assert case.producer.committed[1:] == [written(3, offset=3)]


def test_a_requested_abort_drops_records_and_keeps_their_offsets() -> None:
    """After the abort, one transaction commits the offsets alone."""
    requested = RequestedTransactions()
    case = Case(boundary=ConnectorBoundary(requested))
    case.send(1)
    requested.abort_transaction()
    case.sender.batch_sent()
    assert case.producer.calls == ["begin", "abort", "begin", "commit"]
    assert case.producer.committed == [written(offset=1)]
    assert case.task.records == []


def test_requests_on_a_record_win_over_the_batch() -> None:
    """The record is the last of its transaction, so the batch's request finds an empty one."""
    requested = RequestedTransactions()
    case = Case(boundary=ConnectorBoundary(requested))
    second = made(2)
    requested.commit_transaction(second)
    case.send(1)
    case.sender.send(second, ("t", b"2", None, -1, 0, None))
    case.send(3)
    assert case.producer.committed == [written(1, 2, offset=2)]
    case.sender.finish(failed=False, complete=True)
    assert len(case.producer.committed) == 1
    requested = RequestedTransactions()
    case = Case(boundary=ConnectorBoundary(requested))
    last = made(1)
    requested.commit_transaction(last)
    requested.abort_transaction()
    case.sender.send(last, ("t", b"1", None, -1, 0, None))
    case.sender.batch_sent()
    assert case.producer.calls == ["begin", "commit"]


def test_stores_hear_of_a_commit_after_it() -> None:
    """Stores get the offsets of a committed transaction, and none of a failed one."""
    case = Case()
    case.poll(1)
    assert case.offsets.entries == [{KEY: b'{"position":1}'}]
    case.send(2)
    case.producer.commit_failures.append(KafkaError("no"))
    with pytest.raises(ConnectException):
        case.sender.batch_sent()
    assert len(case.offsets.entries) == 1


def test_offsets_go_out_as_the_store_prepares_them() -> None:
    """A transaction has the partition's key in use, and tombstones for keys of equal content."""
    case = Case()
    case.offsets.prepared = lambda entries: [LogRecord(b"other", None), LogRecord(b"used", b"1")]
    case.poll(1)
    expected = [[("t", b"1", None), (OFFSETS, None, b"other"), (OFFSETS, b"1", b"used")]]
    assert case.producer.committed == expected


def test_a_failed_preparation_prevents_the_commit() -> None:
    """Tombstones that are not in the worker's topic yet must not be in the connector's topic."""
    case = Case()

    def refuse(entries: Mapping[bytes, bytes | None]) -> list[LogRecord]:
        raise KafkaError("no")

    case.offsets.prepared = refuse
    with pytest.raises(ConnectException, match="Failed to flush offsets and/or records for task"):
        case.poll(1)
    assert case.producer.calls == ["begin"]
    assert case.offsets.entries == []


def test_a_commit_says_how_far_it_is_behind_the_source() -> None:
    """The lag of a commit is measured from the timestamp of the transaction's last record."""
    case = Case()
    now_ms = int(time.time() * 1000)
    for number, age_ms in ((1, 9_000_000), (2, 5_000_000)):
        case.sender.send(made(number), ("t", b"v", None, -1, now_ms - age_ms, None))
    case.sender.batch_sent()
    lag_ms = case.metrics.values()[SOURCE_TASK]["source-record-commit-lag-max-ms"]
    assert 5_000_000 <= float(lag_ms) < 9_000_000


def test_transactions_are_measured_by_their_records() -> None:
    """Offsets do not count; an aborted transaction counts as one of no records."""
    requested = RequestedTransactions()
    case = Case(ConnectorBoundary(requested))
    for numbers, abort in (((1, 2, 3), False), ((4,), False), ((5, 6), True)):
        if abort:
            requested.abort_transaction()
        else:
            requested.commit_transaction()
        case.poll(*numbers)
    values = case.metrics.values()
    sizes = [values[SOURCE_TASK][f"transaction-size-{name}"] for name in ("min", "avg", "max")]
    assert sizes == [0, 4 / 3, 3]
    assert values[TASK]["offset-commit-success-percentage"] == 1


def settings(**given: str) -> SourceTaskSettings:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return SourceTaskSettings.parse({"name": "c", "connector.class": "C", **named})


@cases(
    "given, interval_ms",
    ({}, 7_000),
    ({"transaction_boundary_interval_ms": "300"}, 300),
    ({"transaction_boundary_interval_ms": "0"}, 0),
)
def test_an_interval_is_of_connector_or_worker(given: dict[str, str], interval_ms: int) -> None:
    """The connector's interval wins over `offset.flush.interval.ms`; the boundary ignores case."""
    worker = distributed(offset_flush_interval_ms="7000")
    wanted = settings(transaction_boundary="Interval", **given)
    boundary, _ = exactly_once.boundary_of(wanted, worker, 60_000)
    assert isinstance(boundary, IntervalBoundary)
    boundary.begin(0)
    if interval_ms:
        assert boundary.after_batch(interval_ms - 1) is Decision.CONTINUE
    assert boundary.after_batch(interval_ms) is Decision.COMMIT


def test_each_poll_is_a_transaction_unless_said_otherwise() -> None:
    """An interval that is given without its boundary has no effect."""
    given = settings(transaction_boundary_interval_ms="300")
    assert isinstance(exactly_once.boundary_of(given, distributed(), 60_000)[0], PollBoundary)
