"""Records that a sink cannot process: log, trace, metrics, dead letters and reports."""

import json
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka.admin import TopicSpec
from pyconnect_agent.tasks.sink.dead_letters import ErrantRecords, prepare_topic
from pyconnect_agent.tasks.trace import format_trace
from pyconnect_api import ConnectException, DataException, SinkRecord, TopicPartition
from tests.agent.tasks.parts import converters
from tests.agent.tasks.sink.dead_letters import (
    POISON,
    SECRET,
    Queue,
    consumed,
    convert,
    failure,
    tolerance,
)
from tests.support.cases import cases
from tests.support.fakes.fake_clients import FakeMessage


@cases("messages", False, True)
def test_the_log_names_the_record_only_when_messages_are_included(
    caplog: pytest.LogCaptureFixture, messages: bool
) -> None:
    """The log has topic, partition, offset and timestamp on request, and never the value."""
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
    """A skipped record leaves no line in the log by default."""
    with caplog.at_level(logging.DEBUG):
        assert convert(POISON, tolerance({"errors.tolerance": "all"})) == []
    assert caplog.messages == []


def test_the_trace_of_a_failed_task_says_which_record_it_was() -> None:
    """The trace has topic, partition and offset of the record, but not its value."""
    with pytest.raises(ConnectException, match="Tolerance exceeded in error handler") as raised:
        convert(POISON, tolerance({}))
    assert str(raised.value) == "Tolerance exceeded in error handler"
    trace = format_trace(raised.value)
    assert (
        "Stage VALUE_CONVERTER of class pyconnect_agent.builtin.converters.json.JsonConverter "
        "failed for the record of topic 't', partition 3, offset 7\n"
    ) in trace
    assert SECRET not in trace


def test_failures_are_counted(queue: Queue) -> None:
    """A record that fails and is skipped counts once in Kafka's `task-error-metrics`."""
    assert convert(POISON, queue.tolerance) == []
    assert convert(FakeMessage(the_value=json.dumps("good").encode()), queue.tolerance) != []
    counts = queue.counts
    assert counts.last_error_ms > 0
    assert (counts.record_failures, counts.record_errors, counts.records_skipped) == (1, 1, 1)
    assert (counts.dead_letter_requests, counts.dead_letter_failures, counts.retries) == (1, 0, 0)


def test_the_queue_gets_the_record_as_it_was_consumed(queue: Queue) -> None:
    """A dead letter has the original key, value, headers and timestamp, and context as texts."""
    queue.tolerance.failed(failure(DataException("provided text")))
    (sent,) = queue.producer.sent
    expected = ("dead", b"k", POISON.the_value, 1234)
    assert (sent.topic, sent.key, sent.value, sent.timestamp) == expected
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


def test_absent_messages_and_timestamps_stay_absent(queue: Queue) -> None:
    """An exception without a message gives a null header, and an absent timestamp is sent as 0."""
    queue.queue.report(failure(ValueError()))
    (sent,) = queue.producer.sent
    assert dict(sent.headers)["__connect.errors.exception.message"] is None
    queue.queue.report(failure(ValueError(), FakeMessage(the_timestamp=(0, -1))))
    assert queue.producer.sent[1].timestamp == 0


def test_a_record_that_does_not_reach_the_queue_is_logged_and_counted(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """An undelivered dead letter is logged and counted without the record's value."""
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
    """A full producer queue delays the report and is not a failure."""
    queue.producer.refusals += [BufferError(), BufferError()]
    queue.queue.report(failure(ValueError()))
    assert len(queue.producer.sent) == 1
    assert queue.counts.dead_letter_failures == 0


def test_closing_waits_for_records_in_flight() -> None:
    """Closing the queue waits as long as its timeout says."""
    made = Queue()
    made.queue.close(7.5)
    assert made.producer.closed_after_s == 7.5


@cases("outcome", True, False, KafkaError("not allowed"))
def test_the_topic_has_one_partition_and_the_replicas_of_the_config(
    outcome: bool | KafkaError,
) -> None:
    """An existing topic is used as it is; a topic that cannot be created fails with the cause."""
    asked: list[TopicSpec] = []

    class Admin:
        def create_missing_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
            asked.append(topic)
            if isinstance(outcome, KafkaError):
                raise outcome
            return outcome

    text = "Could not initialize dead letter queue with topic=dead"
    fails = pytest.raises(ConnectException, match=f"^{text}$")
    with fails if isinstance(outcome, KafkaError) else nullcontext() as raised:
        prepare_topic(Admin(), "dead", replication_factor=2, timeout_ms=1)
    assert asked == [TopicSpec(name="dead", partitions=1, replication_factor=2)]
    assert raised is None or raised.value.__cause__ is outcome


def test_an_unforeseen_failure_of_the_queue_ends_the_task(deaths: list[BaseException]) -> None:
    """An unforeseen failure ends the task, as the futures of later reports would never complete."""
    error = RuntimeError("unforeseen")
    made = Queue()
    made.producer.unforeseen = error
    made.queue._server.join(60)
    assert deaths == [error]


def committed_by(queue: Queue, partition: TopicPartition) -> Future[None]:
    """Return the commit of a partition, which waits for its reports."""
    return ThreadPoolExecutor(1).submit(queue.reports.await_reports, [partition])


def test_a_commit_waits_for_the_reports_of_its_partitions(queue: Queue) -> None:
    """A commit does not wait for the reports of other partitions."""
    here, elsewhere = TopicPartition("t", 3), TopicPartition("t", 4)
    report = queue.reports.report(consumed(), ValueError())
    queue.reports.report(consumed(FakeMessage("t", 4, 1)), ValueError())
    committing = committed_by(queue, here)
    assert not report.done()
    assert not committing.done()
    queue.producer.deliver(0)
    committing.result(60)
    assert report.done()
    queue.producer.deliver()
    queue.reports.await_reports([elsewhere])


def test_a_commit_waits_for_dead_letters_of_conversions(queue: Queue) -> None:
    """A commit waits for the dead letter of a conversion until it is delivered or given up."""
    for deliver in (
        lambda: queue.producer.deliver(0),
        lambda: queue.producer.fail(0, ClientError.TOPIC_AUTHORIZATION_FAILED),
    ):
        assert convert(POISON, queue.tolerance) == []
        committing = committed_by(queue, TopicPartition("t", 3))
        with pytest.raises(TimeoutError):
            committing.result(0.05)
        deliver()
        committing.result(60)


def test_no_commit_passes_a_report_that_failed(queue: Queue) -> None:
    """Every commit of the partition raises the report's error, until the partition is lost."""
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


def test_a_report_that_was_sent_cannot_be_recalled(queue: Queue) -> None:
    """A sent report cannot be cancelled; after the partition's loss a commit does not wait."""
    report = queue.reports.report(consumed(), ValueError())
    assert not report.cancel()
    queue.producer.deliver()
    assert report.result(60) is None
    queue.reports.report(consumed(), ValueError())
    queue.reports.abandon([TopicPartition("t", 3)])
    queue.reports.await_reports([TopicPartition("t", 3)])


def test_a_report_of_a_transformed_record_has_the_original_bytes(queue: Queue) -> None:
    """A record keeps its message through transformations."""
    record = consumed().new_record("elsewhere", 9, None, "x", None, "y", None)
    queue.reports.report(record, ValueError())
    (sent,) = queue.producer.sent
    assert sent.value == POISON.the_value
    assert dict(sent.headers)["__connect.errors.topic"] == b"t"
    assert dict(sent.headers)["__connect.errors.stage"] == b"TASK_PUT"


def test_a_record_of_the_tasks_own_is_serialized(queue: Queue) -> None:
    """The task's converters serialize the key, value and headers of a record that the task made."""
    record = SinkRecord("t", 3, None, "key", None, "value", 8, 99)
    record.headers.add_string("n", "w")
    queue.reports.report(record, ValueError())
    (sent,) = queue.producer.sent
    assert (sent.key, sent.value, sent.timestamp) == (b"key", b"value", 99)
    assert sent.headers[0] == ("n", b"w")


def test_a_report_that_is_not_tolerated_is_sent_and_raised(strict_queue: Queue) -> None:
    """Each report raises, and the loop raises the first again after a `put` that hid it."""
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
    """A report of a task that tolerates all errors raises nothing."""
    queue.reports.report(consumed(), ValueError())
    queue.reports.raise_failure()


def test_a_report_that_is_only_logged_is_done_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """The future of a report that goes only to the log is done when `report` returns."""
    handling = tolerance({"errors.tolerance": "all", "errors.log.enable": "true"})
    reports = ErrantRecords(handling, converters())
    report: Future[None] = reports.report(consumed(), ValueError("no place"))
    assert report.done()
    (line,) = caplog.messages
    assert line == (
        "Error encountered in task c-2. Executing stage 'TASK_PUT' with class "
        "'pyconnect_api.task.SinkTask'."
    )
