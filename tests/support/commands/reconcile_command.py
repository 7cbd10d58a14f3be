"""`pyconnect reconcile` as a process of its own, and its report."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.commands.processes import python_environment, run_python

RUN_S, RUNS_S = 300.0, 900.0
# Settings of local sessions: no test runs long enough to profit from more compilation.
QUICK_CONF = {
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "4",
}
QUICK = tuple(part for key, value in QUICK_CONF.items() for part in ("--conf", f"{key}={value}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a run; `report` is its report.json, None without one."""

    code: int
    out: str
    err: str
    report: Mapping[str, Any] | None
    directory: Path

    @property
    def found(self) -> list[tuple[str, list[tuple[str | int, int]]]]:
        """Return (kind, places) of each finding but notes; a place is (partition or file, n)."""
        assert self.report is not None, self.err
        return [
            (
                finding["kind"],
                [
                    (Path(copy["file"]).name, copy["row"])
                    if copy.get("file")
                    else (copy["partition"], copy["offset"])
                    for copy in finding.get("copies", ())
                ],
            )
            for finding in self.report["findings"]
            if finding["severity"] != "note"
        ]


class Reconcile:
    """Runs of audits, each with its own report directory below `directory`."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.directory = directory
        self._environment = environment
        self._count = 0
        self._reports: dict[int, Path] = {}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a run and leave it running."""
        self._count += 1
        report = self.directory / f"report-{self._count}"
        state = {"XDG_STATE_HOME": str(self.directory / "state"), "NO_COLOR": "1"}
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pyconnect_cli", "reconcile", *arguments),
                *("--report", str(report)),
            ],
            env=python_environment({**os.environ, **state, **self._environment}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reports[process.pid] = report
        return process

    def end(self, process: subprocess.Popen[str]) -> Ended:
        """Wait for the end of a run; no run may print a stack trace, whatever its findings."""
        out, err = process.communicate(timeout=RUN_S)
        return _ended(process.returncode, out, err, self._reports.pop(process.pid))

    def __call__(self, *arguments: str) -> Ended:
        """Run a job to its end."""
        return self.end(self.start(*arguments))


def run_specs(
    specs: Sequence[Mapping[str, object]],
    directory: Path,
    environment: Mapping[str, str] = os.environ,
) -> list[Ended]:
    """Run specs in one process with one session of Spark; all get its exit code.

    Separate processes would spend most of their time on starting Python and a session.
    """
    arguments = ["-m", "pyconnect_reconcile", *written_specs(specs, directory)]
    return ended_runs(run_python(arguments, environment, RUNS_S), len(specs), directory)


def written_specs(specs: Sequence[Mapping[str, object]], directory: Path) -> list[str]:
    """Write specs to a new directory; return the arguments of a process that runs them."""
    directory.mkdir()
    files = [directory / f"spec-{number}.json" for number in range(len(specs))]
    for file, spec in zip(files, specs, strict=True):
        file.write_text(json.dumps(spec))
    reports = [part for report in _reports(len(specs), directory) for part in ("--report", report)]
    return [*map(str, (*files, *reports))]


def ended_runs(done: subprocess.CompletedProcess[str], count: int, directory: Path) -> list[Ended]:
    """Return the ends of the specs of `written_specs` after a process has run them."""
    return [
        _ended(done.returncode, done.stdout, done.stderr, report)
        for report in _reports(count, directory)
    ]


def _reports(count: int, directory: Path) -> list[Path]:
    return [directory / f"report-{number}" for number in range(count)]


def _ended(code: int, out: str, err: str, directory: Path) -> Ended:
    assert "Traceback" not in out + err
    assert "\tat " not in out + err
    document = directory / "report.json"
    report = json.loads(document.read_text()) if document.exists() else None
    return Ended(code=code, out=out, err=err, report=report, directory=directory)
