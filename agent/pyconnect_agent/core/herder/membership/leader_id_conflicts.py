"""Requests that a leader refuses while members would lead under another transactional id.

Layer: core. Project decision; no Kafka counterpart. The rule itself is in
`assign/leader_ids`. Reads, pauses, and restarts of one instance need no leader's write and go on,
and running work goes on. The leader claims its right at the next rebalance in which all agree.
"""

from __future__ import annotations

from pyconnect_agent.core.assign.leader_ids import KEY
from pyconnect_agent.core.errors import ServiceUnavailableError
from pyconnect_agent.core.herder.requests.messages import (
    DeleteConnector,
    FenceZombies,
    PatchConnectorConfig,
    PutConnectorConfig,
    RestartConnectorAndTasks,
    StopConnector,
    SubmitTaskConfigs,
)
from pyconnect_agent.core.herder.requests.operations import FINISHED_ONCE_BEGUN, fail
from pyconnect_agent.core.herder.state import HerderState, Operation
from pyconnect_agent.core.herder.turn import Turn

_LEADERS = (
    DeleteConnector,
    FenceZombies,
    PatchConnectorConfig,
    PutConnectorConfig,
    RestartConnectorAndTasks,
    StopConnector,
    SubmitTaskConfigs,
)
"""Changes of offsets and the herder's own task configs ask `dispute` themselves."""


def refused(turn: Turn, operation: Operation) -> bool:
    """Fail an operation that would have to write; one that has written goes on."""
    if not isinstance(operation.request, _LEADERS) or operation.step in FINISHED_ONCE_BEGUN:
        return False
    error = dispute(turn.state)
    if error is not None:
        fail(turn, operation, error)
    return error is not None


def dispute(state: HerderState) -> ServiceUnavailableError | None:
    """Return why this worker, leader of its group, does not write; None when it may."""
    if state.membership is None or not state.disputed:
        return None
    others = ", ".join(f"{url} ({told})" for url, told in state.membership.other_leader_ids.items())
    return ServiceUnavailableError(
        "The leader writes nothing to the config topic, because members of its group would lead"
        f" under another transactional id than its own ({state.settings.leader_transactional_id}):"
        f" {others}. Two ids do not fence each other. Stop all workers, give {KEY} the same value"
        " on each or remove it from each, and start them again."
    )
