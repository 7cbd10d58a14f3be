"""All child processes of a worker: of its connectors and tasks, and those of short jobs.

The module composes the modules beside it and makes no decisions. All methods are called on the
event loop and do not block it. A start is only a request: the listener gets its result. Configs are
raw; the child resolves `${provider:…}` references, so the worker process never holds a secret.

Metrics are put together from the reports of the children (Kafka: Worker's metric groups). A FAILED
task keeps its last metrics until it is started again or removed from this worker.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import LineLogged, StatsReported
from pyconnect_agent.channel.requests import Job, Lease, RunConnectorJob, RunTaskJob, SetLoggerLevel
from pyconnect_agent.children.child import Child, ChildEnd, kill_children
from pyconnect_agent.children.connectors import ConnectorChild, ConnectorChildren
from pyconnect_agent.children.jobs import Jobs
from pyconnect_agent.children.launch import Launcher, SharedProcesses
from pyconnect_agent.children.limits import TaskCgroups, TaskLimitWatch, resident_memory
from pyconnect_agent.children.logs import ChildLogs
from pyconnect_agent.children.offsets import OffsetChanges, OffsetService
from pyconnect_agent.children.ports import ChildDetails, ChildListener, ChildSettings, SourceOffsets
from pyconnect_agent.children.tasks import Inquiries, TaskChild, TaskChildren
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.log_lines import Item, LogQuestion
from pyconnect_agent.core.metric_values import CONNECTOR, TASK, WORKER, Metric, MetricValue, tagged
from pyconnect_agent.core.plugin_catalog import Catalog, PluginNotFoundError
from pyconnect_agent.core.reporting import STACKS_FOLLOW
from pyconnect_agent.core.restart_policy import NoRestart
from pyconnect_agent.process import long_lived

COUNTED_STATES = (
    State.RUNNING,
    State.PAUSED,
    State.FAILED,
    State.UNASSIGNED,
    State.DESTROYED,
    State.RESTARTING,
)


async def task_metrics(
    tasks: Mapping[ConnectorTaskId, TaskChild],
    ended: Mapping[ConnectorTaskId, StatsReported],
    inquiries: Inquiries,
) -> list[Metric]:
    """Ask all live tasks at once; use the last answer of a task that does not answer."""
    answers = await asyncio.gather(
        *(inquiries.statistics(task.child, mbeans=True) for task in tasks.values())
    )
    found: dict[ConnectorTaskId, tuple[State, StatsReported]] = {
        task_id: (State.FAILED, figures) for task_id, figures in ended.items()
    }
    for (task_id, task), answer in zip(tasks.items(), answers, strict=True):
        found[task_id] = (task.state, task.figures if answer is None else answer)
    metrics: list[Metric] = []
    counts: dict[str, Counter[State]] = {}
    for task_id in sorted(found):
        state, figures = found[task_id]
        counts.setdefault(task_id.connector, Counter())[state] += 1
        tags = {"connector": task_id.connector, "task": str(task_id.task)}
        metrics.append(Metric(group=TASK, name="status", value=state.value.lower(), tags=tags))
        metrics.extend(tagged(figures.metrics, tags))
        own = (*figures.plugins, *figures.mbeans)
        metrics.extend(replace(metric, tags={**tags, **metric.tags}) for metric in own)
    for connector, states in counts.items():
        values: dict[str, MetricValue] = {
            f"connector-{state.value.lower()}-task-count": states[state] for state in COUNTED_STATES
        }
        values["connector-total-task-count"] = states.total()
        metrics.extend(tagged({WORKER: values}, {"connector": connector}))
    return metrics


def connector_metrics(connectors: Mapping[str, ConnectorChild], catalog: Catalog) -> list[Metric]:
    metrics: list[Metric] = []
    for name, entry in sorted(connectors.items()):
        state = State.UNASSIGNED if entry.state is None else entry.state
        kind, class_name = "unknown", entry.config.get("connector.class") or "unknown"
        with contextlib.suppress(PluginNotFoundError):
            version_range = entry.config.get("connector.plugin.version")
            plugin = catalog.connector(class_name, version_range=version_range)
            kind, class_name = plugin.kind.value, plugin.class_name
        values: dict[str, MetricValue] = {
            "status": state.value.lower(),
            "connector-type": kind,
            "connector-class": class_name,
            "connector-version": entry.version or "unknown",
        }
        metrics.extend(tagged({CONNECTOR: values}, {"connector": name}))
    return metrics


LOG = logging.getLogger(__name__)

LOOKS_PER_TERM = 10
"""How often in its term a lease is compared with the membership, which has its own rhythm."""
FORCED_STACKS_S = 1.0
"""Time that a SIGKILL waits for the stacks of its process."""


class ChildProcesses:
    """The child processes of a worker, made and used on the event loop.

    `connect` sets `listener` before the first start: herder and children refer to each other.
    """

    def __init__(
        self, settings: ChildSettings, offset_store: SourceOffsets, *, launcher: Launcher
    ) -> None:
        self._settings = settings
        self._launches = ThreadPoolExecutor(1, thread_name_prefix="child-launch")
        self._listener: ChildListener | None = None
        self._confirmed_s: Callable[[], float | None] = time.monotonic
        self._offsets = OffsetService(offset_store)
        self._inquiries = Inquiries()
        self.tasks = TaskChildren(
            settings, self._child, self._connected, self._offsets, self._inquiries
        )
        self.connectors = ConnectorChildren(settings, self._child, self._connected, self._offsets)
        self._catalog = Catalog(settings.worker.plugins)
        self._shared = SharedProcesses(launcher, settings.agent_keys, self._catalog)
        self.jobs = Jobs(settings, self._child)
        self.offset_changes = OffsetChanges(settings, self._child, self._offsets)
        self._levels: dict[str, str] = {}
        self._leases: asyncio.Task[None] | None = None
        self._kills: set[asyncio.Task[None]] = set()
        self._logs = ChildLogs(settings.logs)
        self._limits = TaskLimitWatch(self.tasks, TaskCgroups.detect(), self._end_over_limit)
        self._watch: asyncio.Task[None] | None = None

    def connect(
        self, listener: ChildListener, *, confirmed_s: Callable[[], float | None] = time.monotonic
    ) -> None:
        """Set the listener, and the time from which leases count; None switches leases off."""
        self._listener = listener
        self._confirmed_s = confirmed_s

    async def start(self) -> None:
        """Begin to renew the children's leases."""
        self._logs.start()
        self._watch = long_lived.start_task("task limits", self._limits.run())
        if self._settings.lease_ms is not None:
            self._leases = long_lived.start_task(
                "child leases", self._renew_leases(self._settings.lease_ms)
            )

    async def stop(self, *, hurry: bool = False) -> None:
        """Stop all children within the graceful limits; with `hurry` kill them at once."""
        if hurry:
            await kill_children((*self.tasks.children(), *self.connectors.children()))
        else:
            await self.tasks.stop(tuple(self.tasks.running()))
            await self.connectors.stop(tuple(self.connectors.running()))
        await self.jobs.stop()
        await self.offset_changes.stop()
        await self._offsets.stop()
        for task in (self._leases, self._watch):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._launches.shutdown(wait=False)
        self._logs.stop()

    async def child_details(self) -> tuple[ChildDetails, ...]:
        """Return connectors and tasks, sorted, within a second even if children do not answer."""
        tasks = self.tasks.details()
        self._limits.sample()
        figures = await asyncio.gather(
            *(self._inquiries.statistics(task.child) for task in tasks.values())
        )
        found = [
            connector_details(name, entry) for name, entry in self.connectors.details().items()
        ]
        found.extend(
            task_details(task_id, task, answer)
            for (task_id, task), answer in zip(tasks.items(), figures, strict=True)
        )
        return tuple(sorted(found, key=lambda child: child.order))

    async def metrics(self) -> tuple[Metric, ...]:
        """Return metrics of connectors, tasks and their starts, within a second."""
        now_ms = time.monotonic() * 1000
        connectors, tasks = self.connectors, self.tasks
        of_tasks = await task_metrics(tasks.details(), tasks.ended(), self._inquiries)
        of_worker: dict[str, MetricValue] = {
            "connector-count": len(connectors.running()),
            "task-count": len(tasks.running() | tasks.ended().keys()),
            **connectors.startups.values(now_ms),
            **tasks.startups.values(now_ms),
        }
        return (
            *tagged({WORKER: of_worker}, {}),
            *connector_metrics(connectors.details(), self._catalog),
            *of_tasks,
        )

    def kill_task(self, task_id: ConnectorTaskId, *, force: bool, reason: str) -> int | None:
        """Begin to end a running task: by a stop, then SIGTERM, then SIGKILL; `force`: SIGKILL.

        Once its process is gone, the task is reported FAILED with `reason` and its stacks. Returns
        the pid of the process, None if the process is not started.
        """
        task = self.tasks.condemn(task_id, reason, NoRestart.KILLED)
        self._begin_kill(task, force=force, reason=reason)
        return task.child.pid

    def _begin_kill(self, task: TaskChild, *, force: bool, reason: str) -> None:
        """Begin to kill a task after reading its stacks, which show where it hung."""
        graceful_s = 0 if force else self._settings.task_shutdown_graceful_timeout_ms / 1000

        async def kill() -> None:
            try:
                async with asyncio.timeout(FORCED_STACKS_S if force else None):
                    stacks = await self._inquiries.stacks(task.child)
                remark = f"{STACKS_FOLLOW}\n{stacks}"
            except AgentError as error:
                remark = f"{STACKS_FOLLOW} none. {error.message}"
            except TimeoutError:
                remark = f"{STACKS_FOLLOW} none within {FORCED_STACKS_S:g} s."
            if task.killed_because == reason:
                task.killed_because = f"{reason}\n{remark}"
            await self.tasks.kill(task, graceful_s=graceful_s)

        ending = asyncio.get_running_loop().create_task(kill(), name=f"kill {task.child.name}")
        self._kills.add(ending)
        ending.add_done_callback(self._kills.discard)

    def _end_over_limit(self, task_id: ConnectorTaskId, trace: str) -> None:
        LOG.error("task is over a limit and is ended", extra={"task": str(task_id), "how": trace})
        self._begin_kill(self.tasks.condemn(task_id, trace), force=True, reason=trace)

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        """Return the kept lines: `lines`, `next`, and the `epoch` of their numbers."""
        return self._logs.lines(question)

    async def task_stacks(self, task_id: ConnectorTaskId) -> str:
        """Return the stacks of a running task; AgentError if its process shows none."""
        return await self._inquiries.stacks(self.tasks.details()[task_id].child)

    def _connected(self) -> ChildListener:
        if self._listener is None:
            raise RuntimeError("connect() was not called")
        return self._listener

    def _child(
        self,
        name: str,
        job: Job,
        on_message: Callable[[Message], None],
        on_exit: Callable[[ChildEnd], None],
    ) -> Child:
        item: Item | None = None
        if isinstance(job, RunTaskJob):
            item = job.task_id.connector, job.task_id.task
        elif isinstance(job, RunConnectorJob):
            item = job.connector, None

        def take(message: Message) -> None:
            if item is not None and isinstance(message, LineLogged):
                self._logs.add(item, message, child.pid)
            else:
                on_message(message)

        child = Child(
            name,
            job,
            launch=partial(self._shared.launch, name, job),
            launches=self._launches,
            on_message=take,
            on_exit=on_exit,
        )
        if self._settings.lease_ms is not None:
            child.send(self._lease(self._settings.lease_ms))
        for namespace, level in self._levels.items():
            child.send(SetLoggerLevel(namespace=namespace, level=level))
        return child

    def set_logger_level(self, namespace: str, level: str) -> None:
        """Set a level for running children and for children started later."""
        # The latest level goes last, because a new child gets the levels in this order.
        self._levels.pop(namespace, None)
        self._levels[namespace] = level
        # Processes that wait for a validation do not take levels.
        self.jobs.end_idle()
        message = SetLoggerLevel(namespace=namespace, level=level)
        for child in (*self.tasks.children(), *self.connectors.children()):
            child.send(message)

    async def _renew_leases(self, lease_ms: int) -> None:
        latest = self._lease(lease_ms)
        while True:
            await asyncio.sleep(lease_ms / 1000 / LOOKS_PER_TERM)
            lease = self._lease(lease_ms)
            if lease.valid_until_s > latest.valid_until_s:
                latest = lease
                for child in (*self.tasks.children(), *self.connectors.children()):
                    child.send(lease)

    def _lease(self, lease_ms: int) -> Lease:
        """Return the present lease; that of a worker without membership has expired."""
        confirmed_s = self._confirmed_s()
        return Lease(valid_until_s=0.0 if confirmed_s is None else confirmed_s + lease_ms / 1000)


def task_details(
    task_id: ConnectorTaskId, task: TaskChild, figures: StatsReported | None
) -> ChildDetails:
    """Return the details of a task; `figures` None: the child did not answer in time."""
    pid = task.child.pid
    common = ChildDetails(
        connector=task_id.connector,
        task=task_id.task,
        pid=pid,
        state=task.state if task.state_reported else None,
        since_ms=task.since_ms,
        rss_bytes=resident_memory(pid),
        cpu_percent=task.use.cpu_percent,
        limits=task.limits,
        responsive=figures is not None,
    )
    if figures is None:
        return common
    return replace(
        common,
        last_activity_ms=figures.last_activity_ms,
        last_commit_ms=figures.last_commit_ms,
        transaction_began_ms=figures.transaction_began_ms,
        queue_size=figures.queue_size,
        shared_java_pid=figures.shared_java_pid,
        shared_java_rss_bytes=resident_memory(figures.shared_java_pid),
    )


def connector_details(name: str, entry: ConnectorChild) -> ChildDetails:
    """Return a connector's details, which have no figures, and no pid without a process."""
    pid = None if entry.child is None else entry.child.pid
    return ChildDetails(
        connector=name,
        task=None,
        pid=pid,
        state=entry.state,
        since_ms=entry.since_ms,
        asleep=entry.is_asleep,
        rss_bytes=resident_memory(pid),
    )
