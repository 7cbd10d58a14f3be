"""Records that sink tasks report as failed."""

import threading
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError as ClientError

from pyconnect_agent.builtin.converters.base import SimpleHeaderConverter, StringConverter
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.tasks.plugins import Converters
from pyconnect_agent.tasks.sink.dead_letters import ErrantRecords
from pyconnect_api import ConnectException, SinkRecord, TopicPartition
from tests.agent.tasks.sink.dead_letters import POISON, Queue, consumed, convert, tolerance
from tests.support.eventually import eventually
from tests.support.fakes.fake_clients import FakeMessage


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
    eventually(committed.is_set)
    assert report.done()
    thread.join()
    queue.producer.deliver()
    queue.reports.await_reports([elsewhere])


def test_a_commit_waits_for_dead_letters_of_conversions(queue: Queue) -> None:
    """A kill after the commit would lose them. One that cannot be delivered is given up."""
    for deliver in (
        lambda: queue.producer.deliver(0),
        lambda: queue.producer.fail(0, ClientError.TOPIC_AUTHORIZATION_FAILED),
    ):
        assert convert(POISON, queue.tolerance) == []
        committed = threading.Event()

        def commit(done: threading.Event = committed) -> None:
            queue.reports.await_reports([TopicPartition("t", 3)])
            done.set()

        thread = threading.Thread(target=commit, daemon=True)
        thread.start()
        assert not committed.wait(0.05)
        deliver()
        eventually(committed.is_set)
        thread.join()


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


def test_a_report_that_was_sent_cannot_be_recalled(queue: Queue) -> None:
    """It is not cancelled; after its partition is lost it is not waited for."""
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
    """The kind of report does not matter."""
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
