"""Sessions of Spark: local ones, and those at a Spark Connect server."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyconnect_reconcile import sessions
from pyconnect_reconcile.errors import ReconcileError, translated
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.sessions import REDACTED_TEXT, remote_of
from pyconnect_reconcile.spec import SparkSettings

WAIT_S = 30.0


class FakeSpark:
    """A session whose start waits for the test; it records events and their threads."""

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
    """Spark starts and ends in a thread of its own while the caller works."""
    with starting(tmp_path) as waiting:
        spark.may_start.set()
        assert waiting() is waiting() is spark
    assert spark.happened == ["started", "stopped", "JVM ended"]
    assert threading.main_thread() not in spark.threads


def test_a_session_that_nothing_waited_for_ends_with_its_jvm(
    spark: FakeSpark, tmp_path: Path
) -> None:
    """An interrupt or a failed capture also ends a JVM that is still starting."""
    spark.may_start.set()
    with pytest.raises(KeyboardInterrupt), starting(tmp_path):
        raise KeyboardInterrupt
    assert spark.happened == ["started", "stopped", "JVM ended"]


def test_a_start_that_fails_is_reported_to_each_that_waits(
    spark: FakeSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each caller gets the error of a failed start, and the JVM ends."""
    monkeypatch.setattr(sessions, "_session", spark.refuse)
    with starting(tmp_path) as waiting:
        for _ in range(2):
            with pytest.raises(ReconcileError, match="did not start"):
                waiting()
    assert spark.happened == ["JVM ended"]


def test_a_caller_that_may_fail_early_starts_no_jvm(spark: FakeSpark, tmp_path: Path) -> None:
    """Without `at_once` only the first call starts Spark."""
    with pytest.raises(ReconcileError), starting(tmp_path, at_once=False):
        raise ReconcileError("the topic does not exist")
    assert spark.happened == []
    spark.may_start.set()
    with starting(tmp_path, at_once=False) as waiting:
        waiting()
    assert spark.happened == ["started", "stopped", "JVM ended"]


SHOWN = """options {
  key: "kafka.bootstrap.servers"
  value: "broker:9092"
}
options {
  key: "%s"
  value: "a \\"hunter2\\" b\\n\\\\"
}
options {
  key: "minPartitions"
  value: "4"
}"""


def test_a_server_comes_from_the_spec_or_else_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The spec's server wins over the environment's, which a named master switches off."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    assert remote_of(SparkSettings()) is None
    monkeypatch.setenv("SPARK_REMOTE", "sc://there")
    assert remote_of(SparkSettings()) == "sc://there"
    assert remote_of(SparkSettings(remote="sc://here")) == "sc://here"
    assert remote_of(SparkSettings(master="local[1]")) is None


@pytest.mark.parametrize(
    "option",
    ["kafka.sasl.jaas.config", "kafka.ssl.keystore.password", "kafka.ssl.keystore.key", "password"],
)
def test_only_secrets_are_cut_out_of_a_request_s_text(option: str) -> None:
    """Values of secret options are cut out whole, also with escaped quotes; others stay."""
    shown = re.sub(REDACTED_TEXT, "-", SHOWN % option)
    assert shown == re.sub(r'  key: "\S+"\n  value: "a.*\n', "  -\n", SHOWN % option)
    assert "hunter2" not in shown
    assert "broker:9092" in shown


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "[RETRIES_EXCEEDED] The maximum number of retries has been exceeded.",
            "was lost during the run",
        ),
        (
            "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE",
            "was lost during the run",
        ),
        ("[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid.", "was lost during the run"),
        ("NoSuchAlgorithmException: PBES2 SecretKeyFactory not available", "encrypted PEM key"),
        ("Failed to find data source: kafka. Deploy the application", "no Kafka source"),
    ],
)
def test_errors_of_spark_are_reported_with_a_remedy(said: str, told: str) -> None:
    """Each known error of Spark has a message and a hint of pyconnect."""
    error = translated(said)
    assert told in error.message
    assert error.hint
