"""Runs of `pyconnect reconcile` that end without a report."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.cases import cases


@cases(
    "ending, said",
    ("exit 1", "ended with exit status 1"),
    ("exit 2", "ended with exit status 2"),
    ("kill -9 $$", "was killed by signal 9"),
)
def test_a_run_without_a_report_names_its_end_and_the_log(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, said: str
) -> None:
    """A process without a report is exit 11 with its status and the last lines of its log."""
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\necho first >&2\necho 'No space left' >&2\n{ending}\n")
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    outcome = run("reconcile", "ranges", "t", "--kafka-bootstrap", "b:9092", code=11)
    assert f"the Spark process {said} without a report" in outcome.err
    assert "the last lines of spark.log: first / No space left" in outcome.err
