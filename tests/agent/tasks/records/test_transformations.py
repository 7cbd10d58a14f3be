"""What a chain counts of each transformation."""

import threading
from typing import Any

import pytest

from pyconnect_agent.core.metric_values import MetricValue
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.records import Chain, Tolerance
from pyconnect_api import ConnectException, RetriableException, SourceRecord
from tests.support.functions import chain_of


def chain(*functions: Any, tolerate_all: bool = True) -> Chain:
    tolerance = Tolerance(
        tolerate_all=tolerate_all,
        policy=RetryPolicy(timeout_ms=10_000, delay_max_ms=1),
        reporters=(),
        stop_requested=threading.Event(),
    )
    return chain_of(*functions, tolerance=tolerance)


def records(*numbers: int) -> list[SourceRecord]:
    return [SourceRecord({}, {}, topic="t", value=number) for number in numbers]


def counted(made: Chain) -> dict[str, tuple[MetricValue, ...]]:
    """In, out, dropped and failed by alias."""
    found: dict[str, dict[str, MetricValue]] = {}
    for metric in made.metrics():
        found.setdefault(metric.tags["transform"], {})[metric.name] = metric.value
    return {
        alias: tuple(
            numbers[f"transform-record-{name}-total"] for name in ("in", "out", "dropped", "failed")
        )
        for alias, numbers in found.items()
    }


def test_each_transformation_counts_what_came_went_was_dropped_and_failed() -> None:
    """Also when the chain goes on behind a failure, and a repeated attempt counts once."""
    repeated = []

    def second(record: SourceRecord) -> SourceRecord | None:
        if record.value == 3:
            raise ValueError
        if record.value == 4 and not repeated:
            repeated.append(record)
            raise RetriableException("again")
        return None if record.value == 5 else record

    made = chain(
        lambda record: None if record.value in {1, 2} else record, second, lambda record: record
    )
    assert [record.value for record in made.kept(records(*range(10)))] == [0, 4, 6, 7, 8, 9]
    assert counted(made) == {"f0": (10, 8, 2, 0), "f1": (8, 6, 1, 1), "f2": (6, 6, 0, 0)}


def test_a_failure_that_is_not_tolerated_is_counted() -> None:
    """The task sends its last values before it ends."""

    def fail(record: SourceRecord) -> SourceRecord:
        raise ValueError

    made = chain(fail, tolerate_all=False)
    with pytest.raises(ConnectException):
        made.kept(records(1))
    assert counted(made) == {"f0": (1, 0, 0, 1)}


def test_one_record_in_a_hundred_is_timed() -> None:
    """No transformation sees a record twice for it."""
    seen: list[Any] = []
    made = chain(lambda record: seen.append(record.value) or record)
    for first in range(0, 400, 10):
        made.kept(records(*range(first, first + 10)))
    assert seen == list(range(400))
    (counts,) = made._counts
    assert sum(sample.events for sample in counts.us._samples) == 4
    (mean,) = [metric.value for metric in made.metrics() if metric.name.endswith("avg-time-us")]
    assert isinstance(mean, float)
    assert mean >= 0
