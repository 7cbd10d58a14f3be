"""Runs reconciliation jobs within the tests' process and returns their findings."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from pyspark.sql import SparkSession

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.capture import capture, continued
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import CheckOutcome, Finding, Severity, Verdict, verdict_of
from pyconnect_reconcile.job_runs import check, check_ranges
from pyconnect_reconcile.report.contents import Report, arranged, write_report
from pyconnect_reconcile.spec import MAIN, read_spec

Place = tuple[int | None, int | None]


class Steps(Events):
    """Events that report the name of each step of a run when the step begins."""

    def __init__(self, began: Callable[[str], None]) -> None:
        super().__init__(machine=True, stream=io.StringIO())
        self._began = began

    def step(self, text: str) -> None:
        self._began(text)


class Audit:
    """Spark, a broker and a directory; `run` is one job."""

    def __init__(self, spark: SparkSession, bootstrap: str, directory: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.directory = directory

    def run(
        self,
        job: str,
        *,
        began: Callable[[str], None] = lambda step: None,
        report: Path | None = None,
        **members: object,
    ) -> Answer:
        """Run a job with these members of a spec; the broker is the session's.

        The run calls `began` with the name of each step and waits for it. The report is written to
        `report`, a new directory.
        """
        clusters = {"main": {"bootstrap": self.bootstrap}}
        spec = read_spec({"version": 1, "job": job, "clusters": clusters} | members)
        with tempfile.TemporaryDirectory(dir=self.directory) as work:
            captured = capture(spec, Path(work), lambda: self.spark)
            snapshots = captured.snapshots
            if job == "ranges":
                return Answer(check_ranges(spec, snapshots[MAIN]))
            bench = Bench(
                spark=self.spark,
                spec=captured.spec,
                snapshots=snapshots,
                events=Steps(began),
                files=captured.files,
                tables=captured.tables,
                begun_ms=captured.begun_ms,
            )
            outcome = continued(check(bench), captured.base, snapshots)
            answer = Answer(arranged(outcome, hide_keys=spec.hide_keys))
            if report is not None:
                report.mkdir()
                whole = Report(
                    spec=captured.spec,
                    snapshots=snapshots,
                    base=captured.base,
                    iceberg=captured.iceberg,
                    digests=captured.digests,
                    outcome=answer.outcome,
                    started_ms=int(time.time() * 1000),
                    duration_ms=0,
                    spark_version=self.spark.version,
                )
                write_report(whole, report, parquet=False)
            return answer


class Answer:
    """The result of a job, in the forms that tests compare."""

    def __init__(self, outcome: CheckOutcome) -> None:
        self.outcome = outcome

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.outcome.findings)

    def of(self, kind: str) -> list[Finding]:
        return [finding for finding in self.outcome.findings if finding.kind == kind]

    def kinds(self) -> set[str]:
        """Return the kinds of the findings that are not notes."""
        found = self.outcome.findings
        return {each.kind for each in found if each.severity is not Severity.NOTE}

    def intervals(self, kind: str) -> set[tuple[str | None, int | None, int | None]]:
        """Return (group, first, last) of each finding of a kind."""
        return {(each.group, each.first, each.last) for each in self.of(kind)}

    def places(self, kind: str) -> set[frozenset[Place]]:
        """Return the (partition, offset) pairs of the copies, for each finding of a kind."""
        return {
            frozenset((copy.partition, copy.offset) for copy in each.copies)
            for each in self.of(kind)
        }

    def rows(self, kind: str) -> set[int | None]:
        """Return the lines of files in the findings of a kind."""
        return {copy.row for each in self.of(kind) for copy in each.copies if copy.file}


def no_table() -> NoReturn:
    """Replace Spark for a capture without tables, which does not need it."""
    raise AssertionError("there is no table to copy")
