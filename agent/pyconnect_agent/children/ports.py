"""The ports of the herder and the offset store for children, and values about children.

`ChildSettings` are the settings that every child gets from the worker.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.requests import Job, WorkerSettings
from pyconnect_agent.children.child import Child, ChildEnd
from pyconnect_agent.children.logs import LogSettings
from pyconnect_agent.core.config.agent_keys import NO_AGENT_KEYS, AgentKeys
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.metric_values import DEFAULT_SAMPLING, Sampling
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.core.task_limits import NO_LIMITS, TaskLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfigsGenerated:
    """Raw task configs, with the framework's keys added and references restored.

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
        """Read to the end, then return the values of the keys."""
        ...

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        """Write and wait for the acknowledgement of all; None is a tombstone."""
        ...

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        """Return every live raw entry of a connector; does not block."""
        ...

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        """Return the live raw keys of equal content, newest first; does not block."""
        ...


class ChildListener(Protocol):
    """The herder's shell, as the children's listener; called on the event loop."""

    def reported(self, item: Instance, report: Reported) -> None:
        """Take RUNNING, PAUSED, STOPPED (connectors), FAILED or UNASSIGNED (after a stop)."""
        ...

    def task_start_asked(self, task_id: ConnectorTaskId, request_id: int) -> None:
        """Decide whether an exactly-once task may start, and answer by `TaskChildren.answer_start`.

        `request_id` identifies this question of this process and is never used again.
        """
        ...

    def task_reconfiguration_requested(self, connector: str) -> None: ...

    def topic_used(self, task_id: ConnectorTaskId, topic: str) -> None:
        """Take a topic, once per task and topic; read the status store before writing it."""
        ...

    def config_ttl_expired(self, connector: str) -> None:
        """Restart the connector, as a config provider's TTL is over (`config.action.reload`)."""
        ...

    def lease_expired(self) -> None:
        """Handle the end of a child without a lease: this process was frozen, or not a member."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildDetails:
    """One child process; `task` None: the connector itself; `pid` None: no process now.

    `asleep`: an idle connector whose process comes back at the next call.

    `since_ms`: the time of the change to its state, None if that is not known here. Times are epoch
    milliseconds, sizes bytes; `cpu_percent` of one processor, over the last minute. Figures are
    None if a child has none, or did not answer in time (`responsive` is then False).
    `shared_java_pid`: the Java process that a task shares with others, whose memory is not in its
    own `rss_bytes`.
    """

    connector: str
    task: int | None
    pid: int | None
    state: State | None
    since_ms: int | None
    asleep: bool = False
    rss_bytes: int | None = None
    cpu_percent: float | None = None
    limits: TaskLimits = NO_LIMITS
    responsive: bool = True
    last_activity_ms: int | None = None
    last_commit_ms: int | None = None
    transaction_began_ms: int | None = None
    queue_size: int | None = None
    shared_java_pid: int | None = None
    shared_java_rss_bytes: int | None = None

    @property
    def order(self) -> tuple[str, int]:
        """The key that sorts a connector before its tasks."""
        return self.connector, -1 if self.task is None else self.task


CONNECTOR_GRACEFUL_MS = 5_000
"""Kafka's constant: the time limit for all connectors that are being stopped together."""

REQUEST_TIMEOUT_MS = 90_000
"""The longest wait for a plugin's answer: Connect's limit of a REST request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSettings:
    """The settings of children; `worker` is given to every child.

    `task_shutdown_graceful_timeout_ms`: for all tasks being stopped together, 0 or more.
    `lease_ms`: time without a lease after which a child ends itself; None switches leases off.
    `sampling`: of the worker's metrics. `logs`: of the children's log lines. `agent_keys`: of the
    worker, which connectors override.
    """

    worker: WorkerSettings
    task_shutdown_graceful_timeout_ms: int = 5_000
    lease_ms: int | None = None
    sampling: Sampling = DEFAULT_SAMPLING
    logs: LogSettings = LogSettings()  # noqa: RUF009  a value
    agent_keys: AgentKeys = NO_AGENT_KEYS


ChildFactory = Callable[[str, Job, Callable[[Message], None], Callable[[ChildEnd], None]], Child]
"""Makes a child from its name and job, with its `on_message` and `on_exit`."""
