"""The shipped transformations work together in a task's chain."""

from __future__ import annotations

import threading

from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.tolerance import Tolerance
from pyconnect_agent.tasks.transform_chain import TransformationStage, chain
from pyconnect_api import Header
from tests.support.transformations import predicate, source_record, transformation

TOLERANCE = Tolerance(
    tolerate_all=False,
    policy=RetryPolicy(),
    reporters=(),
    stop_requested=threading.Event(),
)


def test_a_filter_in_the_middle_drops_what_its_predicate_selects() -> None:
    """Stages after it do not see the record; the predicate sees the topic of its place."""
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
    transform = chain(stages, TOLERANCE)
    assert transform is not None
    kept = transform(source_record(1, topic="orders-raw"))
    assert (kept.topic, kept.value) == ("orders", {"f": 1})
    assert transform(source_record(1, topic="other-raw")) is None


def test_a_negated_predicate_guards_against_tombstones() -> None:
    """MaskField would refuse them."""
    stage = TransformationStage(
        alias="mask",
        transformation=transformation("MaskField$Value", fields="a"),
        predicate=predicate("RecordIsTombstone"),
        negate=True,
    )
    transform = chain([stage], TOLERANCE)
    assert transform is not None
    tombstone = source_record(None, headers=[Header("h", None, 1)])
    assert transform(tombstone) is tombstone
    assert transform(source_record({"a": "x"})).value == {"a": ""}
