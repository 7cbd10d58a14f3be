"""Which source offsets are committed, and when."""

from pyconnect_agent.core.errors import RetriableKafkaError
from pyconnect_api import SourceRecord
from tests.agent.tasks.source.source_loop import Source, entry, record
from tests.support.cases import cases


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
    """No offset is forgotten, and commit() is not called for the failed write."""
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


def test_a_failing_callback_ends_the_task(source: Source, deaths: list[BaseException]) -> None:
    """Otherwise the task would run on without committing, and without a sign of it."""
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
    """Partitions before and after it are committed; that commit counts as failed, the next not."""
    source.producer.auto_deliver = True
    bad = SourceRecord({"file": partition}, offset, "t", value="v")
    source.poll(record(1, "a"), bad, record(1, "b"))
    source.loop.step()
    assert source.committer.commit() is False
    assert source.written == [entry(1, "a") | entry(1, "b")]
    source.poll(record(2, "b"))
    source.loop.step()
    assert source.committer.commit() is True
    assert source.written[1:] == [entry(2, "b")]
