"""Identities and states shared by every layer.

Kafka: ConnectorTaskId, TargetState, AbstractStatus.State.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pyconnect_clients.connect_names import split_task


class ConnectorTaskId(NamedTuple):
    """One task of one connector; ordered by connector name, then number.

    A tuple, because a leader compares and sorts hundreds of thousands of them.
    """

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"

    @classmethod
    def parse(cls, text: str) -> ConnectorTaskId:
        """Parse `connector-number`; raise ValueError without a name or a number."""
        found = split_task(text)
        if found is None:
            raise ValueError(f"not a task id: {text!r}")
        return cls(*found)


Instance = str | ConnectorTaskId
"""A connector, by its name, or a task."""


class TargetState(Enum):
    """The state that a user asked a connector to have (KIP-52, KIP-875)."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


INITIAL_STATES = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}
"""Target states by their names in requests that create a connector (KIP-980)."""


class State(Enum):
    """The reported state of a connector or task; DESTROYED exists only as a tombstone."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"
    DESTROYED = "DESTROYED"
