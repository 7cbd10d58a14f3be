"""The sink loop: delivery, redelivery, commits, rebalances, is_closing."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.ids import State
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_api import (
    ConnectException,
    DataException,
    IllegalWorkerStateException,
    RetriableException,
    SinkRecord,
    TopicPartition,
)
from tests.agent.tasks.sink.sink_loop import P0, P1, TIMEOUT_MS, Sink, assigned_sink, message
from tests.support.cases import cases
from tests.support.fakes.fake_clients import FakeMessage


def test_records_are_put_and_their_offsets_committed_once(sink: Sink) -> None:
    """A periodic commit offers the offsets that `put` accepted, with is_closing False."""
    sink.deliver(message(0), message(1), message(0, 1))
    sink.next_commit()
    sink.consumer.finish_commit()
    assert sink.task.calls == [
        ("put", ["v0", "v1", "v0"], False),
        ("pre_commit", {P0: 2, P1: 1}, False),
        ("put", [], False),
    ]
    assert sink.consumer.committed == [{P0: 2, P1: 1}]
    assert set(sink.topics) == {"t"}
    sink.next_commit()
    assert sink.consumer.committed == [{P0: 2, P1: 1}]
    assert sink.consumer.pending == []


def test_a_requested_commit_comes_at_the_next_iteration(sink: Sink) -> None:
    """A requested commit does not wait for the interval, and is_closing is False in it."""
    sink.deliver(message(0))
    sink.context.request_commit()
    sink.deliver()
    assert ("pre_commit", {P0: 1, P1: 0}, False) in sink.task.calls
    assert not sink.context.commit_requested.is_set()


def test_no_commit_starts_while_one_is_under_way(sink: Sink) -> None:
    """Even a request starts no second commit before the timeout; a late result is skipped."""
    sink.deliver(message(0))
    sink.context.request_commit()
    sink.deliver(message(1))
    sink.context.request_commit()
    sink.deliver(message(2))
    assert len(sink.consumer.pending) == 1
    sink.now_ms += TIMEOUT_MS
    sink.deliver()
    sink.deliver()
    assert len(sink.consumer.pending) == 2
    sink.consumer.finish_commit()
    assert sink.committed("skip-total") == 1
    sink.consumer.finish_commit()
    assert sink.loop.offsets.committed[P0] == 3


def test_a_failed_commit_is_counted_and_nothing_rewound(sink: Sink) -> None:
    """The next interval repeats a failed commit."""
    sink.deliver(message(0))
    sink.next_commit()
    sink.consumer.finish_commit(KafkaError("no coordinator"))
    assert sink.committed("failure-percentage") != 0
    assert sink.consumer.seeks == []
    sink.next_commit()
    sink.consumer.finish_commit()
    assert sink.committed("completion-total") == 1
    assert sink.loop.offsets.committed[P0] == 1


def test_a_batch_is_repeated_until_put_accepts_it(sink: Sink) -> None:
    """Until `put` accepts the batch, all partitions are paused and its offsets are not offered."""
    sink.task.put_errors = [RetriableException("later"), RetriableException("later")]
    sink.deliver(message(0), message(1))
    assert sink.consumer.paused == {P0, P1}
    sink.next_commit()
    assert sink.task.puts() == [["v0", "v1"], ["v0", "v1"]]
    assert ("pre_commit", {P0: 0, P1: 0}, False) in sink.task.calls
    sink.deliver()
    assert sink.task.puts()[-1] == ["v0", "v1"]
    assert sink.consumer.paused == set()
    assert sink.loop.offsets.current == {P0: 2, P1: 0}


def test_a_timeout_caps_the_next_wait_once(sink: Sink) -> None:
    """A timeout of the task limits one wait; the next wait lasts until the next commit."""
    waits: list[float] = []
    poll = sink.consumer.poll
    sink.consumer.poll = lambda n, t: (waits.append(t), poll(n, t))[1]  # type: ignore[method-assign]
    sink.context.timeout(30)
    sink.loop.step()
    assert sum(waits) == pytest.approx(0.03)
    waits.clear()
    sink.loop.step()
    assert sum(waits) > 50


def test_an_exception_of_put_ends_the_task(sink: Sink) -> None:
    """The task fails with Connect's text and the cause, and commits no offset of the failed put."""
    sink.task.put_errors = [ValueError("boom")]
    sink.consumer.polls.append([message(0)])
    with pytest.raises(ConnectException, match="Exiting WorkerSinkTask due to unrecoverable") as e:
        sink.loop.run()
    assert isinstance(e.value.__cause__, ValueError)
    assert sink.consumer.committed == []


def test_a_report_that_the_task_hides_keeps_the_offsets_of_its_put() -> None:
    """A put during which the tolerance was exceeded fails the task, even if `put` returned."""

    class Exceeded:
        def raise_failure(self) -> None:
            if ["v0"] in rejecting.task.puts():
                raise ConnectException("Tolerance exceeded in error handler")

        def await_reports(self, partitions: Collection[TopicPartition]) -> None:
            """Do nothing, as there is no open report."""

        def abandon(self, partitions: Collection[TopicPartition]) -> None:
            """Do nothing, as there is no open report."""

    rejecting = assigned_sink(reports=Exceeded())
    rejecting.consumer.polls.append([message(0)])
    with pytest.raises(ConnectException, match="Exiting WorkerSinkTask due to unrecoverable"):
        rejecting.loop.run()
    assert rejecting.task.puts()[-1] == ["v0"]
    assert rejecting.consumer.committed == []


def test_a_stop_commits_and_closes_with_is_closing(sink: Sink) -> None:
    """is_closing is True in pre_commit and False in close; the commit comes after close (R9)."""
    sink.deliver(message(0))
    sink.control.stop_requested.set()
    sink.loop.run()
    assert sink.task.calls[1:] == [("pre_commit", {P0: 1, P1: 0}, True), ("close", {P0, P1}, False)]
    assert sink.consumer.committed == [{P0: 1, P1: 0}]


def test_a_revoked_subset_is_finished_alone(sink: Sink) -> None:
    """A cooperative rebalance offers only the revoked partitions; the others continue (R6)."""
    sink.deliver(message(0), message(0, 1))
    sink.revoke(P1)
    assert sink.task.calls[1:] == [("pre_commit", {P1: 1}, True), ("close", {P1}, False)]
    assert sink.consumer.committed == [{P1: 1}]
    sink.deliver(message(1))
    assert sink.task.puts()[-1] == ["v1"]
    assert sink.loop.offsets.current == {P0: 2}
    assert sink.context.is_closing is False


def test_lost_partitions_are_closed_without_a_commit(sink: Sink) -> None:
    """A lost partition is not committed, as another member already has it (R5)."""
    sink.deliver(message(0))
    sink.lose(P0)
    assert sink.task.calls[1:] == [("close", {P0}, False)]
    assert sink.consumer.committed == []
    assert sink.loop.offsets.current == {P1: 0}


def test_pre_commit_that_raises_rewinds_unless_closing(sink: Sink) -> None:
    """A periodic failure rewinds to the last commit; a closing failure commits nothing (R8)."""
    sink.deliver(message(0))
    sink.task.pre_commit_errors = [ValueError("flush failed")]
    sink.next_commit()
    assert sorted(sink.consumer.seeks) == [(P0, 0), (P1, 0)]
    assert sink.loop.offsets.current == {P0: 0, P1: 0}
    sink.deliver(message(0))
    sink.task.pre_commit_errors = [ValueError("flush failed")]
    sink.revoke(P0)
    assert sink.task.names()[-2:] == ["pre_commit", "close"]
    assert sink.consumer.committed == []
    assert sink.context.is_closing is False


def test_offsets_of_pre_commit_are_checked(sink: Sink) -> None:
    """Offsets that are too high, unassigned or not offered are ignored; lower ones count."""
    sink.deliver(message(0), message(1), message(2))
    sink.task.provide = lambda _: {P0: 2, P1: 9, TopicPartition("other", 0): 5}
    sink.next_commit()
    assert sink.consumer.pending[0][0] == {P0: 2, P1: 0}


def test_an_empty_mapping_skips_the_commit(sink: Sink) -> None:
    """An empty mapping of a sink that keeps its own offsets counts as a successful commit."""
    sink.deliver(message(0))
    sink.task.provide = lambda _: {}
    sink.next_commit()
    assert sink.consumer.pending == []
    assert sink.committed("completion-total") == 1


@cases(
    "provided, text",
    (None, "returned NoneType; it must return the offsets"),
    ([1], "returned list; it must return the offsets"),
    ({P0: "7"}, "returned the offset '7' for"),
    ({P0: 1.0}, "returned the offset 1.0 for"),
    ({P0: -1}, "returned the offset -1 for"),
)
def test_results_of_pre_commit_unlike_javas_fail(sink: Sink, provided: Any, text: str) -> None:
    """None is not an empty mapping, and -1 is not librdkafka's end of the partition."""
    sink.deliver(message(0))
    sink.task.provide = lambda _: provided
    with pytest.raises(ConnectException, match=rf"pre_commit\(\) \(in Java: preCommit\) {text}"):
        sink.next_commit()


def test_a_negative_offset_is_refused_where_it_is_asked_for(sink: Sink) -> None:
    """A negative offset raises at the request, as librdkafka reads -1 as the end."""
    for target in ((P0, -1), ({P0: 3, P1: -2},)):
        with pytest.raises(ConnectException, match="must not be negative: -"):
            sink.context.offset(*target)  # type: ignore[call-overload]
    assert sink.context.take_offsets() == {}


def test_a_pause_pauses_everything_and_asks_for_a_commit(sink: Sink) -> None:
    """A paused `put` gets empty batches; a resume leaves partitions that the task has paused."""
    sink.context.pause(P1)
    sink.control.should_pause = True
    sink.deliver(message(0))
    assert sink.states == [State.PAUSED]
    assert sink.consumer.paused == {P0, P1}
    assert sink.task.puts() == [[]]
    sink.control.should_pause = False
    sink.deliver(message(0))
    assert sink.states == [State.PAUSED, State.RUNNING]
    assert sink.consumer.paused == {P1}
    assert sink.task.puts()[-1] == ["v0"]


def test_partitions_of_a_batch_awaiting_redelivery_can_be_revoked(sink: Sink) -> None:
    """Records of the revoked partition leave the batch; the other records are put again."""
    sink.task.put_errors = [RetriableException("later")]
    sink.deliver(message(0), message(5, 1))
    sink.revoke(P0)
    sink.deliver()
    assert sink.task.puts()[-1] == ["v5"]
    assert sink.loop.offsets.current == {P1: 6}


def test_an_assignment_opens_and_may_rewind(sink: Sink) -> None:
    """An offset that the task requests in `open` counts at once, as committed and as current."""
    new = TopicPartition("t", 2)
    sink.task.on_open = lambda: sink.context.offset(new, 42)
    sink.assign({new: 7})
    assert sink.task.calls == [("open", {new}, False)]
    assert sink.consumer.seeks == [(new, 42)]
    assert sink.loop.offsets.committed[new] == 42


def test_an_exception_in_a_rebalance_is_raised_after_the_poll(sink: Sink) -> None:
    """The exception of `open` is kept during the client's callback, which must not raise."""

    def fail() -> None:
        raise ValueError("cannot open")

    sink.task.on_open = fail
    sink.consumer.polls.append(lambda: sink.assign({TopicPartition("t", 2): 0}))
    with pytest.raises(ValueError, match="cannot open"):
        sink.loop.step()


def test_a_task_can_rewind_itself(sink: Sink) -> None:
    """The consumer seeks to the requested offset before the next poll."""
    sink.context.offset({P0: 3, P1: None})
    sink.deliver()
    assert sink.consumer.seeks == [(P0, 3)]
    assert sink.loop.offsets.current == {P0: 3, P1: 0}


def test_dropped_records_advance_the_offset() -> None:
    """A record that a transformation drops, or whose failure is tolerated, counts as consumed."""

    def transform(record: SinkRecord) -> SinkRecord | None:
        if record.value == "v1":
            raise DataException("not this one")
        return None if record.value == "v0" else record

    sink = Sink(transform=transform, tolerate_all=True)
    sink.assign({P0: 0})
    sink.deliver(message(0), message(1), message(2))
    assert sink.task.puts() == [["v2"]]
    assert sink.loop.offsets.current == {P0: 3}


def test_messages_of_partitions_that_are_gone_are_left_out(sink: Sink) -> None:
    """Messages left over from a rebalance within a poll are not put."""
    sink.deliver(message(0), FakeMessage("gone", 0, 5, b"x"), message(1))
    assert sink.task.puts() == [["v0", "v1"]]
    assert sink.loop.offsets.current == {P0: 2, P1: 0}


def test_a_record_carries_the_consumed_message(sink: Sink) -> None:
    """A sink record has the message's key, headers, timestamp and original coordinates."""
    records: list[SinkRecord] = []
    sink.task.put = records.extend  # type: ignore[method-assign]
    sink.deliver(FakeMessage("t", 1, 9, b"v", b"k", (2, 5), (("h", b"12"), ("h", None))))
    (record,) = records
    assert (record.key, record.value, record.kafka_offset, record.timestamp) == ("k", "v", 9, 5)
    assert str(record.timestamp_type) == "LogAppendTime"
    assert [(h.key, h.value) for h in record.headers] == [("h", 12), ("h", None)]
    assert (record.original_topic, record.original_kafka_partition) == ("t", 1)


def test_a_context_knows_its_assignment(sink: Sink) -> None:
    """Unassigned partitions cannot be paused, and no call works before the start."""
    assert sink.context.assignment() == {P0, P1}
    with pytest.raises(IllegalWorkerStateException, match="not currently assigned"):
        sink.context.pause(TopicPartition("x", 0))
    fresh = WorkerSinkTaskContext(configs=dict, connector_paused=lambda: False, reporter=None)
    with pytest.raises(IllegalWorkerStateException, match="until the task is initialized"):
        fresh.assignment()


def test_four_tasks_one_dies_and_the_others_keep_their_buffers_progress() -> None:
    """On revocation a buffering sink stores its part and commits the offset behind it (KIP-275)."""
    sinks = [Sink() for _ in range(3)]
    for number, sink in enumerate(sinks):
        partition = TopicPartition("t", number)
        stored = {partition: 0}

        def provide(
            offered: Mapping[TopicPartition, int],
            sink: Sink = sink,
            stored: dict[TopicPartition, int] = stored,
        ) -> Mapping[TopicPartition, int]:
            # Only full objects of 100,000 records are stored, and a part when closing.
            return dict(offered) if sink.context.is_closing else dict(stored)

        sink.task.provide = provide
        sink.assign({partition: 0})
        sink.deliver(FakeMessage("t", number, 59_999, b"v"))
        sink.next_commit()
        assert sink.consumer.pending == []
        sink.revoke(partition)
        assert sink.consumer.committed == [{partition: 60_000}]
