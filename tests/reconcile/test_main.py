"""The end of a run's own process."""

import json
from pathlib import Path

import pytest

from pyconnect_reconcile import __main__, job_runs
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Spec


def test_an_exception_that_nothing_expects_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected exception has the exit code of an undecided run; its trace goes to stderr."""
    spec = tmp_path / "spec.json"
    cluster = {"main": {"bootstrap": "b:9092"}}
    spec.write_text(json.dumps({"job": "ranges", "topics": ["t"], "clusters": cluster}))

    def broken(*_arguments: object) -> None:
        raise ValueError("unheard of")

    monkeypatch.setattr(__main__, "run_each", broken)
    monkeypatch.setattr(__main__.signal, "signal", lambda *_arguments: None)
    assert __main__.main([str(spec), "--report", str(tmp_path / "report"), "--events"]) == 11
    out, err = capsys.readouterr()
    event = json.loads(out)
    assert (event["event"], event["message"]) == ("error", "the run failed: ValueError: unheard of")
    assert "Traceback" in err


def test_a_spec_that_cannot_be_read_is_usage(tmp_path: Path) -> None:
    """Exit code 2 is for arguments and files; an undecided run has another code."""
    report = str(tmp_path / "report")
    assert __main__.main([str(tmp_path / "none.json"), "--report", report]) == 2


@pytest.mark.parametrize(
    ("codes", "combined"), [([0, 0], 0), ([0, 11], 11), ([11, 1], 1), ([0, 2, 11], 2)]
)
def test_a_difference_outweighs_runs_that_could_not_decide(codes: list[int], combined: int) -> None:
    """The exit code of several runs is 1 if any differs, whatever the others return."""
    assert __main__.combined(codes) == combined


def test_each_spec_needs_a_report_of_its_own(tmp_path: Path) -> None:
    """Two specs with one report directory are a usage error."""
    with pytest.raises(SystemExit) as ended:
        __main__.main(["a.json", "b.json", "--report", str(tmp_path)])
    assert ended.value.code == 2


def test_a_run_that_cannot_decide_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An undecided run reports its error and directory, and the next spec runs."""
    specs = []
    for name in ("one", "two"):
        spec = tmp_path / f"{name}.json"
        cluster = {"main": {"bootstrap": "b:9092"}}
        document = {"job": "ranges", "target": name, "topics": ["t"], "clusters": cluster}
        spec.write_text(json.dumps(document))
        specs.append(str(spec))

    def refused(spec: Spec, *_arguments: object) -> None:
        raise ReconcileError(f"{spec.target} is not there")

    monkeypatch.setattr(job_runs, "capture", refused)
    monkeypatch.setattr(__main__.signal, "signal", lambda *_arguments: None)
    directories = [str(tmp_path / "r1"), str(tmp_path / "r2")]
    reports = [part for directory in directories for part in ("--report", directory)]
    assert __main__.main([*specs, *reports, "--events"]) == 11
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    errors = [(e["message"], e["directory"]) for e in events if e["event"] == "error"]
    assert errors == [("one is not there", directories[0]), ("two is not there", directories[1])]
