"""Runs one spec: snapshot, session, job, report. The only place that knows every job."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyconnect_reconcile.capture import capture
from pyconnect_reconcile.errors import ReconcileError, RecordsRemoved
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import CheckOutcome, Finding, Severity, Verdict
from pyconnect_reconcile.report.contents import Report, arranged
from pyconnect_reconcile.report.files import make_directory, write_report
from pyconnect_reconcile.spark.session import spark_session
from pyconnect_reconcile.spec import COMPARES, MAIN, Spec
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot

if TYPE_CHECKING:
    from pyconnect_reconcile.bench import Bench


def run(spec: Spec, directory: Path, events: Events) -> Verdict:
    """Do what the spec asks and write its report; ReconcileError when it could not tell."""
    from pyconnect_reconcile.spark.errors import spark_errors_translated

    make_directory(directory)
    started = time.time()
    events.step("taking the snapshot")
    # Copies of files lie where executors and a Spark Connect server see them, too.
    with tempfile.TemporaryDirectory(dir=directory, prefix=".work-") as copies:
        captured = capture(spec, Path(copies))
        snapshots = captured.snapshots
        if spec.job == "ranges":
            from pyconnect_reconcile.checks import ranges

            outcome = ranges.check(spec, snapshots[MAIN])
            report = _report(spec, snapshots, outcome, started, spark_version="")
            write_report(report, directory, None)
        else:
            events.step("starting Spark")
            with (
                tempfile.TemporaryDirectory(prefix="pyconnect-spark-") as work,
                spark_errors_translated(),
                spark_session(
                    spec.spark,
                    app_name=f"pyconnect reconcile {spec.job} {spec.target}".rstrip(),
                    work_directory=Path(work),
                    events=events,
                ) as spark,
            ):
                from pyconnect_reconcile.bench import Bench

                bench = Bench(
                    spark=spark,
                    spec=spec,
                    snapshots=snapshots,
                    events=events,
                    files=captured.files,
                )
                outcome = check(bench)
                report = _report(spec, snapshots, outcome, started, spark_version=spark.version)
                write_report(report, directory, spark)
    events.report(str(directory), report.verdict.word)
    return report.verdict


def _report(
    spec: Spec,
    snapshots: Mapping[str, TopicsSnapshot],
    outcome: CheckOutcome,
    started: float,
    *,
    spark_version: str,
) -> Report:
    return Report(
        spec=spec,
        snapshots=snapshots,
        outcome=arranged(outcome, hide_keys=spec.hide_keys),
        started_ms=int(started * 1000),
        duration_ms=int((time.time() - started) * 1000),
        spark_version=spark_version,
    )


def check(bench: Bench) -> CheckOutcome:
    """Run the job of the spec.

    Records that retention took from under the run are a finding; other failures of Spark raise
    ReconcileError.
    """
    from pyconnect_reconcile.spark.errors import spark_errors_translated

    try:
        with spark_errors_translated():
            outcome = _check(bench)
    except RecordsRemoved as removed:
        finding = Finding(
            kind="removed-while-read", severity=Severity.UNKNOWN, message=removed.message
        )
        return CheckOutcome(findings=(finding,), totals={finding.kind: 1})
    unusable = bench.schemas.findings()
    if not unusable:
        return outcome
    totals = {**outcome.totals, unusable[0].kind: len(unusable)}
    return replace(outcome, findings=(*unusable, *outcome.findings), totals=totals)


def _check(bench: Bench) -> CheckOutcome:
    from pyconnect_reconcile.checks import (
        compare,
        completeness,
        duplicates,
        offsets,
        sequence,
        transactions,
    )

    match bench.spec.job:
        case "transactions":
            return transactions.check(bench)
        case "sequence":
            return sequence.check(bench)
        case "duplicates":
            return duplicates.check(bench)
        case "offsets":
            return offsets.check(bench)
        case "completeness":
            return completeness.check(bench)
        case job if job in COMPARES:
            return compare.check(bench)
        case other:
            raise ReconcileError(f"`{other}` is not a known job")
