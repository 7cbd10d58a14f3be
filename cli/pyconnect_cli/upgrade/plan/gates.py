"""The conditions between the steps of an upgrade, and the invariants of a run. Pure.

A run waits until a gate has no problem, up to a deadline. A broken invariant halts the run at once,
because further steps could only make it worse.
"""

from __future__ import annotations

import re

from pyconnect_cli.upgrade.plan.model import Kind, PhaseSource, UpgradedWorker, View
from pyconnect_cli.upgrade.plan.run import Halted, Leg, Run, StepStarted
from pyconnect_clients.phases import Phase

PROTOCOLS = ("default", "compatible", "sessioned")
"""As the group names them, the weakest first; `default` is the eager one."""


def gate_problem(run: Run, view: View) -> str | None:
    """Return the problem that prevents the next step; None without one."""
    if not view.stable:
        return f"a rebalance is under way (group {view.group_id} is {view.group_state})"
    by_url = view.by_url
    for url in run.urls:
        worker = by_url.get(url)
        if worker is None or not worker.member:
            reason = f" ({worker.reason})" if worker and worker.reason else ""
            return f"{url} is missing from the group{reason}"
        if not worker.reachable:
            return f"{url} does not answer ({worker.reason})"
        if not worker.ready:
            return f"{url} is not ready yet"
    if view.leader is None:
        return "the group has no leader"
    if not view.states_known:
        return "no worker reports the states of connectors and tasks"
    before = set(run.started.failed)
    if new := sorted(view.failed() - before):
        return f"{', '.join(new)} {'is' if len(new) == 1 else 'are'} FAILED since the run began"
    if lost := sorted(view.unassigned()):
        return f"{', '.join(lost)} {'has' if len(lost) == 1 else 'have'} no worker yet"
    if view.hanging:
        return f"open beyond its timeout: the transaction of {', '.join(view.hanging)}"
    return None


def broken_invariant(run: Run, view: View) -> Halted | None:
    """Return the finding that ends the run; None while all invariants hold."""
    leg = run.leg
    for worker in view.workers:
        if worker.url not in run.urls and worker.member:
            version = f", version {worker.version}" if worker.version else ""
            return Halted(
                reason=f"{worker.url}{version} has joined the group but is not part of this run",
                hint="stop it and run the same command again; or end this run with pyconnect"
                " upgrade abandon, and start another run that includes it",
            )
        if worker.cluster_id and worker.cluster_id != run.started.cluster_id:
            return Halted(
                reason=f"{worker.url} uses Kafka cluster {worker.cluster_id}, not"
                f" {run.started.cluster_id}",
                hint="give it the properties of the other workers",
            )
        if leg is not None and (problem := _wrong_phase(run, leg, worker)):
            return Halted(
                reason=problem, hint="find the reason of the change and revert it; then resume"
            )
    now, before = view.protocol, run.started.protocol
    known = now in PROTOCOLS and before in PROTOCOLS
    if view.stable and known and PROTOCOLS.index(now) < PROTOCOLS.index(before):
        return Halted(
            reason=f"the group's protocol changed from {before} to {now}",
            hint="give every worker the same connect.protocol as before, then resume",
        )
    return None


def _wrong_phase(run: Run, leg: Leg, worker: UpgradedWorker) -> str | None:
    if not worker.reachable or worker.source is PhaseSource.UNKNOWN or leg.replace:
        return None
    if worker.kind is Kind.JAVA and is_before(worker.version, FIRST_WITH_PHASES):
        return f"{worker.url} runs version {worker.version}, which has no exactly-once support"
    if not any(leg.allows(phase) for phase in worker.phases):
        return f"{worker.url} is {worker.phase_text}; this rolling is {leg}"
    back = worker.url in run.verified and worker.source is PhaseSource.TOLD
    if back and worker.phase is not leg.target:
        return f"{worker.url} was {leg.target} and is {worker.phase_text} again"
    return None


def is_at_target(run: Run, leg: Leg, worker: UpgradedWorker) -> bool:
    """Return whether the cluster shows that a worker needs no step in this leg."""
    if leg.replace:
        return worker.reachable and worker.version != (
            next((w.version for w in run.started.inventory if w.url == worker.url), "")
        )
    return (
        worker.reachable
        and worker.source is not PhaseSource.UNKNOWN
        and worker.phase is leg.target
        and not worker.outdated
    )


def has_arrived(run: Run, leg: Leg, step: StepStarted, worker: UpgradedWorker | None) -> bool:
    """Return whether the worker of a step is back and at the step's phase.

    A phase that is only inferred needs two more facts: the change was made, and the process in the
    group is another one than before.
    """
    if worker is None or not worker.reachable or not worker.member:
        return False
    if leg.replace or worker.source is PhaseSource.TOLD:
        return is_at_target(run, leg, worker)
    return (
        step.url in run.changed and worker.instance != step.instance and step.phase in worker.phases
    )


def leader_problem(leg: Leg, view: View) -> str | None:
    """Return the reason why the leader's writes are not safe at the end of a leg, or None."""
    if leg.target is Phase.DISABLED or view.leader_writes is not False:
        return None
    return "the leader has not claimed its transactional id: does it have the grant (acls check)?"


FIRST_WITH_PHASES = (3, 3, 0)
FIRST_WITHOUT_KNOWN_FAULTS = (3, 4, 1)
FIRST_WITH_STOPPED = (3, 5, 0)
_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def is_before(version: str, first: tuple[int, int, int]) -> bool:
    """Whether a version, as `4.3.1-rc0`, is known to be older than `first`."""
    match = _NUMBERS.match(version)
    return match is not None and tuple(map(int, match.groups(default="0"))) < first
