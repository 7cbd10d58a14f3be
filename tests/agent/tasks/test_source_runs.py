"""Records that are sent in runs have the same results as single records."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.builtin.converters.base import StringConverter
from pyconnect_agent.core.metric_values import SOURCE_TASK
from pyconnect_agent.core.offsets.submitted import CommittableOffsets
from pyconnect_agent.core.transaction_boundary import (
    BoundaryPolicy,
    ConnectorBoundary,
    IntervalBoundary,
    PollBoundary,
    RequestedTransactions,
)
from pyconnect_agent.tasks.control import ActiveTopics
from pyconnect_agent.tasks.records import Failure
from pyconnect_agent.tasks.source.at_least_once import AtLeastOnceSender
from pyconnect_agent.tasks.source.exactly_once import TransactionalSender
from pyconnect_agent.tasks.source.loop import SourceLoop
from pyconnect_agent.tasks.source.pipeline import compose
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_api import (
    STRING_SCHEMA,
    ConnectHeaders,
    DataException,
    RetriableException,
    SourceRecord,
    SourceRecords,
)
from tests.agent.tasks.parts import FakeControl, converters, source_metrics, tolerance
from tests.agent.tasks.source.fake_offsets import FakeOffsets
from tests.agent.tasks.source.fake_transactions import FakeTransactions
from tests.agent.tasks.source.source_loop import NotingTask, ScriptedTask
from tests.support.cases import cases
from tests.support.fakes.fake_clients import FakeProducer
from tests.support.functions import chain_of

Observed = dict[str, Any]


class TaskInParts(NotingTask):
    """Returns a poll in parts of two records."""

    def poll(self) -> Sequence[SourceRecord] | None:
        self.left = super().poll() or []
        return self.next_part()

    def next_part(self) -> Sequence[SourceRecord]:
        part, self.left = self.left[:2], self.left[2:]
        return part


class OfTopic(StringConverter):
    """A converter that appends the topic to each text."""

    def from_connect_data(
        self, topic: str, headers: Any, schema: Any, value: object
    ) -> bytes | None:
        data = super().from_connect_data(topic, headers, schema, value)
        return None if data is None else data + b"@" + topic.encode()

    def from_connect_many(self, topic: str, schema: Any, values: Any) -> list[bytes | None]:
        return [self.from_connect_data(topic, [], schema, value) for value in values]


class Reports:
    """A reporter that keeps the failures in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, object, str]] = []

    def report(self, failure: Failure) -> Future[None] | None:
        record = failure.record
        assert isinstance(record, SourceRecord)
        self.seen.append(
            (failure.stage.value, failure.class_name, record.source_offset, str(failure.error))
        )
        return None


@dataclass
class Surroundings:
    """The conditions that records meet, by their number.

    `transformations`: the deeds of two of them. `full`: the queue is full at first. `later`: the
    producer takes the record when it is sent again. `refused`: too large, so it fails afterwards.
    `stops`: the queue is full until the task is stopped. `task`: its class.
    """

    transformations: tuple[Mapping[int, str], Mapping[int, str]] = ({}, {})
    full: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()
    refused: frozenset[int] = frozenset()
    stops: int | None = None
    tolerate_all: bool = False
    boundary: Callable[[], BoundaryPolicy] = PollBoundary
    task: type[ScriptedTask] = ScriptedTask

    def transform(self, step: int, seen: list[object]) -> Callable[[SourceRecord], Any]:
        def apply(record: SourceRecord) -> SourceRecord | None:
            number = number_of(record)
            seen.append((step, number))
            match self.transformations[step].get(number):
                case "drop":
                    return None
                case "fail":
                    raise DataException(f"step {step} of {number}")
                case "later":
                    raise RetriableException(f"step {step} of {number}")
                case "route":
                    return changed(record, topic=f"other{step}")
                case "spoil":
                    return changed(record, value=object())
            return record

        return apply


def number_of(record: SourceRecord) -> int:
    assert record.source_offset is not None
    number = record.source_offset["n"]
    assert isinstance(number, int)
    return number


def number_in(value: bytes) -> int:
    return int(value[1:].partition(b"@")[0])


def changed(record: SourceRecord, **parts: Any) -> SourceRecord:
    values = {"topic": record.topic, "value": record.value, **parts}
    return record.new_record(
        values["topic"],
        record.kafka_partition,
        record.key_schema,
        record.key,
        record.value_schema,
        values["value"],
        record.timestamp,
    )


class Run:
    """A loop over fakes; with `one_by_one` the sender does not take runs."""

    def __init__(
        self, polls: Sequence[Sequence[SourceRecord]], given: Surroundings, *, one_by_one: bool
    ) -> None:
        self.given = given
        self.task = given.task(polls)
        self.control = FakeControl()
        self.reports = Reports()
        self.metrics = source_metrics()
        self.topics: list[str] = []
        self.transformed: list[object] = []
        self.tolerance = tolerance(self.reports, tolerate_all=given.tolerate_all)
        self.numbers: dict[bytes | None, int] = {}
        self.met: set[int] = set()
        self.later: dict[int, int] = {}
        self.steps = 0
        self.sender = self.new_sender()
        if one_by_one:
            self.sender.takes_runs = False
        assert self.sender.takes_runs is not one_by_one
        self.loop = SourceLoop(
            task=self.task,
            pipeline=compose(
                converters=converters(OfTopic(), OfTopic()),
                chain=chain_of(
                    given.transform(0, self.transformed),
                    given.transform(1, self.transformed),
                    tolerance=self.tolerance,
                ),
                tolerance=self.tolerance,
            ),
            sender=self.sender,
            control=self.control,  # type: ignore[arg-type]
            report=lambda state: None,
            retries=ShownRetries(lambda trace: None),
            metrics=self.metrics,
        )

    def new_sender(self) -> Any:
        raise NotImplementedError

    def refuse(self, value: bytes | None) -> None:
        """Raise the producer's error for a record, which the end of its value identifies."""
        if value is None or not value.startswith(b"v"):
            return
        number = number_in(value)
        if number in self.given.later and self.later.setdefault(number, self.steps) == self.steps:
            raise KafkaException(ClientError(ClientError._TIMED_OUT))
        if number == self.given.stops:
            self.control.stop_requested.set()
            raise BufferError("full until the end")
        if number in self.given.full and number not in self.met:
            self.met.add(number)
            raise BufferError("full for a while")
        if number in self.given.refused:
            raise KafkaException(ClientError(ClientError.MSG_SIZE_TOO_LARGE))

    def play(self) -> Observed:
        failure: BaseException | None = None
        try:
            self.sender.resumed()
            while self.task.polls or not self.loop.is_batch_complete:
                self.steps += 1
                self.loop.step()
                if self.control.stopping:
                    break
        except Exception as exc:
            failure = exc
        try:
            self.sender.finish(failed=failure is not None, complete=self.loop.is_batch_complete)
        except Exception as exc:
            failure = exc
        counts = self.metrics.values()[SOURCE_TASK]
        return {
            "failure": (repr(failure), repr(failure.__cause__)) if failure else None,
            "transformed": self.transformed,
            "reports": self.reports.seen,
            "counts": {
                name: getattr(self.tolerance.counts, name)
                for name in ("record_failures", "record_errors", "records_skipped")
            },
            "polled": counts["source-record-poll-total"],
            "written": counts["source-record-write-total"],
            "topics": sorted(self.topics),
            "commits": self.task.commits,
            "told": self.task.records if isinstance(self.task, NotingTask) else (),
            **self.observed(),
        }

    def observed(self) -> Observed:
        raise NotImplementedError


class ExactlyOnce(Run):
    def new_sender(self) -> TransactionalSender:
        run = self

        class Refusing(FakeTransactions):
            def produce(self, topic: str, value: bytes | None, *rest: Any, **named: Any) -> None:
                run.refuse(value)
                parts = (named.get("timestamp"), named.get("headers"))
                run.arguments.append((topic, value, *rest[:2], *parts))
                super().produce(topic, value, *rest, **named)

        self.arguments: list[object] = []
        self.producer = Refusing()
        self.offsets = FakeOffsets()
        return TransactionalSender(
            task_id="c-0",
            connector="c",
            task=self.task,
            producer=self.producer,
            boundary=self.given.boundary(),
            offsets=self.offsets,
            topics=ActiveTopics(self.topics.append),
            stop_requested=lambda: self.control.stopping,
            metrics=self.metrics,
            clock=lambda: 0.0,
        )

    def observed(self) -> Observed:
        return {
            "arguments": [
                argument
                for argument in self.arguments
                if isinstance(argument, tuple) and argument[0] != self.offsets.topic
            ],
            "committed": self.producer.committed,
            "calls": self.producer.calls,
            "offsets": self.offsets.entries,
        }


class AtLeastOnce(Run):
    """At-least-once; the brokers refuse the records of `fails`."""

    fails: frozenset[int] = frozenset()
    flush_timeout_ms = 5_000

    def new_sender(self) -> AtLeastOnceSender:
        run = self

        class Refusing(FakeProducer):
            def produce(self, topic: str, value: bytes | None, *rest: Any, **named: Any) -> None:
                run.refuse(value)
                super().produce(topic, value, *rest, **named)

        self.producer = Refusing()
        self.offered: dict[object, object] = {}
        self.pending = 0
        return AtLeastOnceSender(
            task=self.task,
            producer=self.producer,  # type: ignore[arg-type]
            tolerance=self.tolerance,
            topics=ActiveTopics(self.topics.append),
            stop_requested=lambda: self.control.stopping,
            committer=self,  # type: ignore[arg-type]
            metrics=self.metrics,
        )

    def commit(self) -> None:
        """Do nothing: the test compares the offered offsets."""

    def offer(self, committable: CommittableOffsets) -> None:
        """Deliver or fail all records sent so far."""
        self.note(committable)
        waiting = [(place, sent.value) for place, sent in enumerate(self.producer.waiting)]
        for place, value in reversed(waiting):
            if value is not None and value.startswith(b"v") and number_in(value) in self.fails:
                self.producer.fail(place, ClientError.TOPIC_AUTHORIZATION_FAILED)
        self.producer.deliver()
        self.producer.serve()
        self.note(self.sender.submitted.committable_offsets())

    def note(self, committable: CommittableOffsets) -> None:
        self.offered |= committable.offsets
        self.pending = committable.uncommittable_count

    def observed(self) -> Observed:
        return {
            "sent": [
                (s.topic, s.value, s.key, s.partition, s.timestamp, s.headers)
                for s in self.producer.sent
            ],
            "offered": self.offered,
            "pending": self.pending,
        }


FILES: Sequence[dict[str, object]] = ({"f": "a"}, {"f": "b"})


@st.composite
def records(draw: st.DrawFn, number: int) -> SourceRecord:
    """Draw a record, mostly ordinary, else with one odd part."""
    odd = draw(st.sampled_from([*[""] * 12, "topic", "key", "value", "time", "headers", "place"]))
    file = draw(st.sampled_from(FILES))
    return SourceRecord(
        draw(st.sampled_from([file, dict(file)])),
        {"n": number},
        draw(st.sampled_from(["t", "u", None])) if odd == "topic" else "t",
        1 if odd == "place" else None,
        STRING_SCHEMA,
        draw(st.sampled_from(["k", None, b"no text"])) if odd == "key" else None,
        draw(st.sampled_from([STRING_SCHEMA, None])),
        draw(st.sampled_from([None, "\ud800", object()])) if odd == "value" else f"v{number}",
        draw(st.sampled_from([None, 0, -1, -5])) if odd == "time" else 12,
        ConnectHeaders().add_string("h", "x") if odd == "headers" else None,
    )


@st.composite
def columns(draw: st.DrawFn, numbers: range) -> SourceRecords:
    return SourceRecords(
        draw(st.sampled_from(FILES)),
        [{"n": number} for number in numbers],
        draw(st.sampled_from(["t", "u"])),
        STRING_SCHEMA,
        [f"v{number}" for number in numbers],
        timestamp=draw(st.sampled_from([None, 12])),
    )


@st.composite
def polls(draw: st.DrawFn) -> list[Sequence[SourceRecord]]:
    made: list[Sequence[SourceRecord]] = []
    number = 0
    for size in draw(st.lists(st.integers(0, 6), min_size=1, max_size=4)):
        numbers = range(number, number + size)
        number += size
        if draw(st.booleans()):
            made.append(draw(columns(numbers)))
        else:
            made.append([draw(records(each)) for each in numbers])
    return made


numbers = st.integers(0, 12)
deeds = st.dictionaries(
    numbers, st.sampled_from(["drop", "fail", "later", "route", "spoil"]), max_size=3
)
surroundings = st.builds(
    Surroundings,
    transformations=st.tuples(deeds, deeds),
    full=st.frozensets(numbers, max_size=2),
    later=st.frozensets(numbers, max_size=2),
    refused=st.frozensets(numbers, max_size=1),
    stops=st.none() | numbers,
    tolerate_all=st.booleans(),
    boundary=st.sampled_from([PollBoundary, lambda: IntervalBoundary(1_000)]),
    task=st.sampled_from([ScriptedTask, NotingTask]),
)


@given(polls(), surroundings)
def test_exactly_once_runs_have_the_same_results_as_single_records(
    polled: list[Sequence[SourceRecord]], given: Surroundings
) -> None:
    """Records, transactions, offsets, reports and the task's failure are the same."""
    one_by_one = ExactlyOnce(polled, given, one_by_one=True).play()
    assert ExactlyOnce(polled, given, one_by_one=False).play() == one_by_one


@given(polls(), surroundings, st.frozensets(numbers, max_size=2))
def test_at_least_once_runs_have_the_same_results_as_single_records(
    polled: list[Sequence[SourceRecord]], given: Surroundings, fails: frozenset[int]
) -> None:
    """Offsets, with records that brokers refuse, are equal once all results are known."""
    one, many = (AtLeastOnce(polled, given, one_by_one=single) for single in (True, False))
    one.fails = many.fails = fails
    expected, found = one.play(), many.play()
    if fails and not given.tolerate_all:
        # After a failure in a run, none of its offsets is committed, not even of earlier records.
        offered, limits = found.pop("offered"), expected.pop("offered")
        assert offered.keys() <= limits.keys()
        assert all(offset["n"] <= limits[key][1]["n"] for key, (_, offset) in offered.items())
        assert found.pop("pending") >= expected.pop("pending")
    assert found == expected


@cases("kind", ExactlyOnce, AtLeastOnce)
@given(polled=polls(), given=surroundings)
def test_polls_in_parts_have_the_same_results_as_whole_ones(
    kind: type[ExactlyOnce | AtLeastOnce], polled: list[Sequence[SourceRecord]], given: Surroundings
) -> None:
    """All parts of a poll are in one transaction, and only repeated work may differ."""
    observed = [
        kind(polled, replace(given, task=task), one_by_one=False).play()
        for task in (NotingTask, TaskInParts)
    ]
    for each in observed:
        del each["transformed"]
        if each["failure"] or given.stops is not None:
            # After a failure further parts are not polled.
            del each["polled"]
    whole, in_parts = observed
    assert in_parts == whole


@cases("kind", ExactlyOnce, AtLeastOnce)
def test_a_poll_goes_to_the_producer_at_once(kind: type[ExactlyOnce | AtLeastOnce]) -> None:
    """All records of a poll are one call of the producer; the comparisons above depend on it."""
    run = kind([[]], Surroundings(), one_by_one=False)
    sizes: list[int] = []
    produce_many = run.producer.produce_many

    def counted(records: Any, on_delivery: Any) -> int:
        sizes.append(len(records.values))
        return produce_many(records, on_delivery)

    run.producer.produce_many = counted  # type: ignore[method-assign]
    run.task.polls = [
        [SourceRecord(FILES[n % 2], {"n": n}, "tu"[n % 2], value=f"v{n}") for n in range(5)]
        for _ in range(2)
    ]
    for _ in range(2):
        run.loop.step()
    # At-least-once sends the first record of each topic alone.
    assert sizes[-1] == 5


@cases("boundary", PollBoundary, lambda: ConnectorBoundary(RequestedTransactions()))
def test_own_boundaries_are_without_runs(boundary: Callable[[], BoundaryPolicy]) -> None:
    sender = TransactionalSender(
        task_id="c-0",
        connector="c",
        task=ScriptedTask(),
        producer=FakeTransactions(),
        boundary=boundary(),
        offsets=FakeOffsets(),
        topics=ActiveTopics(lambda topic: None),
        stop_requested=lambda: False,
        metrics=source_metrics(),
    )
    assert sender.takes_runs is (boundary is PollBoundary)
