"""Carries out a run of an upgrade: look, decide, write, act, until the run is done or halts.

The only loop around `upgrade.decide`; only the journal survives the process.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyconnect_cli.errors import Conflict, PyconnectError
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.upgrade.cluster.lock import ClusterLock
from pyconnect_cli.upgrade.cluster.observe import Observer
from pyconnect_cli.upgrade.journal import Journal
from pyconnect_cli.upgrade.perform import NeedsOperator, Performer
from pyconnect_cli.upgrade.plan.decide import (
    Act,
    Memory,
    StepLimits,
    WorkerAction,
    decide,
)
from pyconnect_cli.upgrade.plan.model import UpgradedWorker
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


@dataclass(kw_only=True)
class Rolling:
    """One process's part of a run; the first entry of the run is in the journal."""

    observer: Observer
    performer: Performer
    journal: Journal
    lock: ClusterLock
    limits: StepLimits
    run: Run
    line: StepLine
    again: str
    """The command that continues the run."""

    def go_on(self) -> None:
        """Return when the run is done; raise the cause of a halt: exit 1, or 75 for an operator."""
        pause_s = min(LONGEST_PAUSE_S, max(LEAST_PAUSE_S, self.limits.settle_ms / 4000))
        memory, seen_ms = Memory(), _now_ms()
        while not self.run.finished:
            if not self.lock.held():
                raise self._halted(
                    Halted(
                        reason="the lock on the cluster was lost",
                        hint=f"check that no other run is active; then: {self.again}",
                    ),
                    Conflict,
                )
            try:
                view = self.observer.look(self.run.urls)
            except PyconnectError as error:
                # The brokers may not answer for the time of a step.
                if _now_ms() - seen_ms >= self.limits.step_ms:
                    hint = f"repair this, then: {self.again}"
                    raise self._halted(Halted(reason=error.message, hint=hint)) from error
                self.line(f"waiting: {error.message}", passing=True)
                time.sleep(pause_s)
                continue
            seen_ms = _now_ms()
            decision = decide(self.run, memory, view, self.limits, seen_ms)
            memory = decision.memory
            for entry in decision.entries:
                self._write(entry)
            if self.run.halted is not None:
                raise PyconnectError(self.run.halted.reason, hint=self.run.halted.hint)
            if decision.act is not None:
                worker = view.by_url.get(decision.act.url)
                self._act(
                    decision.act, worker or UpgradedWorker(url=decision.act.url, reachable=False)
                )
            elif decision.awaited:
                self.line(f"waiting: {decision.awaited}", passing=True)
                time.sleep(pause_s)

    def _act(self, action: WorkerAction, worker: UpgradedWorker) -> None:
        changes = action.act is not Act.QUIESCE
        try:
            self.performer.perform(self.run, action, worker)
        except NeedsOperator as error:
            if changes:
                # The user was asked to start the worker with its new phase: it counts as changed.
                self._write(StepChanged(url=action.url))
            hint = f"then run the same command again: {self.again}"
            halted = Halted(reason=error.message, hint=hint, operator=True)
            raise self._halted(halted, NeedsOperator) from error
        except PyconnectError as error:
            hint = f"{error.hint or 'repair this'}; then: {self.again}"
            raise self._halted(Halted(reason=error.message, hint=hint)) from error
        if changes:
            self._write(StepChanged(url=action.url))

    def _halted(
        self, halted: Halted, kind: type[PyconnectError] = PyconnectError
    ) -> PyconnectError:
        self._write(halted)
        return kind(halted.reason, hint=halted.hint)

    def _write(self, entry: Entry) -> None:
        """Keep an entry and report it; halts are reported as errors."""
        self.journal.append(entry)
        self.run = applied(self.run, entry)
        match entry:
            case StepStarted():
                self.line(f"{entry.url}: to {entry.phase}")
            case StepVerified():
                self.line(f"{entry.url}: done ({entry.evidence})")
            case LegFinished():
                self.line(f"every worker of this run: {entry.target}")
            case Finished():
                self.line("done")
            case _:
                pass


def _now_ms() -> int:
    return round(time.monotonic() * 1000)
