"""A local session starts and ends beside its caller; Spark itself is a fake here."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyconnect_reconcile import sessions
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.spec import SparkSettings

WAIT_S = 30.0


class FakeSpark:
    """Starts when the test lets it; knows what happened and in which threads."""

    def __init__(self) -> None:
        self.may_start = threading.Event()
        self.happened: list[str] = []
        self.threads: set[threading.Thread] = set()
        tracker = SimpleNamespace(getActiveStageIds=list)
        self.sparkContext = SimpleNamespace(statusTracker=lambda: tracker)

    def start(self, *_arguments: object) -> FakeSpark:
        assert self.may_start.wait(WAIT_S), "the caller waits for the start"
        self._note("started")
        return self

    def refuse(self, *_arguments: object) -> FakeSpark:
        raise ReconcileError("Spark did not start")

    def stop(self) -> None:
        self._note("stopped")

    def end_jvm(self) -> None:
        self._note("JVM ended")

    def _note(self, what: str) -> None:
        self.happened.append(what)
        self.threads.add(threading.current_thread())


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> FakeSpark:
    fake = FakeSpark()
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr(sessions, "_session", fake.start)
    monkeypatch.setattr(sessions, "_end_jvm", fake.end_jvm)
    return fake


@contextmanager
def starting(directory: Path, *, at_once: bool = True) -> Iterator[Callable[[], object]]:
    events = Events(machine=True, stream=io.StringIO())
    with sessions.starting_session(
        SparkSettings(), app_name="tests", work_directory=directory, events=events, at_once=at_once
    ) as waiting:
        yield waiting


def test_the_caller_works_while_spark_starts(spark: FakeSpark, tmp_path: Path) -> None:
    """The start needs the caller to have gone on; both ends are in another thread than its own."""
    with starting(tmp_path) as waiting:
        spark.may_start.set()
        assert waiting() is waiting() is spark
    assert spark.happened == ["started", "stopped", "JVM ended"]
    assert threading.main_thread() not in spark.threads


def test_a_session_that_nothing_waited_for_ends_with_its_jvm(
    spark: FakeSpark, tmp_path: Path
) -> None:
    """An interrupt or a failed capture does not lose the JVM that is starting."""
    spark.may_start.set()
    with pytest.raises(KeyboardInterrupt), starting(tmp_path):
        raise KeyboardInterrupt
    assert spark.happened == ["started", "stopped", "JVM ended"]


def test_a_start_that_fails_is_reported_to_each_that_waits(
    spark: FakeSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM may have started before the session failed."""
    monkeypatch.setattr(sessions, "_session", spark.refuse)
    with starting(tmp_path) as waiting:
        for _ in range(2):
            with pytest.raises(ReconcileError, match="did not start"):
                waiting()
    assert spark.happened == ["JVM ended"]


def test_a_caller_that_may_fail_early_starts_no_jvm(spark: FakeSpark, tmp_path: Path) -> None:
    """The first call starts Spark then."""
    with pytest.raises(ReconcileError), starting(tmp_path, at_once=False):
        raise ReconcileError("the topic does not exist")
    assert spark.happened == []
    spark.may_start.set()
    with starting(tmp_path, at_once=False) as waiting:
        waiting()
    assert spark.happened == ["started", "stopped", "JVM ended"]
