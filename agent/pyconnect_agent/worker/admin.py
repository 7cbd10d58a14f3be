"""The admin interface over the worker's configuration, the herder's state and the children.

Composition root. `AgentAdmin` implements `herder.port.WorkerAdmin`; `PhaseChange` writes the phase
of exactly-once into the worker's file and restarts the worker.
"""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.children.ports import ChildDetails
from pyconnect_agent.core.config.effective import EffectiveValue, effective_values
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import (
    AgentError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InternalError,
    NotAssignedError,
    NotFoundError,
)
from pyconnect_agent.core.group_protocol import ProtocolVersion
from pyconnect_agent.core.herder.instances import policy_of
from pyconnect_agent.core.herder.state import HerderState, MembershipPhase
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.log_lines import LogQuestion
from pyconnect_agent.core.metric_values import REBALANCE, RESTARTS, Metric, MetricValue, tagged
from pyconnect_agent.core.restart_policy import NO_RESTARTS, NoRestart, restarts_json, settled
from pyconnect_agent.herder.service import HerderService
from pyconnect_agent.process.config_file import PhaseFile, PropertiesFile
from pyconnect_agent.process.worker_process import Restart, restart_of
from pyconnect_agent.worker.acls import WorkerAcls
from pyconnect_clients.acls.needs import ConnectorFacts
from pyconnect_clients.installation import version

PHASES = ("disabled", "preparing", "enabled")
NOT_NEEDED = "not needed"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class PhaseChange:
    """A change of phase, on the event loop. `file`: as at the start; `phase` None: standalone."""

    def __init__(
        self, file: PropertiesFile, restart: Restart, *, allowed: bool, phase: str | None
    ) -> None:
        self._file = PhaseFile(path=file.path)
        self._sha256 = file.sha256
        self._restart = restart
        self._allowed = allowed
        self._phase = phase
        self._changing = asyncio.Lock()
        self._run_id: str | None = None
        self._needed = False

    @property
    def restart_method(self) -> str:
        return self._restart.method

    async def last_run_id(self) -> str | None:
        """Return the id of the run that changed the file last; None if there is none."""
        change = await asyncio.to_thread(self._file.last_change)
        return None if change is None else change.run_id

    async def change(self, phase: str, run_id: str, expected_sha256: str) -> dict[str, Any]:
        """Write the phase to the file; call `restart` next. Safe to repeat after a lost answer."""
        if phase not in PHASES:
            raise BadRequestError(f"'{phase}' is not a phase; use one of {', '.join(PHASES)}.")
        if not _RUN_ID.fullmatch(run_id):
            raise BadRequestError(f"'{run_id}' cannot be a run's id: letters, digits, . _ and -.")
        if not self._allowed:
            raise ForbiddenError(
                "This worker's phase may not be changed over REST. Set"
                " agent.allow.phase.change=true in its properties and restart it, or change"
                " exactly.once.source.support there yourself."
            )
        if self._phase is None:
            raise ConflictError("A standalone worker has no phase of exactly-once.")
        async with self._changing:
            if self._run_id not in (None, run_id):
                raise ConflictError(
                    f"Run {self._run_id} has changed the file; it is in force after a restart."
                    " Wait for that, then ask again."
                )
            sha256 = await asyncio.to_thread(self._file.change, phase, run_id, expected_sha256)
            self._needed = sha256 != self._sha256
            # A change without a restart is complete.
            self._run_id = run_id if self._needed else None
        return {
            "phase": phase,
            "run_id": run_id,
            "config_sha256": sha256,
            "restart": self._restart.method if self._needed else NOT_NEEDED,
        }

    def restart(self) -> None:
        """Begin the restart if the phase that `change` wrote is not in force."""
        if self._needed:
            self._restart.begin()


KILLED = "The task was killed through the admin interface ({how}). It is not restarted by itself."


class AgentAdmin:
    """The `WorkerAdmin` of a worker that starts now; `url` is the advertised one, `file` as read.

    `acls` None: a standalone worker, without phases. `plugin_problems`: why plugins were left out.
    """

    def __init__(
        self,
        config: WorkerConfig,
        file: PropertiesFile,
        url: str,
        herder: HerderService,
        children: ChildProcesses,
        *,
        acls: WorkerAcls | None,
        plugin_problems: tuple[str, ...],
        stop_and_run_again: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._values = effective_values(config, file.entries)
        self._file = file
        self._url = url
        self._herder = herder
        self._children = children
        self._acls = acls
        self._plugin_problems = plugin_problems
        self._now_ms = now_ms
        self._started_ms = now_ms()
        distributed = config if isinstance(config, DistributedConfig) else None
        self._group_id = distributed.group_id if distributed else None
        self._support = distributed.exactly_once_source_support.value if distributed else None
        self._phase = PhaseChange(
            file,
            restart_of(config, stop_and_run_again),
            allowed=distributed is not None and distributed.agent_allow_phase_change,
            phase=self._support,
        )

    async def about(self) -> dict[str, Any]:
        file, state = self._file, self._herder.state
        sha256 = await asyncio.to_thread(file_sha256, file.path)
        membership = state.membership
        distributed = self._group_id is not None
        return {
            "version": version(),
            "pid": os.getpid(),
            "started_ms": self._started_ms,
            "worker_id": state.settings.worker_id,
            "url": self._url,
            "mode": "distributed" if distributed else "standalone",
            "state": worker_state(state),
            "group_id": self._group_id,
            "leader": state.is_leader,
            "leader_url": state.leader_url,
            "generation": None if membership is None else membership.generation,
            "protocol": (
                ProtocolVersion(membership.assignment.version).name.lower()
                if membership is not None and distributed
                else None
            ),
            "exactly_once_source_support": self._support,
            "config_file": str(file.path),
            "config_sha256": sha256,
            "config_outdated": sha256 != file.sha256,
            "plugin_problems": list(self._plugin_problems),
            "restart": self._phase.restart_method,
            "last_upgrade_run_id": await self._phase.last_run_id(),
        }

    def config(self) -> tuple[EffectiveValue, ...]:
        return self._values

    async def children(self) -> list[dict[str, Any]]:
        shown = list(await self._children.child_details())
        state, now_ms, wall_ms = self._herder.state, self._now_ms(), int(time.time() * 1000)
        present = {(child.connector, child.task) for child in shown}
        for connector, share in state.work.items():
            for task in share.tasks_assigned:
                status = self._herder.task_status(connector, task)
                if (
                    (connector, task) not in present
                    and status is not None
                    and status.worker_id == state.settings.worker_id
                ):
                    # A task of this worker whose process has ended, by a failure or a kill.
                    ended = ChildDetails(
                        connector=connector, task=task, pid=None, state=status.state, since_ms=None
                    )
                    shown.append(ended)
        documents = []
        for child in sorted(shown, key=lambda child: child.order):
            work = state.work.get(child.connector)
            history = NO_RESTARTS if work is None else work.restarts.get(child.task, NO_RESTARTS)
            restarts = restarts_json(history, policy_of(state, child.connector), now_ms)
            documents.append({**child_json(child, wall_ms), "restarts": restarts})
        return documents

    def connectors(self) -> dict[str, Any]:
        snapshot = self._herder.state.snapshot
        states = {name: snapshot.target_state(name) for name in snapshot.connectors()}
        return {name: {"target_state": state.value} for name, state in states.items() if state}

    async def metrics(self) -> tuple[Metric, ...]:
        """Return the worker's metrics; those of rebalances only for a distributed worker."""
        state, now_ms = self._herder.state, self._now_ms()
        found = [*await self._children.metrics()]
        # The restarts of connectors and tasks that have failed on this worker.
        for connector, share in sorted(state.work.items()):
            policy = policy_of(state, connector) if share.restarts else None
            for task, history in share.restarts.items():
                assert policy is not None
                shown = settled(history, policy, now_ms)
                restarts: dict[str, MetricValue] = {
                    "restart-attempts": len(shown.attempts),
                    "restart-attempts-total": shown.total,
                    "next-restart-timestamp": shown.next_ms or 0,
                    "given-up": int(shown.ended is NoRestart.LIMIT),
                }
                tags = {"connector": connector, **({} if task is None else {"task": str(task)})}
                found += tagged({RESTARTS: restarts}, tags)
        if state.settings.standalone:
            return tuple(found)
        member = state.membership
        values: dict[str, MetricValue] = {
            "connect-protocol": (
                "" if member is None else ProtocolVersion(member.assignment.version).name.upper()
            ),
            "leader-name": state.leader_url or "",
            "epoch": -1 if member is None else member.generation,
            **self._herder.rebalances.values(now_ms),
        }
        return (*found, *tagged({REBALANCE: values}, {}))

    def kill(self, task_id: ConnectorTaskId, *, force: bool) -> int | None:
        self._check_runs_here(task_id)
        how = "at once" if force else "asked to stop, then SIGTERM, then SIGKILL"
        return self._children.kill_task(task_id, force=force, reason=KILLED.format(how=how))

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        return self._children.logs(question)

    async def stacks(self, task_id: ConnectorTaskId) -> str:
        self._check_runs_here(task_id)
        try:
            return await self._children.task_stacks(task_id)
        except AgentError as error:
            raise InternalError(error.message) from error

    async def change_phase(self, phase: str, run_id: str, expected_sha256: str) -> dict[str, Any]:
        return await self._phase.change(phase, run_id, expected_sha256)

    def restart_for_phase(self) -> None:
        self._phase.restart()

    async def acls(self, phase: str | None) -> dict[str, Any]:
        if self._acls is None:
            raise BadRequestError("A standalone worker has no phases whose grants can be checked.")
        state = self._herder.state
        snapshot = state.snapshot
        connectors = tuple(
            ConnectorFacts(
                name=name,
                type=state.settings.connector_type(config),
                config=config,
                tasks=snapshot.task_count(name),
                fenced_tasks=snapshot.task_count_records.get(name),
                topics=self._herder.active_topics(name),
            )
            for name, config in sorted(snapshot.connector_configs.items())
        )
        try:
            return await asyncio.to_thread(self._acls.report, phase, connectors)
        except ValueError as error:
            raise BadRequestError(
                f"phase={phase}: must be disabled, preparing or enabled."
            ) from error

    def drain(self, *, undrain: bool) -> None:
        self._herder.request_drain(undrain=undrain)

    def _check_runs_here(self, task_id: ConnectorTaskId) -> None:
        if task_id in self._children.tasks.running():
            return
        state = self._herder.state
        if not state.snapshot.contains(task_id.connector):
            raise NotFoundError(f"Connector {task_id.connector} not found")
        if task_id not in state.snapshot.tasks(task_id.connector):
            raise NotFoundError(f"Unknown task: {task_id}")
        status = self._herder.task_status(task_id.connector, task_id.task)
        last = "unknown" if status is None else status.state.value
        if status is None or status.worker_id == state.settings.worker_id:
            raise ConflictError(f"Task {task_id} has no process; its last state is {last}.")
        if status.state in (State.UNASSIGNED, State.FAILED):
            raise ConflictError(
                f"Task {task_id} has no process; its last state, at worker {status.worker_id}, is"
                f" {last}."
            )
        # A worker's id is its host and port; most groups have one protocol.
        usual = f"{urlsplit(self._url).scheme}://{status.worker_id}/"
        url = state.owner_url(task_id) or usual
        raise NotAssignedError(f"Task {task_id} runs on another worker: {url}", target_url=url)


def worker_state(state: HerderState) -> str:
    """Return the state of the worker in one word."""
    match state.phase:
        case MembershipPhase.STARTING:
            return "starting"
        case MembershipPhase.STOPPED:
            return "stopping"
        case MembershipPhase.DRAINED:
            return "drained"
        case MembershipPhase.DRAINING | MembershipPhase.LEAVING:
            return "draining"
        case MembershipPhase.RESOLVED:
            return "draining" if state.drain_wanted else "active"
        case _:
            return "draining" if state.drain_wanted else "rebalancing"


def child_json(child: ChildDetails, wall_ms: int) -> dict[str, Any]:
    """Return a child as JSON. `last_activity` is a source's poll or a sink's put; times in ms.

    `wall_ms`: the wall clock, by which the child measures its own times.
    """
    began_ms = child.transaction_began_ms
    return {
        "connector": child.connector,
        "task": child.task,
        "pid": child.pid,
        "state": None if child.state is None else child.state.value,
        "since_ms": child.since_ms,
        "asleep": child.asleep,
        "rss_bytes": child.rss_bytes,
        "cpu_percent": None if child.cpu_percent is None else round(child.cpu_percent, 1),
        "limits": child.limits.to_json(),
        "responsive": child.responsive,
        "last_activity_ms": child.last_activity_ms,
        "last_commit_ms": child.last_commit_ms,
        "open_transaction_age_ms": None if began_ms is None else max(0, wall_ms - began_ms),
        "queue_size": child.queue_size,
        "shared_java_pid": child.shared_java_pid,
        "shared_java_rss_bytes": child.shared_java_rss_bytes,
    }


def file_sha256(file: Path) -> str | None:
    """Return the digest of a file; None if the file cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
