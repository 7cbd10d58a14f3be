"""Runs one spec: snapshot, session, job, report. The only place that knows every job."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyconnect_reconcile.errors import ReconcileError, RecordsRemoved
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import Finding, Outcome, Severity, Verdict
from pyconnect_reconcile.report.contents import Report, arranged
from pyconnect_reconcile.report.files import make_directory, write_report
from pyconnect_reconcile.spark.session import spark_session
from pyconnect_reconcile.spec import COMPARES, MAIN, Side, Spec, TopicSide
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import Snapshot, narrowed

if TYPE_CHECKING:
    from pyconnect_reconcile.bench import Bench


def run(spec: Spec, directory: Path, events: Events) -> Verdict:
    """Do what the spec asks and write its report; ReconcileError when it could not tell."""
    from pyconnect_reconcile.spark.errors import spark_errors_translated

    make_directory(directory)
    started = time.time()
    events.step("taking the snapshot")
    snapshots = take_snapshots(spec)
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

            bench = Bench(spark=spark, spec=spec, snapshots=snapshots, events=events)
            outcome = check(bench, directory)
            report = _report(spec, snapshots, outcome, started, spark_version=spark.version)
            write_report(report, directory, spark)
    events.report(str(directory), report.verdict.word)
    return report.verdict


def _report(
    spec: Spec,
    snapshots: Mapping[str, Snapshot],
    outcome: Outcome,
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


def check(bench: Bench, directory: Path) -> Outcome:
    """Run the job of the spec; work files go below `directory`.

    Records that retention took from under the run are a finding; other failures of Spark raise
    ReconcileError.
    """
    from pyconnect_reconcile.spark.errors import spark_errors_translated

    try:
        with spark_errors_translated():
            outcome = _check(bench, directory)
    except RecordsRemoved as removed:
        finding = Finding(
            kind="removed-while-read", severity=Severity.UNKNOWN, message=removed.message
        )
        return Outcome(findings=(finding,), totals={finding.kind: 1})
    unusable = bench.schemas.findings()
    if not unusable:
        return outcome
    totals = {**outcome.totals, unusable[0].kind: len(unusable)}
    return replace(outcome, findings=(*unusable, *outcome.findings), totals=totals)


def _check(bench: Bench, directory: Path) -> Outcome:
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
            with tempfile.TemporaryDirectory(dir=directory, prefix=".work-") as work:
                return completeness.check(bench, Path(work))
        case job if job in COMPARES:
            with tempfile.TemporaryDirectory(dir=directory, prefix=".work-") as work:
                return compare.check(bench, Path(work))
        case other:
            raise ReconcileError(f"the job {other} is not known")


def take_snapshots(spec: Spec) -> dict[str, Snapshot]:
    """Return what the run reads, by cluster; saved ranges replace those of the main cluster."""
    snapshots: dict[str, Snapshot] = {}
    for name, topics in _topics(spec).items():
        view = ClusterView(spec.clusters[name])
        snapshot = view.snapshot(topics)
        since = dict(spec.since)
        if spec.since_ms is not None:
            since |= view.offsets_at(snapshot, spec.since_ms)
        snapshots[name] = narrowed(snapshot, since=since, until=spec.until)
    if spec.ranges is not None:
        snapshots[MAIN] = _replayed(spec.ranges, snapshots[MAIN])
    return snapshots


def _replayed(path: str, now: Snapshot) -> Snapshot:
    """Return saved ranges, after a look whether they can still be read."""
    from pyconnect_reconcile.checks.ranges import load_snapshot

    saved = load_snapshot(path).of_topics([topic.topic for topic in now.topics])
    ids = {topic.topic: topic.topic_id for topic in now.topics}
    for topic in saved.topics:
        if ids[topic.topic] != topic.topic_id:
            raise ReconcileError(
                f"{topic.topic} was created anew since these ranges were saved",
                hint="run it without --ranges",
            )
    known = {topic.topic for topic in saved.topics}
    if missing := sorted(ids.keys() - known):
        raise ReconcileError(f"{path} has no ranges of {', '.join(missing)}")
    return saved


def _topics(spec: Spec) -> dict[str, tuple[str, ...]]:
    """Return which topics the run reads, by cluster."""
    wanted: dict[str, dict[str, None]] = {}
    sides: list[Side | None] = [tier.side for tier in spec.tiers]
    if spec.job in COMPARES:
        sides += [spec.left, spec.right, spec.arrived]
    for side in sides:
        if isinstance(side, TopicSide):
            wanted.setdefault(side.cluster, {}).update(dict.fromkeys(side.topics))
    if not wanted and spec.topics:
        wanted[MAIN] = dict.fromkeys(spec.topics)
    if spec.offsets is not None:
        internal = [spec.offsets.worker, *spec.offsets.connectors.values()]
        internal += [name for name in (spec.offsets.config, spec.offsets.status) if name]
        wanted.setdefault(MAIN, {}).update(dict.fromkeys(internal))
    return {cluster: tuple(names) for cluster, names in wanted.items()}
