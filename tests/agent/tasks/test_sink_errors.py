"""What is told of a sink's failed records: the log, the dead letter queue, the reporter."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_agent.builtin.converters.simple_header import SimpleHeaderConverter
from pyconnect_agent.builtin.converters.string import StringConverter
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.kafka.admin import TopicSpec
from pyconnect_agent.tasks.consumed_record import ConsumedRecord, describe_consumed, place_of
from pyconnect_agent.tasks.dead_letter_queue import DeadLetterQueue, prepare_topic
from pyconnect_agent.tasks.errant_reports import ErrantRecords
from pyconnect_agent.tasks.error_settings import tolerance_of
from pyconnect_agent.tasks.sink_pipeline import compose
from pyconnect_agent.tasks.task_plugins import Converters
from pyconnect_agent.tasks.tolerance import ErrorCounts, Failure, Stage, Tolerance
from pyconnect_agent.tasks.trace import format_trace
from pyconnect_api import ConnectException, DataException, SinkRecord, TopicPartition
from tests.support.eventually import eventually
from tests.support.fake_clients import FakeMessage, FakeProducer

SECRET = "hunter2"
POISON = FakeMessage("t", 3, 7, b'{"password": "hunter2", }', b"k", (1, 1234), (("h", b"\x00"),))
TASK_ID = ConnectorTaskId("c", 2)


class QueueProducer(FakeProducer):
    """A fake for two threads that can be closed; its `serve` waits as the client's does."""

    def __init__(self) -> None:
        super().__init__()
        self.closed_after_s: float | None = None
        self._idle, self._lock = threading.Event(), threading.Lock()

    def serve(self, timeout_s: float = 0.0) -> int:
        self._idle.wait(min(timeout_s, 0.001))
        with self._lock:
            return super().serve()

    def deliver(self, *indexes: int) -> None:
        with self._lock:
            super().deliver(*indexes)

    def fail(self, index: int, code: int) -> None:
        with self._lock:
            super().fail(index, code)

    def produce(self, topic: str, value: bytes | None, key: bytes | None, **more: object) -> None:  # type: ignore[override]
        super().produce(topic, value, key, partition=-1, **more)  # type: ignore[arg-type]

    def close(self, timeout_s: float) -> None:
        self.closed_after_s = timeout_s


class Queue:
    """A dead letter queue over a fake producer."""

    def __init__(self, *, context_headers: bool = False, tolerate_all: bool = True) -> None:
        self.producer, self.counts = QueueProducer(), ErrorCounts()
        self.queue = DeadLetterQueue(
            topic="dead",
            producer=self.producer,
            task_id=TASK_ID,
            context_headers=context_headers,
            counts=self.counts,
            mask=lambda text: text.replace("provided", "${p:k}"),
        )
        self.tolerance = tolerance(
            {"errors.tolerance": "all" if tolerate_all else "none"}, self.counts, self.queue
        )
        converter = StringConverter()
        self.reports = ErrantRecords(
            self.tolerance,
            Converters(key=converter, value=converter, header=SimpleHeaderConverter()),
        )


@pytest.fixture
def queue() -> Iterator[Queue]:
    made = Queue(context_headers=True)
    yield made
    made.queue.close(0)


@pytest.fixture
def strict_queue() -> Iterator[Queue]:
    made = Queue(tolerate_all=False)
    yield made
    made.queue.close(0)


def tolerance(
    config: Mapping[str, str], counts: ErrorCounts | None = None, *queues: DeadLetterQueue
) -> Tolerance:
    return tolerance_of(
        {"name": "c", "connector.class": "C", **config},
        task_id=str(TASK_ID),
        describe_record=describe_consumed,
        stop_requested=threading.Event(),
        place_of=place_of,
        further_reporters=queues,
        counts=counts,
    )


def convert(message: FakeMessage, handling: Tolerance) -> list[SinkRecord]:
    """Convert one message, its value with the JSON converter."""
    values = JsonConverter()
    values.configure({"schemas.enable": "false"}, is_key=False)
    batch: list[SinkRecord] = []
    compose(
        converters=Converters(key=StringConverter(), value=values, header=SimpleHeaderConverter()),
        transform=None,
        tolerance=handling,
        topic_used=None,
        is_assigned=lambda _: True,
        check_error=lambda _: None,
        keep_consumed=True,
    )([message], batch, {})
    return batch


def consumed(message: FakeMessage = POISON) -> ConsumedRecord:
    record = ConsumedRecord(
        message.topic(), message.partition(), None, "k", None, "v", message.offset()
    )
    record.consumed = message
    return record


def failure(error: Exception, record: object = POISON) -> Failure:
    return Failure(stage=Stage.VALUE_CONVERTER, class_name="a.B", error=error, record=record)


@pytest.mark.parametrize("messages", [False, True])
def test_the_log_names_the_record_only_when_messages_are_included(
    caplog: pytest.LogCaptureFixture, messages: bool
) -> None:
    """By topic, partition, offset and timestamp; its value is in no line in either case."""
    config = {
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.log.include.messages": str(messages),
    }
    assert convert(POISON, tolerance(config)) == []
    stage = (
        "Error encountered in task c-2. Executing stage 'VALUE_CONVERTER' with class "
        "'pyconnect_agent.builtin.converters.json.JsonConverter'"
    )
    record = (
        ", where consumed record is {topic='t', partition=3, offset=7, timestamp=1234, "
        "timestampType=CreateTime}"
    )
    assert caplog.messages == [stage + (record if messages else "") + "."]
    assert "DataException" in caplog.text
    assert SECRET not in caplog.text


def test_without_the_log_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The default: a skipped record leaves no line."""
    with caplog.at_level(logging.DEBUG):
        assert convert(POISON, tolerance({"errors.tolerance": "all"})) == []
    assert caplog.messages == []


def test_the_trace_of_a_failed_task_says_which_record_it_was() -> None:
    """Topic, partition and offset, and nothing of its value."""
    with pytest.raises(ConnectException, match="Tolerance exceeded in error handler") as raised:
        convert(POISON, tolerance({}))
    assert str(raised.value) == "Tolerance exceeded in error handler"
    trace = format_trace(raised.value)
    assert (
        "Stage VALUE_CONVERTER of class pyconnect_agent.builtin.converters.json.JsonConverter "
        "failed for the record of topic 't', partition 3, offset 7\n"
    ) in trace
    assert SECRET not in trace


def test_the_queue_gets_the_record_as_it_was_consumed(queue: Queue) -> None:
    """Original key, value, headers and timestamp, then the context, as texts."""
    queue.tolerance.failed(failure(DataException("provided text")))
    (sent,) = queue.producer.sent
    assert (sent.topic, sent.key, sent.value, sent.timestamp) == (
        "dead",
        b"k",
        POISON.the_value,
        1234,
    )
    assert sent.headers[0] == ("h", b"\x00")
    prefix = "__connect.errors."
    assert all(name.startswith(prefix) for name, _ in sent.headers[1:])
    context = [(name.removeprefix(prefix), value) for name, value in sent.headers[1:]]
    assert context[:-1] == [
        ("topic", b"t"),
        ("partition", b"3"),
        ("offset", b"7"),
        ("connector.name", b"c"),
        ("task.id", b"2"),
        ("stage", b"VALUE_CONVERTER"),
        ("class.name", b"a.B"),
        ("exception.class.name", b"pyconnect_api.errors.DataException"),
        ("exception.message", b"${p:k} text"),
    ]
    name, trace = context[-1]
    assert name == "exception.stacktrace"
    assert trace == b"pyconnect_api.errors.DataException: ${p:k} text\n"


def test_an_exception_without_text_has_a_null_message(queue: Queue) -> None:
    """As Java's null message."""
    queue.queue.report(failure(ValueError()))
    (sent,) = queue.producer.sent
    assert dict(sent.headers)["__connect.errors.exception.message"] is None


def test_a_record_without_timestamp_goes_without_one(queue: Queue) -> None:
    """The client takes 0 for the present."""
    queue.queue.report(failure(ValueError(), FakeMessage(the_timestamp=(0, -1))))
    assert queue.producer.sent[0].timestamp == 0


def test_a_record_that_does_not_reach_the_queue_is_logged_and_counted(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """The task goes on; neither the log nor the error has the record's value."""
    refused = KafkaException(ClientError(ClientError.MSG_SIZE_TOO_LARGE))
    queue.producer.refusals.append(refused)
    first = queue.queue.report(failure(ValueError()))
    second = queue.queue.report(failure(ValueError()))
    queue.producer.fail(0, ClientError.TOPIC_AUTHORIZATION_FAILED)
    for report in (first, second):
        assert isinstance(report.exception(10), KafkaError)
        assert SECRET not in str(report.exception())
    assert caplog.messages == ["Could not produce message to dead letter queue. topic=dead"] * 2
    assert (queue.counts.dead_letter_requests, queue.counts.dead_letter_failures) == (2, 2)


def test_a_full_producer_makes_the_task_wait(queue: Queue) -> None:
    """Back-pressure is no failure."""
    queue.producer.refusals += [BufferError(), BufferError()]
    queue.queue.report(failure(ValueError()))
    assert len(queue.producer.sent) == 1
    assert queue.counts.dead_letter_failures == 0


def test_closing_waits_for_what_is_on_its_way() -> None:
    """For as long as it is told to."""
    made = Queue()
    made.queue.close(7.5)
    assert made.producer.closed_after_s == 7.5


@pytest.mark.parametrize("existed", [False, True])
def test_the_topic_has_one_partition_and_the_replicas_of_the_config(existed: bool) -> None:
    """One that exists is taken as it is."""
    asked: list[TopicSpec] = []

    class Admin:
        def create_missing_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
            asked.append(topic)
            return not existed

    prepare_topic(Admin(), "dead", replication_factor=2, timeout_ms=1)
    assert asked == [TopicSpec(name="dead", partitions=1, replication_factor=2)]


def test_a_topic_that_cannot_be_created_is_told_with_kafkas_text() -> None:
    """The cause says why."""

    class Admin:
        def create_missing_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
            raise KafkaError("not allowed")

    with pytest.raises(ConnectException) as raised:
        prepare_topic(Admin(), "dead", replication_factor=2, timeout_ms=1)
    assert str(raised.value) == "Could not initialize dead letter queue with topic=dead"
    assert str(raised.value.__cause__) == "not allowed"


def test_a_commit_waits_for_the_reports_of_its_partitions(queue: Queue) -> None:
    """And only for those: others may be unfinished."""
    here, elsewhere = TopicPartition("t", 3), TopicPartition("t", 4)
    report = queue.reports.report(consumed(), ValueError())
    queue.reports.report(consumed(FakeMessage("t", 4, 1)), ValueError())
    committed = threading.Event()

    def commit() -> None:
        queue.reports.await_reports([here])
        committed.set()

    thread = threading.Thread(target=commit, daemon=True)
    thread.start()
    assert not report.done()
    assert not committed.is_set()
    queue.producer.deliver(0)
    eventually(committed.is_set, 10)
    assert report.done()
    thread.join()
    queue.producer.deliver()
    queue.reports.await_reports([elsewhere])


def test_no_commit_passes_a_report_that_failed(queue: Queue) -> None:
    """Neither the commit that meets it nor the task's last, until the partition is lost."""
    partition = TopicPartition("t", 3)
    queue.reports.report(consumed(), ValueError())
    queue.producer.fail(0, ClientError.TOPIC_AUTHORIZATION_FAILED)
    for _ in range(2):
        with pytest.raises(ConnectException, match="awaiting an errant record future") as raised:
            queue.reports.await_reports([partition])
        assert isinstance(raised.value.__cause__, KafkaError)
    queue.reports.await_reports([TopicPartition("t", 4)])
    queue.reports.abandon([partition])
    queue.reports.await_reports([partition])


def test_lost_partitions_are_not_waited_for(queue: Queue) -> None:
    """Their next owner meets the records again."""
    queue.reports.report(consumed(), ValueError())
    queue.reports.abandon([TopicPartition("t", 3)])
    queue.reports.await_reports([TopicPartition("t", 3)])


def test_a_report_cannot_be_cancelled(queue: Queue) -> None:
    """What was sent is on its way."""
    report = queue.reports.report(consumed(), ValueError())
    assert not report.cancel()
    queue.producer.deliver()
    assert report.result(10) is None


def test_a_report_of_a_transformed_record_has_the_original_bytes(queue: Queue) -> None:
    """A record keeps its message through transformations."""
    record = consumed().new_record("elsewhere", 9, None, "x", None, "y", None)
    queue.reports.report(record, ValueError())
    (sent,) = queue.producer.sent
    assert sent.value == POISON.the_value
    assert dict(sent.headers)["__connect.errors.topic"] == b"t"
    assert dict(sent.headers)["__connect.errors.stage"] == b"TASK_PUT"


def test_a_record_of_the_tasks_own_is_serialized(queue: Queue) -> None:
    """With its converters, headers too."""
    record = SinkRecord("t", 3, None, "key", None, "value", 8, 99)
    record.headers.add_string("n", "w")
    queue.reports.report(record, ValueError())
    (sent,) = queue.producer.sent
    assert (sent.key, sent.value, sent.timestamp) == (b"key", b"value", 99)
    assert sent.headers[0] == ("n", b"w")


def test_a_report_that_is_not_tolerated_is_sent_and_raised(strict_queue: Queue) -> None:
    """And raised again after a `put` that hid it."""
    strict_queue.reports.raise_failure()
    error = ValueError("first")
    for reason in (error, ValueError("second")):
        with pytest.raises(ConnectException, match="Tolerance exceeded in error handler"):
            strict_queue.reports.report(consumed(), reason)
    assert len(strict_queue.producer.sent) == 2
    with pytest.raises(ConnectException, match="Tolerance exceeded in error handler") as raised:
        strict_queue.reports.raise_failure()
    assert raised.value.__cause__ is error


def test_tolerated_reports_do_not_fail_the_task(queue: Queue) -> None:
    """Whatever was reported."""
    queue.reports.report(consumed(), ValueError())
    queue.reports.raise_failure()


def test_a_report_that_is_only_logged_is_done_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """There is nothing to wait for."""
    converter = StringConverter()
    reports = ErrantRecords(
        tolerance({"errors.tolerance": "all", "errors.log.enable": "true"}),
        Converters(key=converter, value=converter, header=SimpleHeaderConverter()),
    )
    report: Future[None] = reports.report(consumed(), ValueError("no place"))
    assert report.done()
    (line,) = caplog.messages
    assert line == (
        "Error encountered in task c-2. Executing stage 'TASK_PUT' with class "
        "'pyconnect_api.task.SinkTask'."
    )


def test_failures_are_counted(queue: Queue) -> None:
    """Kafka's `task-error-metrics`."""
    assert convert(POISON, queue.tolerance) == []
    assert convert(FakeMessage(the_value=json.dumps("good").encode()), queue.tolerance) != []
    counts = queue.counts
    assert counts.last_error_ms > 0
    assert (counts.record_failures, counts.record_errors, counts.records_skipped) == (1, 1, 1)
    assert (counts.dead_letter_requests, counts.dead_letter_failures, counts.retries) == (1, 0, 0)
