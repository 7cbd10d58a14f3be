"""Requests of clients: each is one class with its steps; `operations` is their queue. Pure."""

from pyconnect_agent.core.herder.requests.configs import (
    DeleteConnector,
    GetConnectorConfig,
    GetConnectorInfo,
    GetTaskConfigs,
    PatchConnectorConfig,
    Probe,
    PutConnectorConfig,
    PutResult,
    SetTargetState,
    StopConnector,
    SubmitTaskConfigs,
)
from pyconnect_agent.core.herder.requests.fencing import FenceZombies
from pyconnect_agent.core.herder.requests.offsets import ChangeOffsets
from pyconnect_agent.core.herder.requests.restarts import (
    RestartConnector,
    RestartConnectorAndTasks,
    RestartTask,
)
from pyconnect_agent.core.herder.steps import Request

__all__ = [
    "ChangeOffsets",
    "DeleteConnector",
    "FenceZombies",
    "GetConnectorConfig",
    "GetConnectorInfo",
    "GetTaskConfigs",
    "PatchConnectorConfig",
    "Probe",
    "PutConnectorConfig",
    "PutResult",
    "Request",
    "RestartConnector",
    "RestartConnectorAndTasks",
    "RestartTask",
    "SetTargetState",
    "StopConnector",
    "SubmitTaskConfigs",
]
