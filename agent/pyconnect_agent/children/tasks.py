"""The task children: start, target state, stop, and the handling of their end.

Kafka: the task half of `Worker` and `WorkerTask`'s life cycle. A cancelled task (killed because it
was late) never reports a state again.

The worker process asks a running child for its figures and its stacks, on the event loop. The
child's control thread answers, even while a plugin hangs in Python code. If it does not answer, a
signal handler can still write the stacks without the interpreter: see `tasks.trace`.
"""

import asyncio
import itertools
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyconnect_agent.channel import STACKS_FILE, STACKS_SIGNAL, Message
from pyconnect_agent.channel.reports import (
    ConfirmStart,
    FindOffsetKeys,
    ReadOffsetsRequest,
    RequestFailed,
    StacksDumped,
    StateReported,
    StatsReported,
    TopicUsed,
    WriteOffsetsRequest,
)
from pyconnect_agent.channel.requests import (
    DumpStacks,
    ReportStats,
    RunTaskJob,
    SetTargetStateRequest,
    StartConfirmed,
)
from pyconnect_agent.children.child import Child, ChildEnd, kill_children, stop_children
from pyconnect_agent.children.offsets import OffsetService
from pyconnect_agent.children.ports import ChildFactory, ChildListener, ChildSettings
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.metric_values import Startups
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.core.restart_policy import NoRestart
from pyconnect_agent.core.task_limits import NO_LIMITS, TaskLimits, UseOverTime

STATISTICS_TIMEOUT_S = 1.0
STACKS_TIMEOUT_S = 2.0
SIGNAL_TIMEOUT_S = 3.0
QUIET_S = 0.5
"""The time without new output after which a dump is complete: faulthandler writes without
pauses.
"""
LOOK_INTERVAL_S = 0.05

BY_SIGNAL = "The interpreter did not answer: the threads as the signal handler saw them.\n\n"


class StacksUnavailableError(AgentError):
    """Both ways to the stacks failed: the process is frozen, or in an uninterruptible call."""


class Inquiries:
    """Questions to children and their answers; each child may be asked any number of times."""

    def __init__(self) -> None:
        self._request_ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Message]] = {}

    def answered(self, message: StatsReported | StacksDumped) -> None:
        """Pass an answer to its waiter, which may be gone."""
        future = self._waiting.get(message.request_id)
        if future is not None and not future.done():
            future.set_result(message)

    async def statistics(self, child: Child, *, mbeans: bool = False) -> StatsReported | None:
        """Return the figures of a child; None without an answer in time."""
        answer = await self._ask(
            child,
            lambda number: ReportStats(request_id=number, mbeans=mbeans),
            STATISTICS_TIMEOUT_S,
        )
        return answer if isinstance(answer, StatsReported) else None

    async def stacks(self, child: Child) -> str:
        """Return the stacks of a child. Raises StacksUnavailableError if both ways fail."""
        answer = await self._ask(
            child, lambda number: DumpStacks(request_id=number), STACKS_TIMEOUT_S
        )
        if isinstance(answer, StacksDumped):
            return answer.text
        dumped = await _dump_by_signal(child)
        if not dumped:
            raise StacksUnavailableError(
                f"The process of {child.name} (pid {child.pid}) shows no stacks; it is frozen or"
                " waits in the kernel. Its state: ps -o stat,wchan -p PID"
            )
        return BY_SIGNAL + dumped

    async def _ask(
        self, child: Child, question: Callable[[int], Message], timeout_s: float
    ) -> Message | None:
        request_id = next(self._request_ids)
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        gone = asyncio.ensure_future(child.gone())
        try:
            child.send(question(request_id))
            waits: set[asyncio.Future[Any]] = {future, gone}
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return future.result() if future.done() else None
        finally:
            gone.cancel()
            del self._waiting[request_id]


async def _dump_by_signal(child: Child) -> str:
    """Return the dump of faulthandler; empty if none comes in time."""
    file = None if child.pid is None else _stacks_file(child.pid)
    if file is None:
        return ""
    loop = asyncio.get_running_loop()
    try:
        os.truncate(file, 0)
        child.signal(STACKS_SIGNAL)
        deadline_s = loop.time() + SIGNAL_TIMEOUT_S
        size, grown_s = 0, loop.time()
        while loop.time() < deadline_s and not (size and loop.time() - grown_s >= QUIET_S):
            await asyncio.sleep(LOOK_INTERVAL_S)
            if (now := file.stat().st_size) != size:
                size, grown_s = now, loop.time()
        return file.read_text(errors="replace")
    except OSError:
        return ""  # the process has ended meanwhile


def _stacks_file(pid: int) -> Path | None:
    """Find the memory file among the descriptors of a child; None if there is none."""
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if str(descriptor.readlink()).startswith(f"/memfd:{STACKS_FILE}"):
                return descriptor
    except OSError:
        pass
    return None


LOG = logging.getLogger(__name__)

NOTHING_TOLD = StatsReported()
FINAL_STATES = frozenset({State.FAILED, State.UNASSIGNED})


@dataclass(slots=True)
class TaskChild:
    """A live task process and its last reports.

    `since_ms`: the time of its start or of its change to `state`, epoch ms. `killed_because`: the
    reason of a kill under way; its own reports of a state are then ignored. `no_restart`: the
    reason against an automatic restart after the kill. `came_up`: whether its start has succeeded
    or failed. `start_number`, `start_request_id`: the numbers of its question whether it may start,
    for the listener and for the process. `figures`: the last report of its work. `use`: its use of
    the host at each check.
    """

    child: Child
    since_ms: int
    state: State = State.UNASSIGNED
    state_reported: bool = False
    version: str | None = None
    killed_because: str | None = None
    no_restart: NoRestart | None = None
    came_up: bool = False
    start_number: int = 0
    start_request_id: int = 0
    figures: StatsReported = NOTHING_TOLD
    limits: TaskLimits = NO_LIMITS
    use: UseOverTime = field(default_factory=UseOverTime)
    topics: set[str] = field(default_factory=set)


class TaskChildren:
    """Owns the processes of the tasks; called on the event loop only."""

    def __init__(
        self,
        settings: ChildSettings,
        factory: ChildFactory,
        listener: Callable[[], ChildListener],
        offsets: OffsetService,
        inquiries: Inquiries,
    ) -> None:
        self._settings = settings
        self._factory = factory
        self._listener = listener
        self._offsets = offsets
        self._inquiries = inquiries
        self._tasks: dict[ConnectorTaskId, TaskChild] = {}
        self._ended: dict[ConnectorTaskId, StatsReported] = {}
        self._start_numbers = itertools.count(1)
        self.startups = Startups("task", settings.sampling)
        self.over_limit: Callable[[ConnectorTaskId], str | None] = lambda _: None
        """Returns the trace of a process that the kernel ended, else None; called for each ended
        process.
        """

    def start(
        self,
        task_id: ConnectorTaskId,
        connector_config: ConnectorConfig,
        task_config: ConnectorConfig,
        target_state: TargetState,
        *,
        task_count: int = 0,
    ) -> None:
        """Start a task; `task_count` is for `tasks.max.enforce`, 0: no check."""
        if task_id in self._tasks:
            raise AgentError(f"Task already exists in this worker: {task_id}")
        job = RunTaskJob(
            task_id=task_id,
            worker=self._settings.worker,
            connector_config=dict(connector_config),
            task_config=dict(task_config),
            target_state=target_state,
            task_count=task_count,
            lease_ms=self._settings.lease_ms,
        )
        child = self._factory(
            f"task {task_id}",
            job,
            lambda message: self._message(task_id, message),
            lambda end: self._exit(task_id, end),
        )
        limits = self._settings.agent_keys.of_connector(connector_config).limits
        self._tasks[task_id] = TaskChild(child, since_ms=_now_ms(), limits=limits)
        self._ended.pop(task_id, None)

    async def stop(self, task_ids: Sequence[ConnectorTaskId]) -> None:
        """Stop tasks within one `task.shutdown.graceful.timeout.ms`; return when all are gone."""
        children = [self._tasks[task_id].child for task_id in task_ids if task_id in self._tasks]
        graceful_s = self._settings.task_shutdown_graceful_timeout_ms / 1000
        await stop_children(children, graceful_s=graceful_s)
        for task_id in task_ids:
            self._ended.pop(task_id, None)

    def condemn(
        self, task_id: ConnectorTaskId, reason: str, no_restart: NoRestart | None = None
    ) -> TaskChild:
        """Mark a task to be FAILED with `reason` once it is gone; an earlier reason stays."""
        task = self._tasks[task_id]
        if task.killed_because is None:
            task.killed_because = reason
        task.no_restart = task.no_restart or no_restart
        return task

    async def kill(self, task: TaskChild, *, graceful_s: float) -> None:
        """End a condemned task; returns when it is gone."""
        if graceful_s > 0:
            await stop_children((task.child,), graceful_s=graceful_s)
        else:
            await kill_children((task.child,))

    def answer_start(self, task_id: ConnectorTaskId, number: int, refusal: str | None) -> None:
        """Let the process that asked start, and never its successor; with `refusal` it fails."""
        task = self._tasks.get(task_id)
        if task is None or task.start_number != number:
            return
        request_id = task.start_request_id
        if refusal is None:
            task.child.send(StartConfirmed(request_id=request_id))
        else:
            task.child.send(
                RequestFailed(
                    request_id=request_id, error_class="ConnectException", message=refusal
                )
            )

    def set_target_state(self, task_id: ConnectorTaskId, target_state: TargetState) -> None:
        task = self._tasks.get(task_id)
        if task is not None:
            task.child.send(SetTargetStateRequest(target_state=target_state))

    def running(self) -> frozenset[ConnectorTaskId]:
        return frozenset(self._tasks)

    def children(self) -> tuple[Child, ...]:
        return tuple(task.child for task in self._tasks.values())

    def details(self) -> dict[ConnectorTaskId, TaskChild]:
        """Return the tasks for the admin interface, which must not change them."""
        return dict(self._tasks)

    def ended(self) -> dict[ConnectorTaskId, StatsReported]:
        """Return the last reports of FAILED tasks without a process that this worker still has."""
        return dict(self._ended)

    def _message(self, task_id: ConnectorTaskId, message: Message) -> None:
        task = self._tasks[task_id]
        if task.child.cancelled:
            return
        match message:
            case StateReported() if task.killed_because is None:
                if task.state is not message.state:
                    task.since_ms = _now_ms()
                task.state, task.state_reported = message.state, True
                task.version = message.version or task.version
                self._report(task_id, task, message.reported(task.version))
            case ConfirmStart(request_id=request_id):
                task.start_number, task.start_request_id = next(self._start_numbers), request_id
                self._listener().task_start_asked(task_id, task.start_number)
            case TopicUsed():
                self._listener().topic_used(task_id, message.topic)
            case ReadOffsetsRequest() | WriteOffsetsRequest() | FindOffsetKeys():
                self._offsets.serve(task.child, message)
            case StatsReported():
                task.figures = message
                if task_id in self._ended:
                    self._ended[task_id] = message
                self._inquiries.answered(message)
            case StacksDumped():
                self._inquiries.answered(message)
            case StateReported():
                pass
            case _:
                LOG.error(
                    "task process sent a message that is not for a task",
                    extra={"task": str(task_id), "kind": type(message).__name__},
                )

    def _exit(self, task_id: ConnectorTaskId, end: ChildEnd) -> None:
        task = self._tasks.pop(task_id)
        ended_by_kernel = self.over_limit(task_id)
        if task.killed_because is None and not task.child.cancelled:
            task.killed_because = ended_by_kernel
        version = task.version
        if task.killed_because is not None:
            failed = Reported(
                state=State.FAILED,
                trace=task.killed_because,
                version=version,
                no_restart=task.no_restart,
            )
            self._report(task_id, task, failed)
            return
        gone = Reported(state=State.UNASSIGNED, version=version)
        if end.lease_expired:
            LOG.warning("task ended because its lease ran out", extra={"task": str(task_id)})
            self._listener().lease_expired()
            self._listener().reported(task_id, gone)
            return
        if task.child.cancelled or (task.state_reported and task.state in FINAL_STATES):
            return
        text = end.describe("task process", f"(task {task_id})")
        LOG.error("task process ended by itself", extra={"task": str(task_id), "how": text})
        if task.child.stopping:
            self._listener().reported(task_id, gone)
        else:
            failed = Reported(state=State.FAILED, trace=text, version=version)
            self._report(task_id, task, failed)

    def _report(self, task_id: ConnectorTaskId, task: TaskChild, report: Reported) -> None:
        """Count a start, and keep the figures of a failed task."""
        if not task.came_up:
            task.came_up = self.startups.reported(report.state, time.monotonic() * 1000)
        if report.state is State.FAILED:
            self._ended[task_id] = task.figures
        self._listener().reported(task_id, report)


def _now_ms() -> int:
    return int(time.time() * 1000)
