"""Carries out a run of an upgrade: look, decide, write, act, until the run is done or halts.

The only loop around `upgrade.decide`; only the journal survives the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyconnect_cli.errors import Conflict, PyconnectError
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.upgrade.cluster.lock import ClusterLock
from pyconnect_cli.upgrade.cluster.observe import Observer
from pyconnect_cli.upgrade.journal import Journal
from pyconnect_cli.upgrade.perform import NeedsOperator, Performer
from pyconnect_cli.upgrade.plan.decide import (
    Act,
    Again,
    End,
    Memory,
    RunDecision,
    StepLimits,
    Wait,
    WorkerAction,
    decide,
)
from pyconnect_cli.upgrade.plan.model import UpgradedWorker, View
from pyconnect_cli.upgrade.plan.run import (
    Entry,
    Finished,
    Halted,
    LegFinished,
    Run,
    StepChanged,
    StepStarted,
    StepVerified,
    applied,
)

LONGEST_PAUSE_S = 1.0
LEAST_PAUSE_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of a run."""

    observer: Observer
    performer: Performer
    journal: Journal
    lock: ClusterLock
    limits: StepLimits
    again: str
    """The command that continues the run."""
    now_ms: Callable[[], int] = lambda: round(time.monotonic() * 1000)


class Rolling:
    """One process's part of a run; the first entry of the run is in the journal."""

    def __init__(self, tools: Tools, run: Run, line: StepLine) -> None:
        self._tools = tools
        self._run = run
        self._line = line
        self._memory = Memory()
        self._seen_ms = tools.now_ms()

    def go_on(self) -> None:
        """Return when the run is done; raise the cause of a halt: exit 1, or 75 for an operator."""
        pause_s = min(LONGEST_PAUSE_S, max(LEAST_PAUSE_S, self._tools.limits.settle_ms / 4000))
        while True:
            if not self._tools.lock.held():
                raise self._halted(
                    Halted(
                        reason="the lock on the cluster was lost",
                        hint=f"check that no other run is active; then: {self._tools.again}",
                    ),
                    Conflict,
                )
            view = self._look()
            if view is None:
                time.sleep(pause_s)
                continue
            decision = decide(
                self._run, self._memory, view, self._tools.limits, self._tools.now_ms()
            )
            self._memory = decision.memory
            for entry in decision.entries:
                self._write(entry)
            if self._ended(decision, view):
                return
            if isinstance(decision.action, Wait):
                time.sleep(pause_s)

    def _look(self) -> View | None:
        """Return None while the brokers do not answer; raise once a step's time is over."""
        now_ms = self._tools.now_ms
        try:
            view = self._tools.observer.look(self._run.urls)
        except PyconnectError as error:
            if now_ms() - self._seen_ms < self._tools.limits.step_ms:
                self._line(f"waiting: {error.message}", passing=True)
                return None
            hint = f"repair this, then: {self._tools.again}"
            raise self._halted(Halted(reason=error.message, hint=hint)) from error
        self._seen_ms = now_ms()
        return view

    def _ended(self, decision: RunDecision, view: View) -> bool:
        match decision.action:
            case End(halted=None):
                return True
            case End(halted=halted):
                assert halted is not None
                raise PyconnectError(halted.reason, hint=halted.hint)
            case Wait(reason=reason):
                self._line(f"waiting: {reason}", passing=True)
            case Again():
                pass
            case WorkerAction() as action:
                worker = view.by_url.get(action.url)
                self._act(action, worker or UpgradedWorker(url=action.url, reachable=False))
        return False

    def _act(self, action: WorkerAction, worker: UpgradedWorker) -> None:
        changes = action.act is not Act.QUIESCE
        try:
            self._tools.performer.perform(self._run, action, worker)
        except NeedsOperator as error:
            if changes:
                # The user was asked to start the worker with its new phase: it counts as changed.
                self._write(StepChanged(url=action.url))
            hint = f"then run the same command again: {self._tools.again}"
            halted = Halted(reason=error.message, hint=hint, operator=True)
            raise self._halted(halted, NeedsOperator) from error
        except PyconnectError as error:
            hint = f"{error.hint or 'repair this'}; then: {self._tools.again}"
            raise self._halted(Halted(reason=error.message, hint=hint)) from error
        if changes:
            self._write(StepChanged(url=action.url))

    def _halted(
        self, halted: Halted, kind: type[PyconnectError] = PyconnectError
    ) -> PyconnectError:
        self._write(halted)
        return kind(halted.reason, hint=halted.hint)

    def _write(self, entry: Entry) -> None:
        self._tools.journal.append(entry)
        self._run = applied(self._run, entry)
        if text := _told(entry):
            self._line(text)


def _told(entry: Entry) -> str | None:
    """Return the line that reports an entry; halts are reported as errors."""
    match entry:
        case StepStarted():
            return f"{entry.url}: to {entry.phase}"
        case StepVerified():
            return f"{entry.url}: done ({entry.evidence})"
        case LegFinished():
            return f"every worker of this run: {entry.target}"
        case Finished():
            return "done"
        case _:
            return None
