"""The rolling restarts for a view of a cluster and a wish, or the reasons against them. Pure.

The ways up: disabled → preparing → enabled, each in a separate run, because exactly-once is only
safe when every possible leader writes transactionally before the first task relies on it. The way
down takes two rolling restarts, or one with --direct. --full-stop allows any change: no worker runs
meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyconnect_cli.upgrade.plan.checks import PhaseWish, PlanFinding, findings
from pyconnect_cli.upgrade.plan.model import PhaseSource, UpgradedWorker, View
from pyconnect_cli.upgrade.plan.run import Inventoried, Leg, Started
from pyconnect_clients.connect_names import Phase

DISABLED, PREPARING, ENABLED = Phase.DISABLED, Phase.PREPARING, Phase.ENABLED


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan; without legs there is nothing to do. `notes`: effects on others."""

    view: View
    wish: PhaseWish
    legs: tuple[Leg, ...]
    findings: tuple[PlanFinding, ...]
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[PlanFinding, ...]:
        """The findings that forbid the plan; empty if it may be carried out."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def warnings(self) -> tuple[PlanFinding, ...]:
        return tuple(finding for finding in self.findings if not finding.blocks)

    def order(self, leg: Leg) -> tuple[UpgradedWorker, ...]:
        """The workers of a rolling restart in their present order: followers, then the leader."""
        chosen = [
            worker
            for worker in self.view.workers
            if (not self.wish.only or worker.url in self.wish.only)
            and (leg.replace or len(self.legs) > 1 or worker.phase is not leg.target)
        ]
        return tuple(sorted(chosen, key=lambda worker: worker.leader))

    def started(self, run_id: str, tool_version: str) -> Started:
        """Return the first entry of the run's journal."""
        view, wish = self.view, self.wish
        return Started(
            run_id=run_id,
            group_id=view.group_id,
            cluster_id=view.cluster_id,
            target=wish.target,
            legs=self.legs,
            inventory=tuple(
                Inventoried(
                    url=worker.url,
                    version=worker.version,
                    phase=worker.phase_text,
                    config_sha256=worker.config_sha256,
                )
                for worker in view.workers
            ),
            protocol=view.protocol,
            tool_version=tool_version,
            full_stop=wish.full_stop,
            hard=wish.hard,
            only=wish.only,
            failed=tuple(sorted(view.failed())),
            accepted=tuple(finding.message for finding in self.warnings),
        )


def make_plan(view: View, wish: PhaseWish) -> Plan:
    seen = tuple(
        replace(worker, phases=frozenset({PREPARING}))
        if wish.declared and worker.source is PhaseSource.INFERRED and worker.phase is None
        else worker
        for worker in view.workers
        if worker.reachable
    )
    legs, problem = _legs(seen, wish)
    found = findings(view, wish)
    if problem is not None:
        found = (problem, *found)
    notes = []
    if any(leg.target is ENABLED for leg in legs):
        notes.append(
            "exactly-once begins when the last worker is enabled and every process that"
            " ran plain tasks has ended; earlier duplicates stay. Consumers must then"
            " read with isolation.level=read_committed."
        )
    down = [leg for leg in legs if leg.start is ENABLED and leg.target is not ENABLED]
    if down:
        notes.append(
            "exactly-once ends with the first worker of this downgrade; delivery is at"
            " least once from then on. Consumers may keep read_committed; they must"
            " accept repeated records."
        )
        if own := sorted({s.offsets_topic for s in view.sources if s.offsets_topic}):
            notes.append(
                f"connectors' own offsets topics ({', '.join(own)}) stay in use, in every phase;"
                " their newest offsets are copied to the workers' topic."
            )
    if any(leg.replace for leg in legs):
        notes.append(
            "software before 3.3 ignores connectors' own offsets topics: it continues"
            " from the copies in the workers' topic, which may be older, so records"
            " repeat. Its log reports errors about tasks-fencing records at each start;"
            " they are harmless."
        )
    return Plan(view=view, wish=wish, legs=legs, findings=found, notes=tuple(notes))


def _legs(
    workers: tuple[UpgradedWorker, ...], wish: PhaseWish
) -> tuple[tuple[Leg, ...], PlanFinding | None]:
    if not workers:
        return (), PlanFinding("no worker answers")
    possible = {phase for worker in workers for phase in worker.phases}
    low = min(possible, key=lambda phase: phase.rank)
    high = max(possible, key=lambda phase: phase.rank)
    hard = (Leg(start=DISABLED, target=DISABLED, replace=True),) if wish.hard else ()
    if all(worker.phase is wish.target for worker in workers):
        return hard, None
    if wish.full_stop:
        upwards = wish.target.rank - low.rank >= high.rank - wish.target.rank
        return (Leg(start=low if upwards else high, target=wish.target),), None
    ambiguous = any(worker.phase is None for worker in workers)
    if high.rank - low.rank > 1 and not ambiguous and not (wish.direct and wish.target is DISABLED):
        return (), PlanFinding(
            f"{_at(workers, DISABLED)} is disabled while {_at(workers, ENABLED)} is"
            " enabled: these phases cannot coexist",
            "disable all: pyconnect upgrade run --phase disabled --direct; or --full-stop",
        )
    if wish.target is ENABLED:
        if low is DISABLED:
            return (), PlanFinding(
                f"preparing would be skipped: {_at(workers, DISABLED)} is disabled, so a"
                " leader could still write records that cannot be fenced",
                "first: pyconnect upgrade run --phase preparing; or stop everything: --full-stop",
            )
        return (Leg(start=PREPARING, target=ENABLED),), None
    if wish.target is PREPARING:
        start = ENABLED if high is ENABLED else DISABLED
        return (Leg(start=start, target=PREPARING),), None
    if high is not ENABLED:
        return (Leg(start=PREPARING, target=DISABLED), *hard), None
    if wish.direct:
        return (Leg(start=ENABLED, target=DISABLED), *hard), None
    if wish.only:
        return (), PlanFinding(
            "a change from enabled to disabled takes two rolling restarts; with only"
            " some workers it would leave phases that cannot coexist",
            "first: pyconnect upgrade run --phase preparing",
        )
    down = (Leg(start=ENABLED, target=PREPARING), Leg(start=PREPARING, target=DISABLED))
    return (*down, *hard), None


def _at(workers: tuple[UpgradedWorker, ...], phase: Phase) -> str:
    return ", ".join(worker.url for worker in workers if phase in worker.phases)
