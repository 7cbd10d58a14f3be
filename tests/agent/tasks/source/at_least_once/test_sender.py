"""Records sent at-least-once, and the calls that their task gets."""

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.tasks.control import ActiveTopics
from pyconnect_agent.tasks.source.at_least_once import AtLeastOnceSender
from pyconnect_api import ConnectException, RecordMetadata, SourceTask
from tests.agent.tasks.source.source_loop import ScriptedTask, Source, entry, record
from tests.support.cases import cases

FATAL = ClientError.TOPIC_AUTHORIZATION_FAILED


def test_commit_record_is_called_after_delivery(source: Source) -> None:
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


@cases("takes_runs", True, False)
def test_a_topic_begins_with_one_delivered_record(source: Source, *, takes_runs: bool) -> None:
    """The client sends what follows before it knows whether the broker refused the first."""
    source.sender.takes_runs = takes_runs
    sent: list[tuple[str, int]] = []
    source.producer.open_topic = (  # type: ignore[method-assign]
        lambda topic, **_: sent.append((topic, len(source.producer.sent)))
    )
    for _ in range(2):
        source.poll(*(record(n, topic="u" if n == 2 else "t") for n in range(1, 5)))
    assert sent == [("t", 1), ("u", 2)]
    assert [each.value for each in source.producer.sent] == [b"v1", b"v2", b"v3", b"v4"] * 2


def test_commit_record_is_called_for_a_dropped_record_without_an_offset() -> None:
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
    source.sender.finish(failed=True, complete=True)
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
    source.producer.refusals = [KafkaException(ClientError(ClientError.UNKNOWN_PRODUCER_ID))]
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
        committer=source.committer,
        metrics=source.metrics,
    )
    sender.send(record(1), ("t", b"v", None, -1, 0, None))
    source.producer.deliver()
    source.producer.serve()
    assert sender.submitted.committable_offsets().committable_count == 1
