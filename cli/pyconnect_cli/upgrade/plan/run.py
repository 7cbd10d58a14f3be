"""A run of an upgrade: the entries of its journal. Pure.

Every entry is a fact that was true when it was written. `replay` makes the run of them; the next
action never depends on the run alone: `decide` looks at the cluster, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from pyconnect_clients.phases import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One rolling: every worker from `start` to `target`; `replace`: to other software instead."""

    start: Phase
    target: Phase
    replace: bool = False

    def __str__(self) -> str:
        return "replace the software" if self.replace else f"{self.start} → {self.target}"

    def allows(self, phase: Phase) -> bool:
        """Whether a worker may be in this phase while the leg goes on."""
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
