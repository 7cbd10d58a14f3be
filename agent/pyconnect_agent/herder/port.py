"""The interfaces of the herder and of the admin interface for the REST layer, and their clock.

Called on the event loop only; nothing here blocks it.
"""

from __future__ import annotations

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
    """One worker, as its operator sees it."""

    async def about(self) -> dict[str, Any]:
        """The document of `GET /agent`."""
        ...

    def config(self) -> tuple[EffectiveValue, ...]: ...

    async def children(self) -> list[dict[str, Any]]:
        """One document per child process, sorted."""
        ...

    def connectors(self) -> dict[str, Any]:
        """The target state of each connector of the cluster, which no status shows."""
        ...

    async def metrics(self) -> tuple[Metric, ...]: ...

    def kill(self, task_id: ConnectorTaskId, *, force: bool) -> int | None:
        """Begin to kill a task of this worker; return its pid, None without one.

        NotFoundError for a task that does not exist, NotAssignedError for one that runs elsewhere
        (`target_url` None if its worker is not known), ConflictError for one that does not run.
        """
        ...

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        """The document of `GET /agent/connectors/C/logs`; see `children.ports`."""
        ...

    async def stacks(self, task_id: ConnectorTaskId) -> str:
        """Return the stacks; errors as `kill`, and InternalError if the process shows none."""
        ...

    async def change_phase(self, phase: str, run_id: str, expected_sha256: str) -> dict[str, Any]:
        """Write a phase to the worker's file; call `restart_for_phase` after the answer is sent.

        ForbiddenError unless the worker's properties allow it, ConflictError for another file or
        run than expected, BadRequestError for a wrong phase or id.
        """
        ...

    def restart_for_phase(self) -> None:
        """Restart the worker if the written phase is not in force."""
        ...

    async def acls(self, phase: str | None) -> dict[str, Any]:
        """The document of `GET /agent/acls`; None: the worker's own phase.

        BadRequestError for a wrong phase, and for a standalone worker.
        """
        ...

    def drain(self, *, undrain: bool) -> None:
        """Begin to release all work, or to join again; `about` reports the progress."""
        ...


class Herder(Protocol):
    """The distributed or standalone herder as its clients see it."""

    async def submit(self, request: Request, *, timeout_ms: int) -> Any:
        """Run a request in the herder's order; the result type is the request's.

        Raises a `core.errors.RequestError`; `RequestTimedOutError` (naming the stage) after
        `timeout_ms`, when the operation may still take effect.
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
        """True from the end of the first full pass of the herder."""
        ...

    @property
    def stage(self) -> Stage | None:
        """The current stage, else the last completed one; None before the first."""
        ...

    @property
    def standalone(self) -> bool: ...

    def server_info(self) -> ServerInfo: ...

    def connectors(self) -> tuple[str, ...]:
        """Names in this worker's view of the config topic."""
        ...

    def connector_configs(self) -> Mapping[str, ConnectorConfig]:
        """Return raw configs by name, as `connectors`; a later change makes another mapping."""
        ...

    def connector_status(self, connector: str) -> ConnectorStateInfo | None:
        """Return a status from the status store, None if none is known. Tasks sorted by number."""
        ...

    def task_status(self, connector: str, task: int) -> Status | None: ...

    async def connector_info(self, connector: str) -> dict[str, Any] | None:
        """Return ConnectorInfo as JSON, for `expand=info`, without the herder's queue."""
        ...

    def target_state(self, connector: str) -> TargetState | None:
        """Return it from this worker's view of the config topic, None if none is known."""
        ...

    async def connector_offsets(
        self, connector: str, *, timeout_ms: int
    ) -> Iterable[ConnectorOffset]:
        """Return an iterator over partitions with an offset (KIP-875); not for the event loop.

        Raises NotFoundError, RequestTimedOutError or InternalError.
        """
        ...

    def active_topics(self, connector: str) -> tuple[str, ...]: ...

    async def reset_active_topics(self, connector: str) -> None: ...

    def plugins(self, *, connectors_only: bool) -> tuple[PluginInfo, ...]: ...

    def loggers(self) -> Mapping[str, LoggerLevel]: ...

    async def set_logger_level(self, namespace: str, level: str) -> tuple[str, ...]:
        """Set a level on this worker only; return the names of changed loggers, sorted."""
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
    """Thread-safe."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now_ms(self) -> int:
        return int((time.monotonic() + self._offset_s) * 1000)
