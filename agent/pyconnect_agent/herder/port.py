"""The interfaces of the herder and of the admin interface for the REST layer, and their clock.

All functions are called on the event loop and do not block it.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pyconnect_agent.core.config.config_infos import ConfigInfos
from pyconnect_agent.core.config.effective import EffectiveValue
from pyconnect_agent.core.herder.requests import Request
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.log_lines import LogQuestion
from pyconnect_agent.core.metric_values import Metric
from pyconnect_agent.core.offsets.connector_offsets import ConnectorOffset
from pyconnect_agent.core.reporting import (
    ConnectorStateInfo,
    LoggerLevel,
    PluginInfo,
    ServerInfo,
    Stage,
    Status,
)
from pyconnect_api.configdef import KeyInfo


class WorkerAdmin(Protocol):
    """The view and the actions of one worker's operator."""

    async def about(self) -> dict[str, Any]:
        """Return the document of `GET /agent`."""
        ...

    def config(self) -> tuple[EffectiveValue, ...]: ...

    async def children(self) -> list[dict[str, Any]]:
        """Return one document per child process, sorted."""
        ...

    def connectors(self) -> dict[str, Any]:
        """Return the target state of each connector of the cluster, which no status shows."""
        ...

    async def metrics(self) -> tuple[Metric, ...]: ...

    def kill(self, task_id: ConnectorTaskId, *, force: bool) -> int | None:
        """Begin to kill a task of this worker; return its pid, None if it has no process.

        NotFoundError for a task that does not exist, NotAssignedError for one that runs elsewhere
        (`target_url` None if its worker is not known), ConflictError for one that does not run.
        """
        ...

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        """Return the document of `GET /agent/connectors/C/logs`; see `children.ports`."""
        ...

    async def stacks(self, task_id: ConnectorTaskId) -> str:
        """Return a task's stacks; errors as `kill`, and InternalError if the process shows none."""
        ...

    async def change_phase(self, phase: str, run_id: str, expected_sha256: str) -> dict[str, Any]:
        """Write a phase to the worker's file; the caller answers, then calls `restart_for_phase`.

        ForbiddenError unless the worker's properties allow it, ConflictError for an unexpected
        file or run, BadRequestError for a wrong phase or id.
        """
        ...

    def restart_for_phase(self) -> None:
        """Restart the worker if it does not run in the written phase."""
        ...

    async def acls(self, phase: str | None) -> dict[str, Any]:
        """Return the document of `GET /agent/acls`; None: the worker's own phase.

        BadRequestError for a wrong phase, and for a standalone worker.
        """
        ...

    def drain(self, *, undrain: bool) -> None:
        """Begin to release all work, or to join again; `about` reports the progress."""
        ...


class Herder(Protocol):
    """The distributed or standalone herder, for its clients."""

    async def submit(self, request: Request, *, timeout_ms: int) -> Any:
        """Run a request in the herder's order; the request defines the type of the result.

        Raises a `core.errors.RequestError`; `RequestTimedOutError` (with the stage) after
        `timeout_ms`: the operation may still take effect.
        """
        ...

    async def validate(self, config: Mapping[str, str | None], *, timeout_ms: int) -> ConfigInfos:
        """Validate a connector config in a child process.

        Raises BadRequestError for a missing or unknown `connector.class`.
        """
        ...

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[KeyInfo, ...]:
        """Return key definitions of any plugin; NotFoundError or BadRequestError as in Apache's."""
        ...

    @property
    def ready(self) -> bool:
        """Whether the herder has completed its first full pass."""
        ...

    @property
    def stage(self) -> Stage | None:
        """The current stage, or else the last completed one; None before the first."""
        ...

    @property
    def standalone(self) -> bool: ...

    def server_info(self) -> ServerInfo: ...

    def connectors(self) -> tuple[str, ...]:
        """Return the connectors' names in this worker's view of the config topic."""
        ...

    def connector_configs(self) -> Mapping[str, ConnectorConfig]:
        """Return raw configs by name, as in `connectors`; a later change makes a new mapping."""
        ...

    def connector_status(self, connector: str) -> ConnectorStateInfo | None:
        """Return a status from the status store, None if unknown. Tasks sorted by number."""
        ...

    def task_status(self, connector: str, task: int) -> Status | None: ...

    async def connector_info(self, connector: str) -> dict[str, Any] | None:
        """Return ConnectorInfo as JSON, for `expand=info`, without a wait in the herder's queue."""
        ...

    def target_state(self, connector: str) -> TargetState | None:
        """Return a target state from this worker's view of the config topic, None if unknown."""
        ...

    async def connector_offsets(
        self, connector: str, *, timeout_ms: int
    ) -> Iterable[ConnectorOffset]:
        """Return an iterator over partitions with an offset (KIP-875); iterate in a thread.

        Raises NotFoundError, RequestTimedOutError or InternalError.
        """
        ...

    def active_topics(self, connector: str) -> tuple[str, ...]: ...

    async def reset_active_topics(self, connector: str) -> None: ...

    def plugins(self, *, connectors_only: bool) -> tuple[PluginInfo, ...]: ...

    def loggers(self) -> Mapping[str, LoggerLevel]: ...

    async def set_logger_level(self, namespace: str, level: str) -> tuple[str, ...]:
        """Set a level on this worker only; return the sorted names of changed loggers."""
        ...

    async def set_cluster_logger_level(self, namespace: str, level: str) -> None: ...

    def verify_internal_request(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Check an internal request's signature if the group's protocol signs requests."""
        ...

    def sign(self, content: bytes) -> dict[str, str]:
        """Return headers that sign `content` with the session key; none without one."""
        ...

    def verify_signature(self, content: bytes, headers: Mapping[str, str]) -> None:
        """Raise a RequestError unless `content` is signed with the session key."""
        ...


class WorkerClock:
    """A clock in epoch milliseconds that never goes back. Thread-safe."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now_ms(self) -> int:
        return int((time.monotonic() + self._offset_s) * 1000)
