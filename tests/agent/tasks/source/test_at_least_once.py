"""At-least-once delivery: sent records, the calls that their task gets, and committed offsets."""

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from pyconnect_agent.core.errors import RetriableKafkaError
from pyconnect_agent.tasks.control import ActiveTopics
from pyconnect_agent.tasks.source.at_least_once import AtLeastOnceSender
from pyconnect_api import ConnectException, RecordMetadata, SourceRecord
from tests.agent.tasks.source.source_loop import ScriptedTask, Source, entry, record
from tests.support.cases import cases

FATAL = ClientError.TOPIC_AUTHORIZATION_FAILED


def test_commit_record_is_called_after_delivery(source: Source) -> None:
    """`commit_record` gets the metadata and the record as polled; a topic is reported once."""
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
    """The client would send further records before it knows that the broker refused the first."""
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
    """A dropped record commits no offset until a later record is sent."""
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
    """The offsets of the failed record and of those behind it are never committed."""
    source.poll(record(1), record(2))
    source.producer.fail(0, FATAL)
    source.producer.deliver()
    with pytest.raises(ConnectException, match="Unrecoverable exception from producer send"):
        source.loop.step()
    source.sender.finish(failed=True, complete=True)
    assert source.written == []


def test_a_failed_delivery_is_skipped_when_errors_are_tolerated() -> None:
    """`commit_record` gets None for the failed record, which counts as acknowledged."""
    source = Source(tolerate_all=True)
    source.poll(record(1), record(2))
    source.producer.fail(0, FATAL)
    source.producer.deliver()
    source.loop.step()
    source.committer.commit()
    assert source.task.records[0] == ("v1", None)
    assert source.written == [entry(2)]


def test_an_oversized_record_fails_as_a_delivery_would(source: Source) -> None:
    """Java's producer reports such a record by callback, so the text is that of callbacks."""
    source.producer.refusals = [KafkaException(ClientError(ClientError.MSG_SIZE_TOO_LARGE))]
    source.poll(record(1))
    with pytest.raises(ConnectException, match="from producer send callback"):
        source.loop.step()


def test_another_refusal_fails_at_once(source: Source) -> None:
    """An error that `send` itself raises has Connect's text for it."""
    source.producer.refusals = [KafkaException(ClientError(ClientError.UNKNOWN_PRODUCER_ID))]
    with pytest.raises(ConnectException, match="Unrecoverable exception trying to send"):
        source.poll(record(1))


def test_a_full_queue_is_waited_out(source: Source) -> None:
    """A full producer queue is not an error, and no record is sent twice."""
    source.producer.refusals = [BufferError(), BufferError()]
    source.poll(record(1), record(2))
    assert [sent.value for sent in source.producer.sent] == [b"v1", b"v2"]


def test_a_stop_interrupts_the_wait_for_a_full_queue(source: Source) -> None:
    """After a stop the rest of the batch stays unsent, and its offsets are not tracked."""
    source.control.stop_requested.set()
    source.producer.refusals = [BufferError()]
    source.poll(record(1), record(2))
    assert source.producer.sent == []
    assert source.sender.submitted.committable_offsets().uncommittable_count == 0


def test_a_task_without_commit_record_is_not_asked() -> None:
    """Records of a task that does not override `commit_record` are acknowledged without a call."""
    source = Source()
    sender = AtLeastOnceSender(
        task=ScriptedTask(),
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


def test_only_the_acknowledged_prefix_is_committed(source: Source) -> None:
    """A record without acknowledgement holds back the offsets of all records behind it."""
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
    """A record without acknowledgement does not hold back another partition."""
    source.poll(record(1, "a"), record(1, "b"), record(2, "b"))
    source.producer.deliver(1, 2)
    source.loop.step()
    source.committer.commit()
    assert source.written == [entry(2, "b")]


def test_commit_is_called_even_when_there_is_nothing_to_write(source: Source) -> None:
    """`SourceTask.commit` is called after each successful commit, even one without offsets."""
    source.committer.commit()
    assert source.written == []
    assert source.task.commits == 1


def test_a_failed_write_is_repeated_with_newer_offsets_on_top(source: Source) -> None:
    """A failed write does not call `commit`, and its offsets are part of the next write."""
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


def test_a_failing_callback_ends_the_task(source: Source, deaths: list[BaseException]) -> None:
    """An exception in a callback ends the task, which otherwise would go on without commits."""
    error = RuntimeError("unforeseen")

    def serve() -> None:
        raise error

    source.committer._serve_if_idle = serve
    source.committer.start()
    source.committer._thread.join(60)
    assert deaths == [error]


@cases("partition, offset", ("f", {"position": [1]}), (["f"], {"position": 1}))
def test_an_offset_that_cannot_be_written_costs_no_other_its_commit(
    source: Source, partition: object, offset: dict[str, object]
) -> None:
    """Offsets of other partitions are committed, but that commit counts as failed."""
    source.producer.auto_deliver = True
    bad = SourceRecord({"file": partition}, offset, "t", value="v")
    source.poll(bad)
    source.loop.step()
    assert source.committer.commit() is False
    assert source.written == []
    source.poll(record(1, "a"), bad, record(1, "b"))
    source.loop.step()
    assert source.committer.commit() is False
    assert source.written == [entry(1, "a") | entry(1, "b")]
    source.poll(record(2, "b"))
    source.loop.step()
    assert source.committer.commit() is True
    assert source.written[1:] == [entry(2, "b")]
