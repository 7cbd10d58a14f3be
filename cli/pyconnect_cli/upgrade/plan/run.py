"""A run of an upgrade: the entries of its journal, and the conditions between its steps. Pure.

Every entry is a fact that was true when it was written. `replay` makes the run of them; the next
action never depends on the run alone: `decide` looks at the cluster, too. A run waits until a gate
has no problem, up to a deadline. A broken invariant halts the run at once, because further steps
could only make it worse.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from pyconnect_cli.upgrade.plan.model import Kind, PhaseSource, UpgradedWorker, View
from pyconnect_clients.connect_names import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One rolling: every worker from `start` to `target`; `replace`: to other software instead."""

    start: Phase
    target: Phase
    replace: bool = False

    def __str__(self) -> str:
        return "replace the software" if self.replace else f"{self.start} → {self.target}"

    def allows(self, phase: Phase) -> bool:
        """Return whether a worker may be in this phase during the leg."""
        low, high = sorted((self.start.rank, self.target.rank))
        return low <= phase.rank <= high


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventoried:
    """A worker at the beginning of the run."""

    url: str
    version: str
    phase: str
    config_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The run was planned, checked and confirmed. `failed`: FAILED instances from before it."""

    run_id: str
    group_id: str
    cluster_id: str
    target: Phase
    legs: tuple[Leg, ...]
    inventory: tuple[Inventoried, ...]
    protocol: str
    tool_version: str
    full_stop: bool = False
    hard: bool = False
    only: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Another process continues the run."""

    tool_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A worker's step begins: from now on it may be changed, stopped or gone.

    `instance` is the worker's process before the step.
    """

    url: str
    phase: Phase
    instance: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChanged:
    """The worker's file has the new phase, and its restart was requested or done."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerified:
    """The worker is back, at its phase, and the cluster has settled."""

    url: str
    phase: Phase
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LegFinished:
    """Every worker of the run is at the leg's target."""

    target: Phase
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Halted:
    """The run waits for a repair or, with `operator`, for a step by hand."""

    reason: str
    hint: str
    operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The run is over; `abandoned`: another one took its place."""

    abandoned: bool = False


Entry = (
    Started | Resumed | StepStarted | StepChanged | StepVerified | LegFinished | Halted | Finished
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The state after the entries so far.

    `steps` are under way, `changed` are their workers whose files have the new phase; `verified`
    counts in the current leg.
    """

    started: Started
    leg_index: int = 0
    steps: Mapping[str, StepStarted] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    verified: frozenset[str] = frozenset()
    halted: Halted | None = None
    finished: bool = False

    @property
    def leg(self) -> Leg | None:
        """The leg under way; None when all are done."""
        legs = self.started.legs
        return legs[self.leg_index] if self.leg_index < len(legs) else None

    @property
    def urls(self) -> tuple[str, ...]:
        """Every worker of the cluster when the run began."""
        return tuple(worker.url for worker in self.started.inventory)

    @property
    def selected(self) -> tuple[str, ...]:
        """The workers that this run changes."""
        return self.started.only or self.urls

    @property
    def state(self) -> str:
        """The state as `upgrade status` names it."""
        if self.finished:
            return "DONE"
        if self.halted is not None:
            return "WAITING FOR OPERATOR" if self.halted.operator else "HALTED"
        if self.leg is None:
            return "VERIFYING"
        return f"ROLLING ({len(self.verified)} of {len(self.selected)})"

    @property
    def detail(self) -> str:
        """The reason of a halt, or the workers that are being changed."""
        if self.halted is not None:
            return self.halted.reason
        return f"under way: {', '.join(sorted(self.steps))}" if self.steps else ""


def applied(run: Run, entry: Entry) -> Run:
    """Return the run after one more entry; `Started` begins another one."""
    match entry:
        case Started():
            return Run(started=entry)
        case Resumed():
            return replace(run, halted=None)
        case StepStarted():
            changed = run.changed - {entry.url}
            return replace(run, steps={**run.steps, entry.url: entry}, changed=changed, halted=None)
        case StepChanged():
            if entry.url not in run.steps:
                raise KeyError(entry.url)
            return replace(run, changed=run.changed | {entry.url})
        case StepVerified():
            steps = {url: step for url, step in run.steps.items() if url != entry.url}
            return replace(run, steps=steps, verified=run.verified | {entry.url})
        case LegFinished():
            return Run(started=run.started, leg_index=run.leg_index + 1, halted=run.halted)
        case Halted():
            return replace(run, halted=entry)
        case Finished():
            return replace(run, finished=True, halted=None)
        case _:
            assert_never(entry)


def replay(entries: Iterable[Entry]) -> Run | None:
    """Return the run that the entries of a journal make; None when there are none."""
    run: Run | None = None
    for entry in entries:
        if isinstance(entry, Started):
            run = Run(started=entry)
        elif run is not None:
            run = applied(run, entry)
    return run


PROTOCOLS = ("default", "compatible", "sessioned")
"""Connect protocols as the group names them, the weakest first; `default` is the eager one."""


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
    """Return whether a version, as `4.3.1-rc0`, is known to be older than `first`."""
    match = _NUMBERS.match(version)
    return match is not None and tuple(map(int, match.groups(default="0"))) < first
