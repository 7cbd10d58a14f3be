"""Retries, reports and tolerance of record failures, and the counts of a chain."""

import threading
from typing import Any

import pytest

from pyconnect_agent.core.metric_values import MetricValue
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.records import Chain, Failure, RecordSkipped, RecordStage, Tolerance
from pyconnect_api import ConnectException, DataException, RetriableException, SourceRecord
from tests.agent.tasks import parts
from tests.support.functions import chain_of


class Reports:
    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def report(self, failure: Failure) -> None:
        self.failures.append(failure)


class Waits(threading.Event):
    """Waits for no time, and notes the durations."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_s: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits_s.append(timeout or 0)
        return self.is_set()


def tolerance(
    *, tolerate_all: bool = False, timeout_ms: int = 0, waits: Waits | None = None
) -> tuple[Tolerance, Reports]:
    reports = Reports()
    made = Tolerance(
        tolerate_all=tolerate_all,
        policy=RetryPolicy(timeout_ms=timeout_ms),
        reporters=[reports],
        stop_requested=waits or Waits(),
    )
    return made, reports


def test_failures_are_reported_then_fail_or_skip() -> None:
    """The task fails with tolerance `none`; the record is skipped with `all`."""
    made, reports = tolerance()
    error = DataException("bad")
    with pytest.raises(ConnectException, match="Tolerance exceeded in error handler") as raised:
        made.recover(RecordStage.VALUE_CONVERTER, str, error, "record", str)
    assert raised.value.__cause__ is error
    assert reports.failures == [
        Failure(
            stage=RecordStage.VALUE_CONVERTER,
            class_name="builtins.str",
            error=error,
            record="record",
        )
    ]
    made, reports = tolerance(tolerate_all=True)
    with pytest.raises(RecordSkipped):
        made.recover(RecordStage.TRANSFORMATION, str, DataException("bad"), "record", str)
    assert len(reports.failures) == 1


def test_retriable_failures_are_repeated_until_they_succeed() -> None:
    """The waits grow from retry to retry, and a failure that is overcome is not reported."""
    waits = Waits()
    made, reports = tolerance(timeout_ms=-1, waits=waits)
    results: list[Exception | str] = [RetriableException("2"), RetriableException("3"), "value"]

    def operation(argument: str) -> str:
        assert argument == "x"
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    first = RetriableException("1")
    assert made.recover(RecordStage.KEY_CONVERTER, str, first, "r", operation, "x") == "value"
    assert waits.waits_s == [0.3, 0.6, 1.2]
    assert reports.failures == []


def test_a_retriable_failure_is_final_without_time() -> None:
    """A stopping task, or one without retry timeout, fails, while Kafka would skip the record."""
    waits = Waits()
    waits.set()
    made, reports = tolerance(timeout_ms=-1, waits=waits)
    with pytest.raises(ConnectException):
        made.recover(RecordStage.KEY_CONVERTER, str, RetriableException("1"), "r", str)
    assert len(reports.failures) == 1
    made, _ = tolerance()
    with pytest.raises(ConnectException):
        made.recover(RecordStage.KEY_CONVERTER, str, RetriableException("1"), "r", str)


def chain(*functions: Any, tolerate_all: bool = True) -> Chain:
    policy = RetryPolicy(timeout_ms=10_000, delay_max_ms=1)
    handling = parts.tolerance(tolerate_all=tolerate_all, policy=policy)
    return chain_of(*functions, tolerance=handling)


def records(*numbers: int) -> list[SourceRecord]:
    return [SourceRecord({}, {}, topic="t", value=number) for number in numbers]


def counted(made: Chain) -> dict[str, tuple[MetricValue, ...]]:
    """Return the counts in, out, dropped and failed by alias."""
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
    """The counts include records behind a failure, and count a retried record once."""
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
    """The count includes a failure that ends the task, which sends its last metrics before."""

    def fail(record: SourceRecord) -> SourceRecord:
        raise ValueError

    made = chain(fail, tolerate_all=False)
    with pytest.raises(ConnectException):
        made.kept(records(1))
    assert counted(made) == {"f0": (1, 0, 0, 1)}


def test_one_record_in_a_hundred_is_timed() -> None:
    """Timing calls no transformation twice for a record."""
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
