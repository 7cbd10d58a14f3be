"""The herder's continuations as data: each waits for the answer of an effect."""

from __future__ import annotations

from dataclasses import dataclass

from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.internal_topics.configlog import RestartRequested


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationWaiter:
    """A request's operation goes on."""

    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWaiter:
    """Work is gone when this is answered."""

    connectors: tuple[str, ...]
    tasks: tuple[ConnectorTaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushWaiter:
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpWaiter:
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWaiter:
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationWaiter:
    """Task configs are being generated from `config`."""

    connector: str
    config: ConnectorConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartWaiter:
    """The status for a restart plan is being read."""

    request: RestartRequested


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeyWaiter:
    """A new session key is being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWaiter:
    """The last statuses before this worker leaves its group are being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FencingWaiter:
    """The leader was asked to fence older producers; `number` is the clearance's."""

    connector: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceWaiter:
    """The config topic is read once more before tasks start; `number` is the clearance's."""

    connector: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStartWaiter:
    """The config topic is read for a task that asks to begin; `attempt` counts failed reads."""

    task_id: ConnectorTaskId
    request_id: int
    attempt: int = 0


ConfigWaiter = SessionKeyWaiter | FencingWaiter | ClearanceWaiter | TaskStartWaiter

Waiter = (
    OperationWaiter
    | StopWaiter
    | FlushWaiter
    | CatchUpWaiter
    | ClaimWaiter
    | GenerationWaiter
    | RestartWaiter
    | DrainWaiter
    | ConfigWaiter
)
