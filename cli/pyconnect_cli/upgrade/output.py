"""The display of plans and runs of upgrades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pyconnect_cli.render.tables import Column, worker_column
from pyconnect_cli.session import Session
from pyconnect_cli.upgrade.perform import last_runs
from pyconnect_cli.upgrade.plan.checks import PlanFinding
from pyconnect_cli.upgrade.plan.model import UpgradedWorker
from pyconnect_cli.upgrade.plan.planning import Plan
from pyconnect_cli.upgrade.plan.run import Run


def run_detail(run: Run) -> str:
    """Return the reason of a halt, or the workers that are being changed."""
    if run.halted is not None:
        return run.halted.reason
    return f"under way: {', '.join(sorted(run.steps))}" if run.steps else ""


WORKER_COLUMNS: Sequence[Column[UpgradedWorker]] = (
    worker_column(lambda worker: worker.url),
    Column("KIND", lambda worker: worker.kind),
    Column("VERSION", lambda worker: worker.version or "-"),
    Column("PHASE", lambda worker: worker.phase_text),
    Column("LEADER", lambda worker: "yes" if worker.leader else ""),
    Column("CHANGED-BY", lambda worker: worker.means),
)
RUN_COLUMNS: Sequence[Column[Run]] = (
    Column("GROUP", lambda run: run.started.group_id),
    Column("TARGET", lambda run: run.started.target),
    Column("STATE", lambda run: run.state),
    Column("RUN", lambda run: run.started.run_id, whole=True),
    Column("CLUSTER", lambda run: run.started.cluster_id, wide=True),
    Column("DETAIL", run_detail, prose=True),
)


def show_plan(session: Session, plan: Plan, *, replaces: Run | None) -> None:
    """Print the workers, the rolling restarts, the notes and the findings."""
    output = session.output
    output.listing(
        WORKER_COLUMNS,
        plan.view.workers,
        document={
            "group": plan.view.group_id,
            "kafka_cluster_id": plan.view.cluster_id,
            "target": plan.wish.target,
            "allowed": not plan.refused,
            "rollings": [
                {"rolling": str(leg), "order": [worker.url for worker in plan.order(leg)]}
                for leg in plan.legs
            ],
            "workers": [
                {
                    "url": worker.url,
                    "kind": worker.kind,
                    "version": worker.version,
                    "phase": worker.phase_text,
                    "phase_source": worker.source,
                    "leader": worker.leader,
                    "fences": worker.fences,
                    "changed_by": worker.means,
                }
                for worker in plan.view.workers
            ],
            "refusals": [asdict(finding) for finding in plan.refused],
            "warnings": [asdict(finding) for finding in plan.warnings],
            "notes": list(plan.notes),
        },
        empty="no workers",
    )
    if replaces is not None:
        output.warning(
            f"run {replaces.started.run_id} to {replaces.started.target} is unfinished"
            f" ({replaces.state.lower()}); this run replaces it"
        )
    for finding in plan.warnings:
        output.warning(_text(finding))
    for finding in plan.refused:
        output.message(f"refused: {_text(finding)}", style="bad")
    if plan.refused:
        return
    if not plan.legs:
        output.message(f"every worker is {plan.wish.target} already")
    for leg in plan.legs:
        order = ", then ".join(worker.url for worker in plan.order(leg))
        manner = (
            "all workers stopped first"
            if plan.wish.full_stop and not leg.replace
            else "one worker at a time"
        )
        output.message(f"{leg}, {manner}: {order}")
    for note in plan.notes:
        output.message(f"note: {note}")


def runs(session: Session, directory: Path) -> None:
    """List the last run of each journal."""
    found, broken = last_runs(directory)
    for reason in broken:
        session.output.warning(reason)
    session.output.listing(
        RUN_COLUMNS,
        found,
        document=[
            {
                "run_id": run.started.run_id,
                "group": run.started.group_id,
                "kafka_cluster_id": run.started.cluster_id,
                "target": run.started.target,
                "state": run.state,
                "leg": None if run.leg is None else str(run.leg),
                "verified": sorted(run.verified),
                "under_way": sorted(run.steps),
                "reason": None if run.halted is None else run.halted.reason,
                "hint": None if run.halted is None else run.halted.hint,
            }
            for run in found
        ],
        names=[run.started.run_id for run in found],
        empty="this user has not run an upgrade on this host",
    )


def _text(finding: PlanFinding) -> str:
    return f"{finding.message} ({finding.hint})" if finding.hint else finding.message
