"""A sink loop that consumes while its task takes a batch, which the task must not notice."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pyconnect_api import ConnectException, RetriableException, SinkRecord, TopicPartition
from tests.agent.tasks.sink.sink_loop import P0, P1, RecordingTask, Sink, message
from tests.support.fakes.fake_clients import FakeConsumer, FakeMessage

RECORDS = 12
MOST_STEPS = 200
DEEDS = ("retry", "rewind", "pause", "commit", "fail")
PLACES = st.tuples(st.sampled_from([P0, P1]), st.integers(0, RECORDS - 1))
REBALANCES = st.lists(
    st.tuples(st.integers(1, 8), st.sampled_from(["revoke", "lose", "revoke late"])), max_size=2
)


PUT_RECORDS = 4


class Log(FakeConsumer):
    """Returns the records of two partitions, two from each; heeds seeks and pauses.

    With `whole_frames` it returns as many as are asked for, two from each in turn.

    `rebalances`: at the first poll after so many puts were begun, P1 is revoked and assigned again;
    "late" means after records of P0 are polled.
    """

    def __init__(
        self, sink: Sink, rebalances: Sequence[tuple[int, str]], *, whole_frames: bool
    ) -> None:
        super().__init__()
        self.sink = sink
        self.whole_frames = whole_frames
        self.rebalances = sorted(rebalances)
        self.positions: dict[TopicPartition, int] = {}

    def poll(self, max_records: int, timeout_s: float) -> list[Any]:
        found: list[FakeMessage] = []
        while self.rebalances and self.sink.begun >= self.rebalances[0][0]:
            _, kind = self.rebalances.pop(0)
            if kind == "revoke late":
                found += self.fetch({P0} - self.paused)
            self.rebalance(kind)
        for _ in range(max_records // PUT_RECORDS if self.whole_frames else not found):
            found += self.fetch(self.assigned - self.paused)
        if not found:
            # One poll waits as long as all polls until the next commit.
            self.timeouts_s.append(600 * timeout_s)
        return found

    def fetch(self, partitions: Collection[TopicPartition]) -> list[FakeMessage]:
        found = []
        for partition in sorted(partitions):
            at = self.positions[partition]
            for offset in range(at, min(at + 2, RECORDS)):
                found.append(message(offset, partition.partition))
                self.positions[partition] = offset + 1
        return found

    def rebalance(self, kind: str) -> None:
        loop = self.sink.loop
        (loop.on_lost if kind == "lose" else loop.on_revoked)([P1])
        self.assigned.discard(P1)
        self.paused.discard(P1)
        self.assigned.add(P1)
        start = next((each[P1] for each in reversed(self.committed) if P1 in each), 0)
        self.positions[P1] = start
        loop.on_assigned({P1: start})

    def seek(self, partition: TopicPartition, offset: int) -> None:
        super().seek(partition, offset)
        self.positions[partition] = offset

    def commit_async(
        self, offsets: Mapping[TopicPartition, int], done: Callable[..., None]
    ) -> None:
        super().commit_async(offsets, done)
        self.finish_commit()


class Doing(RecordingTask):
    """Does the deed of each record once.

    The task checks that records come in order, and that it is offered the offsets that it has
    taken.
    """

    def __init__(self, deeds: Mapping[tuple[TopicPartition, int], str]) -> None:
        super().__init__()
        self.deeds = dict(deeds)
        self.taken: dict[TopicPartition, int] = {}
        self.paused: TopicPartition | None = None
        self.faults: list[tuple[object, ...]] = []

    def put(self, records: Sequence[SinkRecord]) -> None:
        places = [(TopicPartition(r.topic, r.kafka_partition), r.kafka_offset) for r in records]
        for partition in {partition for partition, _ in places}:
            offsets = [offset for each, offset in places if each == partition]
            start = self.taken[partition]
            self.check(partition != self.paused, "paused", partition)
            self.check(offsets == list(range(start, start + len(offsets))), start, offsets)
        if self.paused is not None:
            self.context.resume(self.paused)
            self.paused = None
        if places:
            self.note("put", places)
        deeds = {place: self.deeds.pop(place) for place in places if place in self.deeds}
        if "fail" in deeds.values():
            raise ValueError("failed")
        if "retry" in deeds.values():
            raise RetriableException("later")
        self.taken |= {partition: offset + 1 for partition, offset in places}
        for (partition, offset), deed in deeds.items():
            match deed:
                case "rewind":
                    self.taken[partition] = max(0, offset - 3)
                    self.context.offset(partition, self.taken[partition])
                case "pause" if self.paused is None:
                    self.paused = partition
                    self.context.pause(partition)
                case "commit":
                    self.context.request_commit()

    def pre_commit(self, current_offsets: Mapping[TopicPartition, int]) -> Any:
        offered = dict(current_offsets)
        if self.context.is_closing or not self.context.wants_offsets:  # type: ignore[attr-defined]
            for partition, taken in self.taken.items():
                self.check(offered.get(partition, taken) == taken, offered, taken)
        return offered

    def check(self, holds: bool, *found: object) -> None:
        # Noted and not raised, as the loop handles an exception of the task.
        if not holds:
            self.faults.append(found)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        super().open(partitions)
        self.taken |= {p: self.context_positions()[p] for p in partitions}

    def close(self, partitions: Collection[TopicPartition]) -> None:
        super().close(partitions)
        self.taken = {p: at for p, at in self.taken.items() if p not in partitions}

    context_positions: Callable[[], Mapping[TopicPartition, int]]


def history(
    deeds: Mapping[tuple[TopicPartition, int], str],
    rebalances: Sequence[tuple[int, str]],
    *,
    overlapped: bool,
    whole_frames: bool = False,
    slow_puts: bool = False,
) -> tuple[list[tuple[str, Any, bool]], Mapping[TopicPartition, int], Log]:
    """Run a task over the log; return its calls, the committed offsets and the log."""
    task = Doing(deeds)
    sink = Sink(
        task=task,
        overlapped=overlapped,
        put_records=PUT_RECORDS,
        slow_puts=slow_puts,
        consumer=lambda sink: Log(sink, rebalances, whole_frames=whole_frames),
    )
    log = sink.consumer
    assert isinstance(log, Log)
    task.context_positions = lambda: log.positions
    log.positions = {P0: 0, P1: 0}
    sink.assign({P0: 0, P1: 0})
    steps = iter(range(MOST_STEPS))

    def stopped() -> bool:
        at_end = all(each == RECORDS for each in log.positions.values()) and not log.rebalances
        idle = at_end and not sink.loop.pending and not sink.context.wants_offsets
        return next(steps, None) is None or (idle and not log.paused)

    try:
        while not stopped():
            sink.loop.step()
        sink.control.stop_requested.set()
        sink.loop.run()
    except ConnectException as exc:
        # Any other exception is a fault of this test.
        if not isinstance(exc.__cause__, ValueError):
            raise
        sink.control.stop_requested.set()
        sink.loop.run()
    assert task.faults == []
    committed: dict[TopicPartition, int] = {}
    for each in log.committed:
        committed |= each
    return task.calls, committed, log


@example({(P0, 3): "rewind"}, [(2, "revoke late")])
@example({(P1, 3): "rewind"}, [(2, "revoke")])
@given(st.dictionaries(PLACES, st.sampled_from(DEEDS), max_size=5), REBALANCES)
def test_calls_and_commits_are_those_of_a_loop_that_does_not_overlap(
    deeds: dict[tuple[TopicPartition, int], str], rebalances: list[tuple[int, str]]
) -> None:
    """The test draws all requests and errors of the task and all moves of its partitions."""
    one_by_one, overlapped = (history(deeds, rebalances, overlapped=each) for each in (False, True))
    found = set(deeds.values())
    if "fail" not in found:
        assert set(overlapped[1].values()) == set(one_by_one[1].values()) == {RECORDS}
    # The loop sees the end of a put after the polls beside it: a resumed partition comes back a
    # batch later, a partition that goes in such a poll is closed before a commit, a failure or
    # another put, and records given back may come in other batches.
    kinds = {kind for _, kind in rebalances}
    if not {"pause", "revoke late"} & (found | kinds) and not (kinds and found):
        assert overlapped[:2] == one_by_one[:2]


@given(st.dictionaries(PLACES, st.sampled_from(DEEDS), max_size=5), REBALANCES, st.booleans())
def test_several_puts_in_a_frame_lose_and_double_nothing(
    deeds: dict[tuple[TopicPartition, int], str], rebalances: list[tuple[int, str]], slow_puts: bool
) -> None:
    """Every record is taken once and in order, and the task is offered the right offsets."""
    _, committed, _ = history(
        deeds, rebalances, overlapped=True, whole_frames=True, slow_puts=slow_puts
    )
    if "fail" not in deeds.values():
        assert set(committed.values()) == {RECORDS}


def test_frames_grow_while_puts_are_quick_and_full() -> None:
    """A frame that ends early reduces the next frame to one put."""
    sizes: list[int] = []
    task = Doing({(P0, 13): "pause"})
    sink = Sink(task=task, overlapped=True, put_records=2, consumer=lambda sink: Asked(sizes))
    task.context_positions = lambda: {P0: 0}
    sink.assign({P0: 0})
    for _ in range(7):
        sink.loop.step()
    # From the second growth on two batches are under way before the first end is known.
    assert sizes == [2, 2, 4, 4, 4, 8, 8]
    assert task.taken == {P0: 14}
    # After the resume the records behind those that the task has taken are consumed again.
    sink.context.resume(P0)
    task.paused = None
    for _ in range(2):
        sink.loop.step()
    assert sizes[7] == 2
    assert task.faults == []


class Asked(FakeConsumer):
    """Always has as many records as the loop asks for, and notes their numbers."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.next = 0

    def poll(self, max_records: int, timeout_s: float) -> list[Any]:
        self.sizes.append(max_records)
        found = [message(self.next + place) for place in range(max_records)]
        self.next += max_records
        return found

    def seek(self, partition: TopicPartition, offset: int) -> None:
        super().seek(partition, offset)
        self.next = offset


def test_a_record_after_a_pause_is_consumed_once() -> None:
    """After the end of all puts, a new record is not consumed ahead of a put, and so only once."""
    sink = Sink(overlapped=True)
    sink.assign({P0: 0})
    sink.deliver(message(0))
    sink.consumer.polls.append([])
    sink.deliver(message(1))
    sink.deliver()
    assert sink.task.puts()[:2] == [["v0"], ["v1"]]
    assert sink.consumer.seeks == []


def test_the_next_batch_is_consumed_while_the_task_takes_one() -> None:
    """At most one batch is consumed ahead of the one that the task takes."""
    sink = Sink(overlapped=True)
    sink.assign({P0: 0})
    sink.deliver(message(0))
    assert sink.task.puts() == []
    sink.deliver(message(1))
    assert sink.task.puts() == [["v0"]]
    assert sink.loop.offsets.current == {P0: 1}
    sink.deliver()
    assert sink.task.puts() == [["v0"], ["v1"], []][: len(sink.task.puts())]
    assert sink.loop.offsets.current == {P0: 2}
