"""The result of one look at a cluster, and its rows: connectors, tasks and workers. Pure.

A part of a look that could not be read is missing, and `doubts` gives the reason: a look never
fails as a whole once one worker has answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pyconnect_cli.acting.workers import WorkerHealth, address_of
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.agent_client import AgentChild, AgentInfo
from pyconnect_cli.rest.model import ConnectorView, InstanceState, root_cause

if TYPE_CHECKING:
    from pyconnect_cli.kafka.model import OpenProducer, SinkPosition, TopicPartition

FAILED = "FAILED"
NO_ANSWER = " (no answer)"
UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task, or a connector's own instance (`task` None). None: not known.

    `restarts`: the agent's automatic restarts. `rate` is in records a second, `memory` in bytes;
    `active_ms` is the time of the last poll or put in ms since the epoch.
    """

    connector: str
    task: int | None
    state: str
    worker: str
    cause: str = ""
    rate: float | None = None
    memory: int | None = None
    pid: int | None = None
    restarts: int | None = None
    queue: int | None = None
    active_ms: int | None = None
    responsive: bool = True

    @property
    def name(self) -> str:
        """`orders` of a connector, `orders/0` of a task."""
        return self.connector if self.task is None else f"{self.connector}/{self.task}"

    @property
    def broken(self) -> bool:
        return self.state == FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRow:
    """A connector with its tasks; sums leave out unknown values, None: no value is known.

    `lag` and `rate` count records; `unread` partitions have no committed offset yet.
    """

    name: str
    type: str
    state: str
    worker: str
    class_name: str
    tasks: tuple[TaskRow, ...]
    cause: str = ""
    rate: float | None = None
    lag: int | None = None
    unread: int = 0
    memory: int | None = None
    restarts: int | None = None
    responsive: bool = True
    """False: a worker or a process of it does not answer, so its states are old."""

    @property
    def broken(self) -> bool:
        """Whether the connector or a task of it is FAILED."""
        return self.state == FAILED or any(task.broken for task in self.tasks)

    @property
    def progress(self) -> str:
        """`2/3, 1 FAILED`: running tasks of all."""
        running = sum(task.state == "RUNNING" for task in self.tasks)
        failed = sum(task.state == FAILED for task in self.tasks)
        text = f"{running}/{len(self.tasks)}"
        return f"{text}, {failed} FAILED" if failed else text


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker: `kind` is agent, worker (Apache's) or `-` if it does not answer.

    `worker_id` is its name in statuses, `address` the address that was asked. `state`, `phase` and
    `memory` come from an agent's admin interface; `silence`: why it did not answer.
    """

    address: str
    worker_id: str
    url: str
    kind: str
    status: str
    message: str
    version: str
    agent_version: str
    state: str = ""
    leader: bool = False
    phase: str | None = None
    connectors: int = 0
    tasks: int = 0
    memory: int | None = None
    silence: str = ""

    @property
    def name(self) -> str:
        return self.worker_id

    @property
    def broken(self) -> bool:
        return self.status != "healthy"

    def to_json(self) -> dict[str, object]:
        """Return the stable form for machines."""
        return {
            "url": self.url,
            "health": self.status,
            "message": self.message,
            "version": self.version,
            "agent_version": self.agent_version,
            "agent": self.kind == "agent",
            "state": self.state or None,
            "leader": self.leader if self.state else None,
            "phase": self.phase,
            "connectors": self.connectors,
            "tasks": self.tasks,
            "memory_bytes": self.memory,
        }


def state_text(row: ConnectorRow | TaskRow) -> str:
    """Return a state, marked if its worker or process does not answer."""
    return row.state if row.responsive else f"{row.state}{NO_ANSWER}"


def connector_rows(look: ClusterLook, before: Positions | None = None) -> list[ConnectorRow]:
    """Return a row for each connector; from `before` comes the rate of sinks without metrics."""
    now = look.positions
    moved: dict[str, float] = {}  # records per second committed between both looks
    if before is not None and now is not None and now.time_s > before.time_s:
        for name, places in now.places.items():
            earlier = before.places.get(name, {})
            steps = [
                place.offset - was.offset
                for at, place in places.items()
                if (was := earlier.get(at)) and place.offset is not None and was.offset is not None
            ]
            if steps:
                moved[name] = max(sum(steps), 0) / (now.time_s - before.time_s)
    facts = _Processes(
        children=look.children,
        rates=look.rates,
        silent=frozenset(
            _worker_row(worker, ()).worker_id
            for worker in look.workers
            if worker.health.status == UNREACHABLE
        ),
    )
    return [
        _connector_row(view, now, facts, moved.get(name))
        for name, view in sorted(look.views.items())
    ]


def worker_rows(look: ClusterLook) -> list[WorkerRow]:
    """Return a row for each worker that was asked, in the order of the addresses."""
    return [_worker_row(worker, look.views.values()) for worker in look.workers]


def failures(rows: Iterable[ConnectorRow]) -> list[TaskRow]:
    found = []
    for row in rows:
        if row.state == FAILED:
            own = TaskRow(
                connector=row.name, task=None, state=FAILED, worker=row.worker, cause=row.cause
            )
            found.append(own)
        found += [task for task in row.tasks if task.broken]
    return found


def phase_of(workers: Sequence[WorkerRow]) -> str:
    """Return the agents' phases of exactly-once as a text; for other workers the reason."""
    known = [worker for worker in workers if worker.phase]
    phases = sorted({str(worker.phase) for worker in known})
    reasons = "; ".join(dict.fromkeys(worker.silence for worker in workers if worker.silence))
    if not known:
        return f"not known: {reasons or 'no worker answers'}"
    if len(phases) > 1:
        text = ", ".join(
            f"{phase} on {sum(worker.phase == phase for worker in known)}" for phase in phases
        )
    else:
        text = phases[0]
    silent = len(workers) - len(known)
    if not silent:
        return text
    return f"{text}; not known of {counted(silent, 'worker')}{': ' * bool(reasons)}{reasons}"


class _Processes(NamedTuple):
    """The agents' child processes, by the name of their connector or task.

    `silent`: the workers that do not answer, as statuses name them.
    """

    children: Mapping[str, AgentChild]
    rates: Mapping[str, float]
    silent: frozenset[str]


def _connector_row(
    view: ConnectorView, positions: Positions | None, known: _Processes, moved: float | None
) -> ConnectorRow:
    status = view.status
    tasks = tuple(
        _task_row(known, view.name, task.id, task) for task in (status.tasks if status else ())
    )
    own = _task_row(known, view.name, None, status.connector) if status else None
    traces = [item.trace for item in (status.connector, *status.tasks)] if status else []
    known_rates = [task.rate for task in tasks if task.rate is not None]
    sizes = [item.memory for item in (own, *tasks) if item and item.memory is not None]
    places = positions.places.get(view.name) if positions else None
    lags = [place.lag for place in (places or {}).values()]
    known_lags = [lag for lag in lags if lag is not None]
    return ConnectorRow(
        name=view.name,
        type=view.type,
        state=view.state,
        worker=status.connector.worker_id if status else "",
        class_name=view.class_name.rsplit(".", 1)[-1],
        tasks=tasks,
        cause=next((root_cause(trace) for trace in traces if trace), ""),
        rate=sum(known_rates) if known_rates else moved,
        lag=sum(known_lags) if known_lags else None,
        unread=len(lags) - len(known_lags),
        memory=sum(sizes) if sizes else None,
        restarts=own.restarts if own else None,
        responsive=all(item.responsive for item in (own, *tasks) if item),
    )


def _task_row(known: _Processes, connector: str, task: int | None, item: InstanceState) -> TaskRow:
    name = connector if task is None else f"{connector}/{task}"
    child = known.children.get(name)
    # Not every agent reports the number of its automatic restarts.
    told = child.raw.get("restarts") if child else None
    total = told.get("total") if isinstance(told, Mapping) else None
    return TaskRow(
        connector=connector,
        task=task,
        state=item.state,
        worker=item.worker_id,
        cause=root_cause(item.trace or ""),
        rate=known.rates.get(name),
        memory=child.rss_bytes if child else None,
        pid=child.pid if child else None,
        restarts=total if isinstance(total, int) else None,
        queue=child.queue_size if child else None,
        active_ms=child.last_activity_ms if child else None,
        responsive=item.worker_id not in known.silent
        and (child is None or child.pid is None or child.responsive),
    )


def _worker_row(worker: WorkerLook, views: Iterable[ConnectorView]) -> WorkerRow:
    info, health = worker.info, worker.health
    address = address_of(health.url)
    # The address at which an agent was asked may differ from the advertised one.
    worker_id = str(info.raw.get("worker_id", address)) if info else address
    statuses = [view.status for view in views if view.status]
    # Several tasks may be in one process.
    memory = {child.pid: child.rss_bytes for child in worker.children}
    memory |= {child.shared_java_pid: child.shared_java_rss_bytes for child in worker.children}
    sizes = [size for size in memory.values() if size is not None]
    kind = "worker" if health.version else "-"
    return WorkerRow(
        address=address,
        worker_id=worker_id,
        url=health.url,
        kind="agent" if info or health.agent else kind,
        status=health.status,
        message=health.message,
        version=health.version,
        agent_version=health.agent_version,
        state=info.state if info else "",
        leader=bool(info and info.leader),
        phase=info.phase if info else None,
        connectors=sum(status.connector.worker_id == worker_id for status in statuses),
        tasks=sum(task.worker_id == worker_id for status in statuses for task in status.tasks),
        memory=sum(sizes) if sizes else None,
        silence=worker.silence,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Positions of sinks at `time_s` (of a monotonic clock), by connector and partition."""

    time_s: float
    places: Mapping[str, Mapping[TopicPartition, SinkPosition]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLook:
    """One worker; `info`, `children` and `rates` are an agent's.

    `rates`: records a second by the name of a task (`orders/0`). `silence`: why an answer has no
    `info`.
    """

    health: WorkerHealth
    info: AgentInfo | None = None
    children: tuple[AgentChild, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)
    silence: str = ""

    @property
    def url(self) -> str:
        return self.health.url


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLook:
    """A cluster. `positions` None: not known; `hanging` None: not looked for, or not known."""

    time_s: float
    kafka_cluster_id: str = ""
    workers: tuple[WorkerLook, ...] = ()
    views: Mapping[str, ConnectorView] = field(default_factory=dict)
    positions: Positions | None = None
    hanging: tuple[OpenProducer, ...] | None = None
    doubts: tuple[str, ...] = ()

    @property
    def children(self) -> dict[str, AgentChild]:
        """Child processes of all agents, by the name of their connector or task."""
        return {child.name: child for worker in self.workers for child in worker.children}

    @property
    def rates(self) -> dict[str, float]:
        """Records a second of all agents' tasks, by their names."""
        return {name: rate for worker in self.workers for name, rate in worker.rates.items()}
