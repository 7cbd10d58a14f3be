"""The requests of the herder to the children, and their reports.

All methods are called on the event loop and do not block it. A start is only a request: what
becomes of it arrives at the listener. Configs are raw; `${provider:…}` references are resolved in
the child, so the worker process never holds a secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyconnect_agent.core.config.validation import ConfigInfos
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.log_lines import LogQuestion
from pyconnect_agent.core.metrics.values import Metric
from pyconnect_agent.core.offsets.connector_offsets import CommittedOffset
from pyconnect_agent.core.restart_policy import NoRestart
from pyconnect_agent.core.task_limits import NO_LIMITS, TaskLimits
from pyconnect_api.config_key import KeyInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfigsGenerated:
    """Raw task configs, completed with the framework's keys, references restored.

    `connector_config_changed`: the resolved connector config differs from the resolved
    `applied_config` that was passed in (True when that was None). `values_changed`: config
    providers supply other values than they did when this worker last asked, for the same config.
    """

    configs: tuple[ConnectorConfig, ...]
    connector_config_changed: bool
    values_changed: bool = False


class SourceOffsets(Protocol):
    """The part of the worker's offset store that children use; reads and writes block."""

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        """Read to the end first, then look up."""
        ...

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        """Write and wait for the acknowledgement of all; None is a tombstone."""
        ...

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        """Every live raw entry of a connector; does not block."""
        ...

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        """Find the live raw keys of equal content, newest first; does not block."""
        ...


class ChildListener(Protocol):
    """Implemented by the herder's shell; called on the event loop."""

    def connector_state(
        self,
        connector: str,
        state: State,
        *,
        trace: str | None,
        version: str | None,
        no_restart: NoRestart | None = None,
    ) -> None:
        """RUNNING, PAUSED, STOPPED, FAILED or UNASSIGNED (after a stop).

        `no_restart`: why a restart would not help what is FAILED.
        """
        ...

    def task_state(
        self,
        task_id: ConnectorTaskId,
        state: State,
        *,
        trace: str | None,
        version: str | None,
        no_restart: NoRestart | None = None,
    ) -> None: ...

    def task_start_asked(self, task_id: ConnectorTaskId, request_id: int) -> None:
        """An exactly-once task asks to begin; to be answered with `Children.answer_task_start`.

        `request_id` is of this question of this process: no other one gets the same.
        """
        ...

    def task_reconfiguration_requested(self, connector: str) -> None: ...

    def topic_used(self, task_id: ConnectorTaskId, topic: str) -> None:
        """Once per task and topic; the listener consults the status store before writing."""
        ...

    def config_ttl_expired(self, connector: str) -> None:
        """A config provider's TTL asks for a restart of the connector (`config.action.reload`)."""
        ...

    def lease_expired(self) -> None:
        """A child got no lease in time: this process was frozen, or its membership was lost."""
        ...


class Children(Protocol):
    """One child process per running connector and task."""

    async def start(self) -> None:
        """Begin to renew the children's leases."""
        ...

    async def stop(self, *, hurry: bool = False) -> None:
        """Stop everything within the graceful limits; with `hurry` kill at once."""
        ...

    def start_connector(
        self, connector: str, config: ConnectorConfig, target_state: TargetState
    ) -> None:
        """A connector whose target state is STOPPED gets no process; its state is reported."""
        ...

    async def stop_connectors(self, connectors: Sequence[str]) -> None:
        """Returns when all are gone; at most 5 s gracefully for all together, then killed."""
        ...

    def set_connector_target_state(self, connector: str, target_state: TargetState) -> None: ...

    async def generate_task_configs(
        self, connector: str, config: ConnectorConfig, applied_config: ConnectorConfig | None
    ) -> TaskConfigsGenerated:
        """Raise `pyconnect_api` ConnectException texts as AgentError.

        Too many tasks, with enforcement, also report the connector FAILED.
        """
        ...

    def start_task(
        self,
        task_id: ConnectorTaskId,
        connector_config: ConnectorConfig,
        task_config: ConnectorConfig,
        target_state: TargetState,
        *,
        task_count: int = 0,
    ) -> None:
        """`task_count` is of the whole set, for `tasks.max.enforce`; 0 is not checked."""
        ...

    def answer_task_start(
        self, task_id: ConnectorTaskId, request_id: int, refusal: str | None
    ) -> None:
        """Let a task begin that asked for it; with `refusal` it fails with this text."""
        ...

    async def stop_tasks(self, task_ids: Sequence[ConnectorTaskId]) -> None:
        """Returns when all are gone; `task.shutdown.graceful.timeout.ms` for all together."""
        ...

    def set_task_target_state(
        self, task_id: ConnectorTaskId, target_state: TargetState
    ) -> None: ...

    def set_logger_level(self, namespace: str, level: str) -> None:
        """Of children that run, and of those started later."""
        ...

    def running_connectors(self) -> frozenset[str]: ...
    def running_tasks(self) -> frozenset[ConnectorTaskId]: ...

    async def fence_producers(
        self,
        connector: str,
        config: ConnectorConfig,
        transactional_ids: Sequence[str],
        timeout_ms: int,
        *,
        ids_if_permitted: Sequence[str] = (),
    ) -> None:
        """Initialise the ids in a short-lived child, as the connector's admin client connects.

        Raises RequestError when one of them could not be fenced, except for want of the right to
        use one of `ids_if_permitted`.
        """
        ...

    async def prepare_offset_change(
        self,
        connector: str,
        config: ConnectorConfig,
        offsets: bytes | None,
        timeout_ms: int,
    ) -> bool:
        """Ask the connector, in a child that then waits; see `effects.PrepareOffsetChange`.

        Raises RequestError with Kafka Connect's text; nothing was written then.
        """
        ...

    async def commit_offset_change(self, connector: str) -> None:
        """Have what was prepared written and read back. Raises RequestError as above."""
        ...

    def abandon_offset_change(self, connector: str) -> None:
        """Forget what was prepared; harmless without."""
        ...

    async def validate(self, config: Mapping[str, str | None], timeout_ms: int) -> ConfigInfos:
        """In a short-lived child: plugin code may hang or exit without harm."""
        ...

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[KeyInfo, ...]: ...

    async def consumer_offsets(
        self, connector: str, config: ConnectorConfig, timeout_ms: int
    ) -> tuple[CommittedOffset, ...] | None:
        """Of a sink connector's group, in a short-lived child; None for a source.

        Raise RequestTimedOutError, or InternalError for whatever else prevents an answer.
        """
        ...

    async def own_offsets(
        self, connector: str, config: ConnectorConfig, timeout_ms: int
    ) -> Mapping[bytes, bytes]:
        """Raw entries in a source connector's own offsets topic, none without one; as above."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildDetails:
    """One child process. `task` None: the connector itself; `pid` None: it has no process (yet).

    `since_ms`: when it came into its state, None when that is not known here. Times are epoch
    milliseconds, sizes bytes; `cpu_percent` of one processor, over the last minute.
    Figures are None where a child has none, or did not
    answer in time (`responsive` is False then).
    """

    connector: str
    task: int | None
    pid: int | None
    state: State | None
    since_ms: int | None
    rss_bytes: int | None = None
    cpu_percent: float | None = None
    limits: TaskLimits = NO_LIMITS
    responsive: bool = True
    last_activity_ms: int | None = None
    last_commit_ms: int | None = None
    transaction_began_ms: int | None = None
    queue_size: int | None = None


class ChildrenAdmin(Protocol):
    """What an operator may see of the children and do to them."""

    def running_tasks(self) -> frozenset[ConnectorTaskId]: ...

    async def child_details(self) -> tuple[ChildDetails, ...]:
        """Connectors and tasks, sorted; at most a second, however many do not answer."""
        ...

    async def metrics(self) -> tuple[Metric, ...]:
        """Of connectors, tasks and their starts; at most a second."""
        ...

    def kill_task(self, task_id: ConnectorTaskId, *, force: bool, reason: str) -> int | None:
        """Begin to end a running task: in order, then by SIGTERM, then SIGKILL; `force`: SIGKILL.

        It is reported FAILED with `reason` and its stacks once its process is gone. Returns the
        process' pid, None when it has none yet.
        """
        ...

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        """The lines that are kept: `lines`, `next`, and the `epoch` in which they are numbered."""
        ...

    async def task_stacks(self, task_id: ConnectorTaskId) -> str:
        """Raise AgentError when the process of a running task shows none."""
        ...
