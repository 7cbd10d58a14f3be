"""The rolling restarts for a wish, and then the next action of their run. Pure.

The ways up: disabled → preparing → enabled, each in a separate run, because exactly-once is only
safe when every possible leader writes transactionally before the first task relies on it. The way
down takes two rolling restarts, or one with --direct. --full-stop allows any change: no worker runs
meanwhile.

A new process can call `decide` at any time with nothing but the journal: it repeats an action that
was started unless the cluster shows that it is done. So a run may be killed at any point. Entries
are written before their action is performed.

Rolling: gate → a follower, the leader last → StepStarted → Change → has it arrived? → gate, settled
→ StepVerified → the next. Full stop: every worker that is not at the target is quiesced before the
first one is changed. A step that takes longer than its time limit halts the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from pyconnect_cli.render.styles import counted
from pyconnect_cli.upgrade.plan.checks import PhaseWish, PlanFinding, findings
from pyconnect_cli.upgrade.plan.model import (
    Means,
    OpenTransaction,
    PhaseSource,
    UpgradedWorker,
    View,
)
from pyconnect_cli.upgrade.plan.run import (
    Entry,
    Finished,
    Halted,
    Inventoried,
    Leg,
    LegFinished,
    Run,
    Started,
    StepStarted,
    StepVerified,
    broken_invariant,
    gate_problem,
    has_arrived,
    is_at_target,
    leader_problem,
)
from pyconnect_clients.connect_names import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLimits:
    """Times in ms: how long the cluster must be quiet, and the time limit of a step."""

    settle_ms: int = 30_000
    step_ms: int = 420_000


class Act(Enum):
    """The ways to act on a worker."""

    CHANGE = "set its phase and restart it"
    QUIESCE = "stop or drain it: it must run no task and lead nothing"
    REPLACE = "replace its software"


@dataclass(frozen=True, slots=True)
class WorkerAction:
    """An act on one worker; `phase`: the new one."""

    act: Act
    url: str
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The memory of one process of a run; a new process begins with an empty one."""

    acted: frozenset[WorkerAction] = frozenset()
    waiting_since_ms: int | None = None
    fingerprint: tuple[object, ...] = ()
    steady_since_ms: int = 0
    lingering: frozenset[OpenTransaction] | None = None
    """The transactions that were open when this turn's workers were back, and still are."""

    def looked(self, view: View, now_ms: int) -> Memory:
        """Take note of a look at the cluster."""
        seen = view.fingerprint()
        looked = self
        if self.lingering is not None:
            looked = replace(self, lingering=self.lingering & view.open_transactions)
        if seen == self.fingerprint:
            return looked
        return replace(looked, fingerprint=seen, steady_since_ms=now_ms)


_NO_REST = "the cluster does not become stable: see its logs"


@dataclass(frozen=True, slots=True)
class RunDecision:
    """Write the entries, then act on a worker, or look again after a pause.

    The process ends with an entry that halts or finishes the run. Without an act and `awaited`
    condition the next decision follows at once. `memory` is for the next decision.
    """

    memory: Memory
    entries: tuple[Entry, ...] = ()
    act: WorkerAction | None = None
    awaited: str = ""


def decide(run: Run, memory: Memory, view: View, limits: StepLimits, now_ms: int) -> RunDecision:
    """Return the next action and the entries to write before it."""
    memory = memory.looked(view, now_ms)
    leg = run.leg
    if leg is None:
        return RunDecision(memory, (Finished(),))
    if broken := broken_invariant(run, view):
        return RunDecision(memory, (broken,))
    turn = _Turn(run=run, leg=leg, memory=memory, view=view, limits=limits, now_ms=now_ms)
    if run.started.full_stop and not leg.replace:
        return _full_stop(turn)
    by_url = view.by_url
    for step in run.steps.values():
        worker = by_url.get(step.url)
        if has_arrived(run, leg, step, worker):
            assert worker is not None
            turn = turn.back()
            return turn.verify() or turn.progress(_verified(turn, step, worker))
        turn = turn.away()
        if turn.may(turn.step(step.url)):
            return turn.act(turn.step(step.url))
        return turn.wait(_not_there(leg, step, worker), _step_hint(leg, step.url))
    if waiting := turn.verify():
        return waiting
    if leg.replace and (found := view.open_transactions):
        # Software without transactions cannot end them.
        problem = f"open: the transaction of {min(each.transactional_id for each in found)}"
        return turn.wait(problem, _gate_hint(problem))
    pending = [
        by_url[url]
        for url in run.selected
        if url not in run.verified and not is_at_target(run, leg, by_url[url])
    ]
    if not pending:
        return _finish_leg(turn)
    # Followers in the order of the inventory, the leader last, so that it moves once.
    first = min(pending, key=lambda worker: worker.leader)
    entry = StepStarted(url=first.url, phase=leg.target, instance=first.instance)
    return turn.act(turn.step(first.url), entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One decision's inputs."""

    run: Run
    leg: Leg
    memory: Memory
    view: View
    limits: StepLimits
    now_ms: int

    @property
    def settled(self) -> bool:
        return self.now_ms - self.memory.steady_since_ms >= self.limits.settle_ms

    def wait(self, reason: str, hint: str) -> RunDecision:
        """Wait, or halt once the step's time limit is over."""
        since_ms = self.memory.waiting_since_ms
        memory = self.memory
        if since_ms is None:
            memory, since_ms = replace(memory, waiting_since_ms=self.now_ms), self.now_ms
        if self.now_ms - since_ms >= self.limits.step_ms:
            return RunDecision(memory, (Halted(reason=reason, hint=hint),))
        return RunDecision(memory, awaited=reason)

    def step(self, url: str) -> WorkerAction:
        """Return the act of the leg on a worker."""
        act = Act.REPLACE if self.leg.replace else Act.CHANGE
        return WorkerAction(act, url, self.leg.target)

    def may(self, action: WorkerAction) -> bool:
        """Return whether this process has not done this action yet and the worker can be acted on.

        A worker that only its own agent can change and that does not answer may be returning from a
        restart that an earlier process began; the run waits for it. Only agents report the digest
        of their file.
        """
        worker = self.view.by_url.get(action.url)
        silent = not self.leg.replace and (worker is None or not worker.reachable)
        commanded = worker is not None and worker.means is Means.COMMANDS
        inventory = self.run.started.inventory
        told = any(each.url == action.url and each.config_sha256 for each in inventory)
        return action not in self.memory.acted and not (silent and told and not commanded)

    def act(self, action: WorkerAction, *entries: Entry) -> RunDecision:
        memory = replace(
            self.memory, acted=self.memory.acted | {action}, waiting_since_ms=self.now_ms
        )
        return RunDecision(memory, entries, action)

    def progress(self, *entries: Entry) -> RunDecision:
        """Write the entries of the progress, and continue with a new deadline."""
        memory = replace(self.memory, waiting_since_ms=None, lingering=None)
        return RunDecision(memory, entries)

    def back(self) -> _Turn:
        """Return the turn once the changed workers are back; remember the open transactions."""
        if self.memory.lingering is not None:
            return self
        return replace(self, memory=replace(self.memory, lingering=self.view.open_transactions))

    def away(self) -> _Turn:
        """Return the turn while changed workers are not back."""
        return replace(self, memory=replace(self.memory, lingering=None))

    def verify(self) -> RunDecision | None:
        """Wait for the next condition of a step's end; return None when all hold.

        The coordinator aborts the transaction of a killed process after its timeout: until then
        readers of committed records wait and its outcome is open.
        """
        if problem := gate_problem(self.run, self.view):
            return self.wait(problem, _gate_hint(problem))
        if self.memory.lingering:
            ids = sorted({found.transactional_id for found in self.memory.lingering})
            problem = f"the transaction of {', '.join(ids)} is still open since before the step"
            return self.wait(problem, _gate_hint(problem))
        if not self.settled:
            return self.wait("the cluster settles", _NO_REST)
        return None


def _finish_leg(turn: _Turn) -> RunDecision:
    if not turn.leg.replace and (problem := leader_problem(turn.leg, turn.view)):
        return turn.wait(problem, "pyconnect acls check --phase " + turn.leg.target)
    workers = [turn.view.by_url[url] for url in turn.run.selected]
    evidence = "; ".join(f"{worker.url}: {worker.phase_text}" for worker in workers)
    return turn.progress(LegFinished(target=turn.leg.target, evidence=evidence))


def _full_stop(turn: _Turn) -> RunDecision:
    run, leg, by_url = turn.run, turn.leg, turn.view.by_url
    pending, awake = [], []
    for url in run.selected:
        worker, step = by_url.get(url), run.steps.get(url)
        if step is not None:
            there = has_arrived(run, leg, step, worker)
        else:
            there = worker is not None and is_at_target(run, leg, worker)
        if url not in run.verified and not there:
            pending.append(url)
            runs = worker and (worker.member or (worker.reachable and not worker.drained))
            if step is None and runs:
                awake.append(url)
    for url in awake:
        if turn.may(quiesce := WorkerAction(Act.QUIESCE, url, leg.target)):
            return turn.act(quiesce)
    if awake:
        return turn.wait(f"{awake[0]} still runs", f"stop {awake[0]}, then resume")
    for url in pending:
        if turn.may(turn.step(url)):
            started = StepStarted(url=url, phase=leg.target, instance=None)
            return turn.act(turn.step(url), *(() if url in run.steps else (started,)))
    if pending:
        turn = turn.away()
        return turn.wait(f"{pending[0]} is not back yet", _step_hint(leg, pending[0]))
    turn = turn.back()
    if waiting := turn.verify():
        return waiting
    if run.steps:
        verified = (_verified(turn, step, by_url[step.url]) for step in run.steps.values())
        return turn.progress(*verified)
    return _finish_leg(turn)


def _verified(turn: _Turn, step: StepStarted, worker: UpgradedWorker) -> StepVerified:
    how = (
        "reported by the worker"
        if worker.source is PhaseSource.TOLD
        else "restarted with this phase"
    )
    members = sum(each.member for each in turn.view.workers)
    evidence = (
        f"{worker.phase_text}, {how}; version {worker.version}; {counted(members, 'member')},"
        f" {turn.view.protocol}, {turn.view.group_state}"
    )
    return StepVerified(url=step.url, phase=step.phase, evidence=evidence)


def _not_there(leg: Leg, step: StepStarted, worker: UpgradedWorker | None) -> str:
    if worker is None:
        return f"{step.url} is not back yet"
    if not worker.reachable:
        return f"{step.url} is not back yet ({worker.reason})"
    if not worker.member:
        return f"{step.url} answers and has not joined the group yet"
    if leg.replace:
        return f"{step.url} still runs version {worker.version}"
    return f"{step.url} is {worker.phase_text}, not {step.phase} yet"


def _step_hint(leg: Leg, url: str) -> str:
    goal = "its new software" if leg.replace else f"exactly.once.source.support={leg.target}"
    return (
        f"see the log of {url}; start it with {goal}, or with its former file, then"
        " run the same command again to continue"
    )


def _gate_hint(problem: str) -> str:
    if "FAILED" in problem:
        return (
            "see the reason: pyconnect tasks list --failed; repair it, restart the"
            " failed tasks, then run the same command again"
        )
    if "transaction" in problem:
        return "show it: pyconnect transactions find-hanging; then run the same command again"
    return "repair this, then run the same command again to continue"


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
        """Return the workers of a rolling restart in order: followers, then the leader."""
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
