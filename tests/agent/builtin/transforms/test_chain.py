"""The shipped transformations work together in a task's chain."""

import threading

import pytest

from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.records import (
    Chain,
    Failure,
    RecordSkipped,
    Tolerance,
    TransformationStage,
)
from pyconnect_api import ConnectRecord, DataException, Header, RetriableException
from tests.agent.builtin.transforms.transformations import predicate, source_record, transformation
from tests.support.functions import chain_of

TOLERANCE = Tolerance(
    tolerate_all=False, policy=RetryPolicy(), reporters=(), stop_requested=threading.Event()
)


def test_a_filter_in_the_middle_drops_what_its_predicate_selects() -> None:
    """Later stages do not see a dropped record, and a predicate sees the topic at its place."""
    stages = [
        TransformationStage(
            alias="route",
            transformation=transformation("RegexRouter", regex="(.*)-raw", replacement="$1"),
        ),
        TransformationStage(
            alias="drop",
            transformation=transformation("Filter"),
            predicate=predicate("TopicNameMatches", pattern="orders"),
            negate=True,
        ),
        TransformationStage(
            alias="mark", transformation=transformation("HoistField$Value", field="f")
        ),
    ]
    transform = Chain(stages, TOLERANCE)
    assert transform is not None
    kept = transform(source_record(1, topic="orders-raw"))
    assert (kept.topic, kept.value) == ("orders", {"f": 1})
    assert transform(source_record(1, topic="other-raw")) is None


def test_a_negated_predicate_guards_against_tombstones() -> None:
    """Without the predicate MaskField would refuse tombstones."""
    stage = TransformationStage(
        alias="mask",
        transformation=transformation("MaskField$Value", fields="a"),
        predicate=predicate("RecordIsTombstone"),
        negate=True,
    )
    transform = Chain([stage], TOLERANCE)
    assert transform is not None
    tombstone = source_record(None, headers=[Header("h", None, 1)])
    assert transform(tombstone) is tombstone
    assert transform(source_record({"a": "x"})).value == {"a": ""}


def test_many_records_end_with_the_first_that_fails() -> None:
    """After a failure the records before it are complete, and the chain repeats no step."""
    steps: list[tuple[str, object]] = []
    left = [RetriableException("not yet"), DataException("never")]

    def first(record: ConnectRecord) -> ConnectRecord | None:
        steps.append(("first", record.value))
        return None if record.value == 0 else record

    def second(record: ConnectRecord) -> ConnectRecord:
        steps.append(("second", record.value))
        if record.value == 2 and left:
            raise left.pop(0)
        return record

    reports: list[Failure] = []
    tolerance = Tolerance(
        tolerate_all=True,
        policy=RetryPolicy(timeout_ms=1_000, delay_max_ms=0),
        reporters=(Remembering(reports),),
        stop_requested=threading.Event(),
    )
    records = [source_record(number) for number in range(4)]
    made = chain_of(first, second, tolerance=tolerance)
    done, failed = made.run(records)
    assert done == [None, records[1]]
    assert reports == []
    assert failed is not None
    with pytest.raises(RecordSkipped):
        failed()
    assert [failure.record for failure in reports] == [records[2]]
    assert made.run(records[3:]) == ([records[3]], None)
    assert steps == [
        ("first", 0),
        ("first", 1),
        ("second", 1),
        ("first", 2),
        ("second", 2),
        ("second", 2),
        ("first", 3),
        ("second", 3),
    ]


class Remembering:
    """A handler that remembers failures."""

    def __init__(self, failures: list[Failure]) -> None:
        self._failures = failures

    def report(self, failure: Failure) -> None:
        self._failures.append(failure)
