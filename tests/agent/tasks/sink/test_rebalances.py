"""The sink loop in rebalances during pauses, redelivery, late commits and the end of a task."""

from collections.abc import Collection

import pytest

from pyconnect_agent.core.errors import KafkaError
from pyconnect_api import ConnectException, RetriableException, TopicPartition
from tests.agent.tasks.sink.sink_loop import P0, P1, TIMEOUT_MS, Sink, message

P2 = TopicPartition("t", 2)


def test_a_late_commit_does_not_bring_back_a_partition_that_is_gone(sink: Sink) -> None:
    """A late result would otherwise count as the last commit when the partition comes again."""
    sink.deliver(message(0), message(0, 1))
    sink.next_commit()
    sink.lose(P0)
    sink.consumer.finish_commit()
    assert sink.loop.offsets.committed == {P1: 1}


def test_a_commit_that_comes_after_its_time_counts_unless_another_began(sink: Sink) -> None:
    """A commit's result after the timeout still counts as long as no other commit has begun."""
    sink.deliver(message(0))
    sink.context.request_commit()
    sink.deliver()
    sink.now_ms += TIMEOUT_MS
    sink.deliver()
    assert sink.committed("failure-percentage") != 0
    sink.consumer.finish_commit()
    assert sink.loop.offsets.committed[P0] == 1
    assert sink.committed("skip-total") == 0


def test_a_closing_commit_that_fails_does_not_fail_the_task(sink: Sink) -> None:
    """A failed closing commit only counts; the next owner starts at the last commit."""
    sink.deliver(message(0))
    sink.consumer.commit_failure = KafkaError("not a member any more")
    sink.revoke(P0)
    assert sink.committed("failure-percentage") != 0
    sink.consumer.commit_failure = None
    sink.deliver(message(0, 1))
    assert sink.task.puts()[-1] == ["v0"]


def test_a_partition_that_comes_back_starts_at_its_new_position(sink: Sink) -> None:
    """pre_commit gets no offset of the earlier assignment."""
    sink.deliver(message(0), message(1))
    sink.revoke(P0)
    sink.assign({P0: 7})
    sink.task.calls.clear()
    sink.next_commit()
    assert sink.task.calls[0] == ("pre_commit", {P0: 7, P1: 0}, False)


def test_new_partitions_wait_while_a_batch_is_to_come_again(sink: Sink) -> None:
    """Records of new partitions would otherwise be put into the batch that was refused."""
    sink.task.put_errors = [RetriableException("later")]
    sink.deliver(message(0))
    sink.assign({P2: 0})
    assert sink.consumer.paused == {P0, P1, P2}
    sink.deliver()
    assert sink.consumer.paused == set()


def test_reading_goes_on_when_all_of_a_refused_batch_is_revoked(sink: Sink) -> None:
    """Partitions are resumed, as no record is left to be put again."""
    sink.task.put_errors = [RetriableException("later")]
    sink.deliver(message(0))
    sink.revoke(P0)
    sink.assign({P2: 0})
    assert sink.consumer.paused.isdisjoint({P1, P2})


def test_paused_partitions_stay_paused_while_assigned(sink: Sink) -> None:
    """The pause survives a rebalance, in which the client forgets it, but not a revocation."""
    sink.context.pause(P0, P1)
    sink.revoke(P0)
    sink.consumer.paused.clear()
    sink.assign({P2: 0})
    assert sink.context.paused == {P1}
    assert sink.consumer.paused == {P1}


def test_a_paused_connector_gets_new_partitions_paused(sink: Sink) -> None:
    """New partitions of a paused connector are paused until the connector is resumed."""
    sink.control.should_pause = True
    sink.deliver()
    sink.assign({P2: 0})
    assert sink.consumer.paused == {P0, P1, P2}
    sink.control.should_pause = False
    sink.deliver()
    assert sink.consumer.paused == set()


def test_a_failed_task_commits_records_that_put_accepted(sink: Sink) -> None:
    """A failed task closes as a stopped one does: pre_commit with is_closing, close, commit."""
    sink.deliver(message(0))
    sink.task.put_errors = [ValueError("boom")]
    sink.consumer.polls.append([message(1)])
    with pytest.raises(ConnectException):
        sink.loop.run()
    expected = [("pre_commit", {P0: 1, P1: 0}, True), ("close", {P0, P1}, False)]
    assert sink.task.calls[-2:] == expected
    assert sink.consumer.committed == [{P0: 1, P1: 0}]


def test_an_exception_of_close_fails_the_task_after_the_poll(sink: Sink) -> None:
    """The exception is kept during the client's callback, and the partition is forgotten."""

    def fail(partitions: Collection[TopicPartition]) -> None:
        raise OSError("cannot close")

    sink.deliver(message(0))
    sink.task.close = fail  # type: ignore[method-assign]
    sink.consumer.polls.append(lambda: sink.revoke(P0))
    with pytest.raises(OSError, match="cannot close"):
        sink.loop.step()
    assert sink.loop.offsets.current == {P1: 0}


def test_a_stopped_task_hears_of_no_rebalance(sink: Sink) -> None:
    """After `task_stopped` no rebalance calls the task, as closing the consumer causes one."""
    sink.loop.task_stopped()
    sink.revoke(P0)
    sink.assign({P2: 0})
    sink.lose(P2)
    assert sink.task.calls == []
