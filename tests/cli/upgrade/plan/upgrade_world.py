"""A Connect cluster in memory that upgrades are run against, killed at any point and resumed.

Workers restart in the background: a change takes effect some looks later. Time is a counter. Each
change asserts that no other worker is away, except in a full stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pyconnect_cli.upgrade.plan.decide import Act, Memory, StepLimits, WorkerAction, decide
from pyconnect_cli.upgrade.plan.model import (
    Kind,
    Means,
    OpenTransaction,
    PhaseSource,
    UpgradedWorker,
    View,
)
from pyconnect_cli.upgrade.plan.run import (
    Entry,
    Halted,
    Inventoried,
    Leg,
    Resumed,
    Run,
    Started,
    StepChanged,
    applied,
    replay,
)
from pyconnect_clients.connect_names import Phase

STARTED = Started(
    run_id="r",
    group_id="g",
    cluster_id="k",
    target=Phase.PREPARING,
    legs=(Leg(start=Phase.DISABLED, target=Phase.PREPARING),),
    inventory=(Inventoried(url="http://w", version="4.3.1", phase="disabled", config_sha256=None),),
    protocol="sessioned",
    tool_version="1",
    failed=("c/0",),
)
LIMITS = StepLimits(settle_ms=300, step_ms=10_000)
LOOK_MS = 100
AWAY_LOOKS = 3
JAVA_FOLLOWER = frozenset({Phase.DISABLED, Phase.PREPARING})


class Killed(Exception):
    """The end of the tool's process by a kill."""


@dataclass
class SimulatedWorker:
    """A worker; `file` is the phase in its properties, `phase` that of its process."""

    url: str
    kind: Kind = Kind.AGENT
    phase: Phase = Phase.DISABLED
    file: Phase = Phase.DISABLED
    version: str = "4.3.1"
    life: int = 1
    away: int = 0
    stopped: bool = False
    drained: bool = False
    broken: bool = False
    cut_off: bool = False
    """Whether the worker runs in the group but does not answer the tool."""
    restarts: int = 0

    def seen(self, leader: str | None) -> UpgradedWorker:
        away = self.stopped or self.away > 0
        gone = away or self.cut_off
        leads = leader == self.url
        return UpgradedWorker(
            url=self.url,
            reachable=not gone,
            reason="connection refused" if gone else "",
            kind=self.kind,
            version="" if gone else self.version,
            cluster_id="" if gone else "k",
            phases=frozenset(Phase) if gone else self._phases(leads=leads),
            source=(
                PhaseSource.UNKNOWN
                if gone
                else PhaseSource.TOLD
                if self.kind is Kind.AGENT
                else PhaseSource.INFERRED
            ),
            instance=None if away or self.drained else f"{self.url}#{self.life}",
            leader=leads,
            outdated=self.kind is Kind.AGENT and self.file is not self.phase,
            drained=self.drained,
            means=self._means(gone=gone),
        )

    def _means(self, *, gone: bool) -> Means:
        """Return the means of a change; an agent that does not answer is not known to be one."""
        if self.kind is Kind.JAVA:
            return Means.COMMANDS
        return Means.OPERATOR if gone else Means.AGENT

    def _phases(self, *, leads: bool) -> frozenset[Phase]:
        if self.kind is Kind.AGENT or self.phase is Phase.ENABLED or leads:
            return frozenset({self.phase})
        return JAVA_FOLLOWER


@dataclass
class World:
    """A Connect cluster and the tool's journal."""

    workers: dict[str, SimulatedWorker]
    leader: str | None
    journal: list[Entry] = field(default_factory=list)
    now_ms: int = 0
    failed: set[str] = field(default_factory=set)
    strangers: list[UpgradedWorker] = field(default_factory=list)
    hanging: tuple[str, ...] = ()
    orphans: dict[OpenTransaction, int] = field(default_factory=dict)
    """Open transactions of killed processes, and the time in ms when a coordinator aborts each."""
    leader_writes: bool | None = None
    mute_until_ms: int = 0
    """The time until which no worker reports connectors."""
    order: list[str] = field(default_factory=list)
    full_stop: bool = False
    protocol: str = "sessioned"
    looks: int = 0
    outage: tuple[int, str] | None = None
    """The number of the look at which a worker is cut off, and its address."""

    @classmethod
    def of(cls, *phases: Phase, kinds: Sequence[Kind] | None = None, leader: int = 0) -> World:
        kinds = kinds or [Kind.AGENT] * len(phases)
        workers = {
            f"http://w{at}": SimulatedWorker(
                url=f"http://w{at}", kind=kinds[at], phase=phase, file=phase
            )
            for at, phase in enumerate(phases)
        }
        return cls(workers=workers, leader=f"http://w{leader}")

    def start(self, *legs: Leg, **members: object) -> None:
        inventory = tuple(
            Inventoried(
                url=w.url,
                version=w.version,
                phase=w.phase,
                config_sha256="sha" if w.kind is Kind.AGENT else None,
            )
            for w in self.workers.values()
        )
        started = replace(
            STARTED,
            target=legs[-1].target,
            legs=legs,
            inventory=inventory,
            protocol=self.protocol,
            **{"failed": (), **members},  # type: ignore[arg-type]
        )
        self.full_stop = started.full_stop
        self.journal.append(started)

    def look(self) -> View:
        """Let time pass and restarts progress, and return a view."""
        self.now_ms += LOOK_MS
        self.looks += 1
        if self.outage is not None and self.looks == self.outage[0]:
            self.workers[self.outage[1]].cut_off = True
        for worker in self.workers.values():
            if worker.away > 0 and not worker.broken:
                worker.away -= 1
                if worker.away == 0:
                    worker.phase, worker.life = worker.file, worker.life + 1
        present = [w.url for w in self.workers.values() if not (w.away or w.stopped or w.drained)]
        if self.leader not in present:
            self.leader = present[-1] if present else None
        return View(
            group_id="g",
            cluster_id="k",
            group_state="Stable" if present else "Empty",
            protocol=self.protocol,
            workers=tuple(w.seen(self.leader) for w in self.workers.values())
            + tuple(self.strangers),
            instances={**dict.fromkeys(self.failed, "FAILED"), "c": "RUNNING"}
            if self.now_ms >= self.mute_until_ms
            else {},
            hanging=self.hanging,
            open_transactions=frozenset(
                found for found, until_ms in self.orphans.items() if self.now_ms < until_ms
            ),
            leader_writes=self.leader_writes,
            states_known=self.now_ms >= self.mute_until_ms,
        )

    def change(self, url: str, phase: Phase) -> None:
        """Act as an agent does at POST /agent/phase, or as commands do with a Java worker."""
        worker = self.workers[url]
        others = [
            w.url
            for w in self.workers.values()
            if w.url != url and (w.away or w.stopped or w.cut_off)
        ]
        self._check_that_it_can_act(worker)
        assert self.full_stop or not others, f"{url} is changed while {others} are away"
        if worker.kind is Kind.AGENT and (worker.away or worker.phase is phase is worker.file):
            return
        worker.file = phase
        worker.away, worker.stopped, worker.drained = AWAY_LOOKS, False, False
        worker.restarts += 1
        self.order.append(url)

    def run_tool(self, kill_at: int | None = None) -> Halted | None:
        """Run one process of the tool to its end, or until its `kill_at`th act or entry."""
        left = kill_at

        def breathe() -> None:
            nonlocal left
            if left is not None:
                if left == 0:
                    raise Killed
                left -= 1

        run = replay(self.journal)
        assert run is not None
        memory = Memory()

        def write(entry: Entry) -> Run:
            breathe()
            self.journal.append(entry)
            assert run is not None
            return applied(run, entry)

        if kill_at is None:
            run = write(Resumed(tool_version="1"))
        while True:
            decision = decide(run, memory, self.look(), LIMITS, self.now_ms)
            memory = decision.memory
            for entry in decision.entries:
                run = write(entry)
            if run.finished or run.halted:
                return run.halted
            match decision.act:
                case WorkerAction(Act.CHANGE, url, phase):
                    breathe()
                    self.change(url, phase)
                    run = write(StepChanged(url=url))
                case WorkerAction(Act.QUIESCE, url):
                    breathe()
                    self._quiesce(url)
                case WorkerAction(Act.REPLACE, url):
                    breathe()
                    self.workers[url].version = "3.2.0"
                    self.workers[url].life += 1
                    run = write(StepChanged(url=url))
                case _:
                    pass

    @staticmethod
    def _check_that_it_can_act(worker: SimulatedWorker) -> None:
        means = worker.seen(None).means
        assert means is not Means.OPERATOR, f"a person is told to do what {worker.url} does itself"

    def _quiesce(self, url: str) -> None:
        worker = self.workers[url]
        self._check_that_it_can_act(worker)
        if worker.kind is Kind.AGENT:
            worker.drained = True
        else:
            worker.stopped = True

    def phases(self) -> Iterable[Phase]:
        return [worker.phase for worker in self.workers.values()]
