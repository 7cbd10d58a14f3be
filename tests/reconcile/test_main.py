"""How a run's own process ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyconnect_reconcile import __main__


def test_an_exception_that_nothing_expects_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status is not that of a difference; the trace goes to standard error, the log."""
    spec = tmp_path / "spec.json"
    cluster = {"main": {"bootstrap": "b:9092"}}
    spec.write_text(json.dumps({"job": "ranges", "topics": ["t"], "clusters": cluster}))

    def broken(*_arguments: object) -> None:
        raise ValueError("unheard of")

    monkeypatch.setattr(__main__, "run", broken)
    monkeypatch.setattr(__main__.signal, "signal", lambda *_arguments: None)
    assert __main__.main([str(spec), "--report", str(tmp_path / "report"), "--events"]) == 11
    out, err = capsys.readouterr()
    event = json.loads(out)
    assert (event["event"], event["message"]) == ("error", "the run failed: ValueError: unheard of")
    assert "Traceback" in err


def test_a_spec_that_cannot_be_read_is_usage(tmp_path: Path) -> None:
    """Exit 2 is for arguments and files; an undecided run has a code of its own."""
    report = str(tmp_path / "report")
    assert __main__.main([str(tmp_path / "none.json"), "--report", report]) == 2
