"""Records of a dead letter queue, and the choice of its topic."""

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka.admin import TopicSpec
from pyconnect_agent.tasks.sink.dead_letters import prepare_topic
from pyconnect_api import ConnectException, DataException
from tests.agent.tasks.sink.dead_letters import POISON, SECRET, Queue, failure
from tests.support.cases import cases
from tests.support.fakes.fake_clients import FakeMessage


def test_the_queue_gets_the_record_as_it_was_consumed(queue: Queue) -> None:
    """Original key, value, headers and timestamp, then the context, as texts."""
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
    """Java's null message; the client would take 0 for the present."""
    queue.queue.report(failure(ValueError()))
    (sent,) = queue.producer.sent
    assert dict(sent.headers)["__connect.errors.exception.message"] is None
    queue.queue.report(failure(ValueError(), FakeMessage(the_timestamp=(0, -1))))
    assert queue.producer.sent[1].timestamp == 0


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


def test_closing_waits_for_records_in_flight() -> None:
    """For as long as it is told to."""
    made = Queue()
    made.queue.close(7.5)
    assert made.producer.closed_after_s == 7.5


@cases("existed", False, True)
def test_the_topic_has_one_partition_and_the_replicas_of_the_config(existed: bool) -> None:
    """One that exists is taken as it is."""
    asked: list[TopicSpec] = []

    class Admin:
        def create_missing_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
            asked.append(topic)
            return not existed

    prepare_topic(Admin(), "dead", replication_factor=2, timeout_ms=1)
    assert asked == [TopicSpec(name="dead", partitions=1, replication_factor=2)]


def test_a_topic_that_cannot_be_created_is_reported_with_kafkas_text() -> None:
    """The cause says why."""

    class Admin:
        def create_missing_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
            raise KafkaError("not allowed")

    with pytest.raises(ConnectException) as raised:
        prepare_topic(Admin(), "dead", replication_factor=2, timeout_ms=1)
    assert str(raised.value) == "Could not initialize dead letter queue with topic=dead"
    assert str(raised.value.__cause__) == "not allowed"


def test_an_unforeseen_failure_of_the_queue_ends_the_task(deaths: list[BaseException]) -> None:
    """The futures of later reports would never complete."""
    error = RuntimeError("unforeseen")
    made = Queue()
    made.producer.unforeseen = error
    made.queue._server.join(60)
    assert deaths == [error]
