"""Every end of a batch reports every object: done, failed, unknown or not tried."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pyconnect_cli.render.outcomes import BatchRecord, ObjectResult, Outcome, summary
from pyconnect_cli.session import Session
from tests.cli.conftest import Outcome as Ended
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

CLI = Path(__file__).resolve().parents[2] / "cli"
HANGS = "PUT /connectors/b/pause"

pytestmark = pytest.mark.wire


def done(name: str) -> ObjectResult:
    return ObjectResult(name=name, action="paused", outcome=Outcome.DONE)


def test_records_are_true_at_any_moment_and_hundreds_have_time(environ: dict[str, str]) -> None:
    """A started change without a result is unknown; the default limit grows with the objects."""
    record = BatchRecord("pause", ["a", "b", "c"])
    assert record.begin(0)
    record.end(0, done("a"))
    assert record.begin(1)
    record.close()
    record.end(1, done("b"))
    assert not record.begin(2)
    assert [result.outcome for result in record.results()] == ["done", "unknown", "not-tried"]
    assert summary(record.results()) == "1 of 3 may have taken effect: b; not tried: c"
    session = Session(environ)
    session.allow_for(300)
    assert session.budget.remaining_s() > 3000
    limited = Session({**environ, "PYCONNECT_TIMEOUT": "5s"})
    limited.allow_for(300)
    assert limited.budget.remaining_s() <= 5


@pytest.fixture
def connect() -> FakeConnect:
    """Return a server with connectors a to d, where b's pause hangs until the end of the test."""
    names = ("a", "b", "c", "d")
    return FakeConnect(
        connectors={name: FakeConnector(config={"name": name}) for name in names},
        slow={HANGS: threading.Event()},
    )


@pytest.fixture
def hang(connect: FakeConnect) -> Any:
    yield
    connect.slow[HANGS].set()


def outcomes(results: list[dict[str, Any]]) -> dict[str, str]:
    return {result["name"]: result["outcome"] for result in results}


EXPECTED = {"a": "done", "b": "unknown", "c": "not-tried", "d": "not-tried"}


def pause_all(run: Run, *options: str) -> Ended:
    return run("connectors", "pause", "a", "b", "c", "d", *options)


@pytest.mark.usefixtures("hang")
@cases("limit", "--timeout", "--deadline")
def test_nothing_starts_late(run: Run, connect: FakeConnect, tmp_path: Path, limit: str) -> None:
    """After --timeout or --deadline no change starts, and all outputs have the same counts."""
    textfile = tmp_path / "run.prom"
    outcome = pause_all(run, limit, "4s", "-o", "json", "--textfile", str(textfile))
    assert outcome.code == 124, outcome.err
    assert outcomes(json.loads(outcome.out)) == EXPECTED
    assert [connect.connectors[name].state for name in "cd"] == ["RUNNING", "RUNNING"]
    text = textfile.read_text()
    for name, count in (("succeeded", 1), ("failed", 0), ("unknown", 1), ("not_tried", 2)):
        assert any(
            line.startswith(f"pyconnect_run_objects_{name}{{") and line.endswith(f" {count}")
            for line in text.splitlines()
        )


@pytest.mark.usefixtures("hang")
def test_the_summary_of_a_run_that_was_ended_has_every_object(run: Run) -> None:
    """The summary and the printed lines of a run that was ended have every object."""
    outcome = pause_all(run, "--deadline", "4s", "--summary-json")
    assert outcome.code == 124
    document = json.loads(outcome.out)
    assert outcomes(document["results"]) == EXPECTED
    counts = [document[name] for name in ("succeeded", "failed", "unknown", "not_tried")]
    assert counts == [1, 0, 1, 2]
    outcome = pause_all(run, "--timeout", "4s")
    assert outcome.code == 124
    assert outcome.out == "a: paused\n"
    assert "may have taken effect; now: it is RUNNING with tasks 0:RUNNING" in outcome.err
    assert "not tried: c, d" in outcome.err
    assert "the time of --timeout is over: 1 of 4 may have taken effect: b" in outcome.err


@pytest.mark.usefixtures("hang")
def test_an_unanswered_change_is_done_if_the_state_says(run: Run, connect: FakeConnect) -> None:
    """A change without an answer is done if the connector has the new state."""
    connect.connectors["b"].enter("PAUSED")
    outcome = pause_all(run, "--request-timeout", "3s")
    assert outcome.code == 0, outcome.err
    assert "b: paused (it is PAUSED with tasks 0:PAUSED; the worker did not" in outcome.out


@pytest.mark.usefixtures("hang")
def test_one_unanswered_change_does_not_end_the_batch(run: Run, connect: FakeConnect) -> None:
    """A change without an answer is unknown, and the batch continues: exit 8."""
    outcome = pause_all(run, "--request-timeout", "3s", "-o", "ndjson")
    assert outcome.code == 8
    found = outcomes([json.loads(line) for line in outcome.out.splitlines()])
    assert found == {"a": "done", "b": "unknown", "c": "done", "d": "done"}


@pytest.mark.usefixtures("hang")
@cases("form", "-o json", "--summary-json")
def test_a_run_that_a_signal_ends_reports_every_object(
    connect: FakeConnect, url: str, environ: dict[str, str], form: str
) -> None:
    """SIGTERM is exit 130 with every object; a second signal does not wait for requests."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pyconnect_cli", "connectors", "pause", *"abcd", *form.split()],
        cwd=CLI,
        env={**environ, "PYCONNECT_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    eventually(lambda: HANGS in connect.requests)
    process.send_signal(signal.SIGTERM)
    if form == "-o json":
        assert b"waiting for the requests under way" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
    else:
        connect.slow[HANGS].set()
    out, err = process.communicate(timeout=400)
    assert process.returncode == 130, err
    document = json.loads(out)
    results = document if form == "-o json" else document["results"]
    expected = EXPECTED if form == "-o json" else {**EXPECTED, "b": "done"}
    assert outcomes(results) == expected
