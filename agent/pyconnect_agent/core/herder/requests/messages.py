"""The requests that the herder takes, and their results.

One frozen class per request. The result type stands in each docstring; failures are
`core.errors.RequestError`s. Reads that Apache answers without its herder thread (list, status,
topics, plugins, loggers) are not here: see `herder/port.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.reporting import ConnectorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Health: answered with None once the herder serves requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConnectorInfo:
    """-> ConnectorInfo."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConnectorConfig:
    """-> ConnectorConfig (raw)."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTaskConfigs:
    """-> tuple[TaskInfo, ...]."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutConnectorConfig:
    """-> PutResult. `config` has been validated by the receiving worker.

    `allow_replace` False is POST: an existing name is AlreadyExistsError.
    """

    connector: str
    config: ConnectorConfig
    initial_state: TargetState | None = None
    allow_replace: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchConnectorConfig:
    """-> PutResult. None removes a key (KIP-477); the herder has the merged config validated."""

    connector: str
    patch: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteConnector:
    """-> None."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTargetState:
    """Pause and resume, by any worker. -> None."""

    connector: str
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class StopConnector:
    """KIP-875: empty task set, then STOPPED. -> None."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartConnector:
    """The legacy restart of the connector instance on its owner. -> None."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartConnectorAndTasks:
    """KIP-745. -> ConnectorStateInfo showing what is RESTARTING."""

    connector: str
    only_failed: bool
    include_tasks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartTask:
    """-> None."""

    task_id: ConnectorTaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitTaskConfigs:
    """Internal endpoint: the complete new task set. -> None."""

    connector: str
    configs: tuple[ConnectorConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceZombies:
    """Internal endpoint of KIP-618. -> None."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOffsets:
    """KIP-875: alter the offsets of a stopped connector, or reset them all (None). -> str.

    The result is the text for the client. `offsets`: the request's JSON text, known to be bound
    without errors; there may be very many, and only the child that needs them reads them.
    """

    connector: str
    offsets: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutResult:
    """`created` decides between 201 and 200."""

    created: bool
    info: ConnectorInfo


Request = (
    Probe
    | GetConnectorInfo
    | GetConnectorConfig
    | GetTaskConfigs
    | PutConnectorConfig
    | PatchConnectorConfig
    | DeleteConnector
    | SetTargetState
    | StopConnector
    | RestartConnector
    | RestartConnectorAndTasks
    | RestartTask
    | SubmitTaskConfigs
    | FenceZombies
    | ChangeOffsets
)
