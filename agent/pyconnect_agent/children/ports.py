"""The requests of the herder to the children, and their reports.

All methods are called on the event loop and do not block it. A start is only a request: the
listener gets its result. Configs are raw; the child resolves `${provider:…}` references, so the
worker process never holds a secret.
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
    `applied_config` that was passed in (True when that was None). `values_changed`: for the same
    config the config providers supply other values than at this worker's last request.
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

        `no_restart`: why a restart would not help a FAILED connector.
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
        """An exactly-once task asks to begin; the answer is `Children.answer_task_start`.

        `request_id` identifies this question of this process and is never used again.
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
        """A child got no lease in time: this process was frozen, or it lost its membership."""
        ...


class ChildJobs(Protocol):
    """Questions that short-lived children answer: plugin code may hang or exit without harm."""

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

        Raises RequestError if an id could not be fenced, except a denied one of `ids_if_permitted`.
        """
        ...

    async def validate(self, config: Mapping[str, str | None], timeout_ms: int) -> ConfigInfos:
        """Raise BadRequestError for an unusable `connector.class`; other errors as below."""
        ...

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[KeyInfo, ...]: ...

    async def consumer_offsets(
        self, connector: str, config: ConnectorConfig, timeout_ms: int
    ) -> tuple[CommittedOffset, ...] | None:
        """Return a sink group's committed offsets, by a short-lived child; None for a source.

        Raise RequestTimedOutError, or InternalError if the child fails in another way.
        """
        ...

    async def own_offsets(
        self, connector: str, config: ConnectorConfig, timeout_ms: int
    ) -> Mapping[bytes, bytes]:
        """Return raw entries of a source's own offsets topic, empty without; errors as above."""
        ...


class OffsetChangeJobs(Protocol):
    """Changes of offsets, each in a child that waits between its two steps."""

    async def prepare(
        self,
        connector: str,
        config: ConnectorConfig,
        offsets: bytes | None,
        timeout_ms: int,
    ) -> bool:
        """Ask the connector, in a child that then waits; see `effects.PrepareOffsetChange`.

        Raises RequestError with Kafka Connect's text, before anything was written.
        """
        ...

    async def commit(self, connector: str) -> None:
        """Write the prepared change and read it back. Raises RequestError as above."""
        ...

    def abandon(self, connector: str) -> None:
        """Drop the prepared change; without one do nothing."""
        ...


class Children(Protocol):
    """One child process per running connector and task, and those of short jobs."""

    @property
    def jobs(self) -> ChildJobs: ...
    @property
    def offset_changes(self) -> OffsetChangeJobs: ...

    async def start(self) -> None:
        """Begin to renew the children's leases."""
        ...

    async def stop(self, *, hurry: bool = False) -> None:
        """Stop all children within the graceful limits; with `hurry` kill them at once."""
        ...

    def start_connector(
        self, connector: str, config: ConnectorConfig, target_state: TargetState
    ) -> None:
        """A connector whose target state is STOPPED gets no process; its state is reported."""
        ...

    async def stop_connectors(self, connectors: Sequence[str]) -> None:
        """Stop connectors: 5 s for all together, then kill; return when all are gone."""
        ...

    def set_connector_target_state(self, connector: str, target_state: TargetState) -> None: ...

    async def generate_task_configs(
        self, connector: str, config: ConnectorConfig, applied_config: ConnectorConfig | None
    ) -> TaskConfigsGenerated:
        """Raise AgentError with the text of the plugin's exception.

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
        """`task_count`: size of the connector's set, for `tasks.max.enforce`; 0: no check."""
        ...

    def answer_task_start(
        self, task_id: ConnectorTaskId, request_id: int, refusal: str | None
    ) -> None:
        """Let a task begin after its question; with `refusal` it fails with this text."""
        ...

    async def stop_tasks(self, task_ids: Sequence[ConnectorTaskId]) -> None:
        """Stop tasks within one `task.shutdown.graceful.timeout.ms`; return when all are gone."""
        ...

    def set_task_target_state(
        self, task_id: ConnectorTaskId, target_state: TargetState
    ) -> None: ...

    def set_logger_level(self, namespace: str, level: str) -> None:
        """Set a level for running children and for children started later."""
        ...

    def running_connectors(self) -> frozenset[str]: ...
    def running_tasks(self) -> frozenset[ConnectorTaskId]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildDetails:
    """One child process. `task` None: the connector itself; `pid` None: it has no process (yet).

    `since_ms`: the time of the change to its state, None if that is not known here. Times are
    epoch milliseconds, sizes bytes; `cpu_percent` of one processor, over the last minute.
    Figures are None if a child has none, or did not answer in time (`responsive` is then False).
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
    """The operator's view of the children, and actions on them."""

    def running_tasks(self) -> frozenset[ConnectorTaskId]: ...

    async def child_details(self) -> tuple[ChildDetails, ...]:
        """Return connectors and tasks, sorted, within a second even if children do not answer."""
        ...

    async def metrics(self) -> tuple[Metric, ...]:
        """Return metrics of connectors, tasks and their starts, within a second."""
        ...

    def kill_task(self, task_id: ConnectorTaskId, *, force: bool, reason: str) -> int | None:
        """Begin to end a running task: in order, then by SIGTERM, then SIGKILL; `force`: SIGKILL.

        Once its process is gone, it is reported FAILED with `reason` and its stacks. Returns the
        pid of the process, None before it has one.
        """
        ...

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        """Return the kept lines: `lines`, `next`, and the `epoch` of their numbers."""
        ...

    async def task_stacks(self, task_id: ConnectorTaskId) -> str:
        """Return the stacks of a running task; AgentError if its process shows none."""
        ...
