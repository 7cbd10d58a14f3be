"""`pyconnect reconcile` as a process of its own, and the report that it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes import python_environment

RUN_S = 300.0
# Settings of local sessions: nothing in tests runs long enough for better compilation.
QUICK = tuple(
    part
    for setting in (
        "spark.driver.memory=1g",
        "spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=1",
        "spark.sql.codegen.wholeStage=false",
        "spark.sql.codegen.factoryMode=NO_CODEGEN",
    )
    for part in ("--conf", setting)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended; `report` is its report.json, None when it left none."""

    code: int
    out: str
    err: str
    report: Mapping[str, Any] | None
    directory: Path

    @property
    def found(self) -> list[tuple[str, list[tuple[str | int, int]]]]:
        """(kind, places) of each finding that is no note; a place is (partition or file, n)."""
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
    """Starts runs; each has a report directory of its own below `directory`."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.directory = directory
        self._environment = environment
        self._count = 0
        self._reports: dict[int, Path] = {}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one and leave it running."""
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
        """Wait for its end; no run may show a stack trace, whatever it found."""
        out, err = process.communicate(timeout=RUN_S)
        assert "Traceback" not in out + err
        assert "\tat " not in out + err
        directory = self._reports.pop(process.pid)
        document = directory / "report.json"
        report = json.loads(document.read_text()) if document.exists() else None
        return Ended(code=process.returncode, out=out, err=err, report=report, directory=directory)

    def __call__(self, *arguments: str) -> Ended:
        """Run one to its end."""
        return self.end(self.start(*arguments))
