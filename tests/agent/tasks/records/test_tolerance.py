"""Retries, reports and tolerance of record failures."""

import threading

import pytest

from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.records import Failure, RecordSkipped, RecordStage, Tolerance
from pyconnect_api import ConnectException, DataException, RetriableException


class Reports:
    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def report(self, failure: Failure) -> None:
        self.failures.append(failure)


class Waits(threading.Event):
    """Never waits; notes how long it should have."""

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
    """With none the task fails with Connect's text; with all the record is left out."""
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
    """With growing waits, and nothing is reported."""
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
    """When the task stops, and without a retry timeout, where Kafka would skip the record."""
    waits = Waits()
    waits.set()
    made, reports = tolerance(timeout_ms=-1, waits=waits)
    with pytest.raises(ConnectException):
        made.recover(RecordStage.KEY_CONVERTER, str, RetriableException("1"), "r", str)
    assert len(reports.failures) == 1
    made, _ = tolerance()
    with pytest.raises(ConnectException):
        made.recover(RecordStage.KEY_CONVERTER, str, RetriableException("1"), "r", str)
