"""Runs specs: snapshot, session, job, report. The only module that knows every job.

ranges: offsets and topic ids against the last saved run; it reads no records of the topics.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyconnect_reconcile.capture import (
    Capture,
    capture,
    continued,
    copies_rows,
    load_snapshot,
    require_cluster,
)
from pyconnect_reconcile.errors import InvalidQuestion, NotAuditable, ReconcileError, RecordsRemoved
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import CheckOutcome, Finding, Severity, Verdict, unknown
from pyconnect_reconcile.report.contents import Report, arranged, make_directory, write_report
from pyconnect_reconcile.sessions import starting_session
from pyconnect_reconcile.spec import COMPARES, MAIN, Spec
from pyconnect_reconcile.topics.range_findings import (
    against_previous,
    hanging,
    open_tails,
    without_previous,
)
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot, read_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyconnect_reconcile.bench import Bench


# transaction.max.timeout.ms of brokers, 15 minutes: the coordinator aborts older transactions.
HANGING_MS = 15 * 60 * 1000


def check_ranges(spec: Spec, snapshot: TopicsSnapshot) -> CheckOutcome:
    """Compare a snapshot with the previous one, if there is one."""
    before = previous_snapshot(spec, snapshot)
    # This job audits no record, so an open transaction with known producers is only a note.
    named = {(part.topic, part.partition) for part in snapshot.partitions if part.open_producers}
    findings: list[Finding] = [
        *(
            replace(finding, severity=Severity.NOTE)
            if finding.kind == "open-transaction" and (finding.topic, finding.partition) in named
            else finding
            for finding in open_tails(snapshot)
        ),
        *hanging(snapshot, older_than_ms=HANGING_MS),
        *without_previous(snapshot, before),
    ]
    if before is not None:
        findings += against_previous(snapshot, before)
    return CheckOutcome(
        findings=tuple(findings),
        counts={
            "offsets": snapshot.length,
            "partitions": len(snapshot.partitions),
            "open_offsets": sum(part.open_tail for part in snapshot.partitions),
        },
    )


def previous_snapshot(spec: Spec, now: TopicsSnapshot) -> TopicsSnapshot | None:
    """Return `spec.previous`, else the newest earlier snapshot of the same cluster and target.

    Names of files prove nothing: a report of another cluster or target may have a similar name.
    """
    if spec.previous is not None:
        before = load_snapshot(spec.previous)
        require_cluster(spec.previous, before, now)
        return before
    for path in spec.earlier:
        with suppress(OSError, ValueError, ReconcileError):
            document = json.loads(Path(path).read_text("utf-8"))
            before = read_snapshot(document)
            if (document["target"], before.cluster_id) == (spec.target, now.cluster_id):
                return before
    return None


def run_each(runs: Sequence[tuple[Spec, Path]], events: Events) -> list[int]:
    """Run specs one after the other in one session; return their exit codes.

    Each run writes the report of its directory; one that cannot decide does not stop the others. If
    capturing the input takes long, Spark starts at once. Otherwise a capture that fails, such as
    for a topic that does not exist, starts no JVM.
    """
    specs = [spec for spec, _ in runs]
    if any(spec.spark != specs[0].spark for spec in specs):
        raise ReconcileError("specs that run together must have the same `spark`")
    targets = ",".join(spec.target for spec in specs)
    codes = []
    with ExitStack() as stack:
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyconnect-spark-"))
        started = stack.enter_context(
            starting_session(
                specs[0].spark,
                app_name=f"pyconnect reconcile {specs[0].job} {targets}".rstrip(),
                work_directory=Path(work),
                events=events,
                at_once=any(map(copies_rows, specs)),
            )
        )

        @cache
        def session() -> SparkSession:
            events.step("starting Spark")
            return started()

        for spec, directory in runs:
            try:
                codes.append(_run(spec, directory, events, session).value)
            except ReconcileError as error:
                events.error(error.message, error.hint, str(directory))
                codes.append(error.exit_code)
    return codes


def _run(
    spec: Spec, directory: Path, events: Events, session: Callable[[], SparkSession]
) -> Verdict:
    """Run the job of the spec and write its report.

    If the run fails, the report has the reason, and the error is raised again.
    """
    make_directory(directory)
    started = time.time()
    try:
        events.step("taking the snapshot")
        # Executors and a Spark Connect server see the report's directory, too.
        with tempfile.TemporaryDirectory(dir=directory, prefix=".work-") as copies:
            captured = capture(spec, Path(copies), session)
            if spec.job == "ranges":
                outcome = check_ranges(captured.spec, captured.snapshots[MAIN])
                report = _report(captured, outcome, started, spark_version="")
            else:
                spark = session()
                from pyconnect_reconcile.bench import Bench
                from pyconnect_reconcile.errors import spark_errors_translated

                with spark_errors_translated():
                    bench = Bench(
                        spark=spark,
                        spec=captured.spec,
                        snapshots=captured.snapshots,
                        events=events,
                        files=captured.files,
                        tables=captured.tables,
                        begun_ms=captured.begun_ms,
                    )
                    outcome = continued(check(bench), captured.base, captured.snapshots)
                report = _report(captured, outcome, started, spark_version=spark.version)
            write_report(report, directory, parquet=spec.job != "ranges")
    except InvalidQuestion:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        if isinstance(error, ReconcileError):
            message = error.message + (f" ({error.hint})" if error.hint else "")
        captured = Capture(spec=spec, snapshots={}, files={}, tables={})
        failed = _report(captured, _undecided("failed", message), started, spark_version="")
        write_report(failed, directory, parquet=False)
        raise
    events.report(str(directory), report.verdict.word)
    return report.verdict


def _undecided(kind: str, message: str) -> CheckOutcome:
    finding = unknown(kind=kind, message=message)
    return CheckOutcome(findings=(finding,), totals={kind: 1})


def _report(
    captured: Capture, outcome: CheckOutcome, started: float, *, spark_version: str
) -> Report:
    return Report(
        spec=captured.spec,
        snapshots=captured.snapshots,
        iceberg=captured.iceberg,
        digests=captured.digests,
        base=captured.base,
        outcome=arranged(outcome, hide_keys=captured.spec.hide_keys),
        started_ms=int(started * 1000),
        duration_ms=int((time.time() - started) * 1000),
        spark_version=spark_version,
    )


def check(bench: Bench) -> CheckOutcome:
    """Run the job of the spec.

    Records or topics that were removed during the run are a finding, and so is data that the job
    cannot audit; other failures of Spark raise ReconcileError.
    """
    from pyconnect_reconcile.checks import (
        compare,
        completeness,
        duplicates,
        offsets,
        sequence,
        transactions,
    )
    from pyconnect_reconcile.errors import spark_errors_translated

    jobs = {
        "transactions": transactions.check,
        "sequence": sequence.check,
        "duplicates": duplicates.check,
        "offsets": offsets.check,
        "completeness": completeness.check,
        **dict.fromkeys(COMPARES, compare.check),
    }
    try:
        with spark_errors_translated():
            outcome = jobs[bench.spec.job](bench)
            bench.require_same_topics()
    except RecordsRemoved as removed:
        return _undecided("removed-while-read", removed.message)
    except NotAuditable as refused:
        reason = refused.message + (f" ({refused.hint})" if refused.hint else "")
        return _undecided("not-audited", reason)
    unusable = bench.schemas.findings()
    if not unusable:
        return outcome
    totals = {**outcome.totals, unusable[0].kind: len(unusable)}
    return replace(outcome, findings=(*unusable, *outcome.findings), totals=totals)
