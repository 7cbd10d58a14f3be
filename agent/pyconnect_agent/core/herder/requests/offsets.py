"""Altering and resetting a connector's offsets (KIP-875).

Layer: core. Kafka: `DistributedHerder.modifyConnectorOffsets`. Read to the end, check, fence what
may still run (exactly-once sources), read and check again, ask the connector, read and check once
more, write. Kafka Connect leaves the last look out: a resume by another worker, or a new config,
while the connector is asked goes unnoticed there.

A rebalance, a new config or other conditions that fail in between start it again or end it; nothing
has been written then. Once writing has begun it is finished, whatever happens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyconnect_agent.core.errors import BadRequestError, InternalError
from pyconnect_agent.core.herder.effects import (
    AbandonOffsetChange,
    CommitOffsetChange,
    PrepareOffsetChange,
    ReadConfigToEnd,
    RequestFencing,
)
from pyconnect_agent.core.herder.membership import leader_id_conflicts as disputes
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.requests.configs import not_found, not_leader
from pyconnect_agent.core.herder.requests.messages import ChangeOffsets
from pyconnect_agent.core.herder.requests.operations import begin_again, fail, proceed, succeed
from pyconnect_agent.core.herder.state import Operation, Step
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.waiters import OperationWaiter
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.offsets.changes import (
    CONFIG_UNREADABLE,
    FENCING_FAILED,
    LEADER_CHANGES,
    must_be_stopped,
    success_text,
)

CHANGE_TIMEOUT_MS = 90_000
ANSWER_MARGIN_MS = 500
"""A change ends sooner than its request, so that the answer can name the slow step."""

_READS = frozenset({Step.READING_CONFIG, Step.READING_AGAIN, Step.CONFIRMING})


def begin(turn: Turn, operation: Operation) -> None:
    if not turn.state.is_leader:
        fail(turn, operation, not_leader(turn, LEADER_CHANGES))
    else:
        _read(turn, operation, Step.READING_CONFIG)


def resume(turn: Turn, operation: Operation, request: ChangeOffsets, result: Any) -> None:
    """The next of: read → fence → read again → prepare → confirm → change → done."""
    connector = request.connector
    if operation.step is Step.CHANGING:
        text = success_text(is_reset=request.offsets is None, complete=operation.complete)
        succeed(turn, operation, text)
        return
    if operation.step is Step.PREPARING:
        operation = replace(operation, complete=bool(result))
    if not turn.state.serving:
        # Another worker may lead when the rebalance is through.
        _abandon(turn, operation, connector)
        begin_again(turn, operation)
        return
    if not _may_change(turn, operation, connector):
        return
    match operation.step:
        case Step.READING_CONFIG if _needs_fencing(turn, connector):
            _fence(turn, operation, connector)
        case Step.FENCING:
            _read(turn, operation, Step.READING_AGAIN)
        case Step.PREPARING:
            _read(turn, operation, Step.CONFIRMING)
        case Step.CONFIRMING if _config(turn, connector) == operation.config:
            proceed(turn, operation, Step.CHANGING, stages.modifying_offsets(connector))
            turn.emit(CommitOffsetChange(effect_id=_effect(turn, operation), connector=connector))
        case Step.CONFIRMING:
            # It was another config that the connector was asked with.
            _abandon(turn, operation, connector)
            _read(turn, operation, Step.READING_CONFIG)
        case _:
            _prepare(turn, operation, request)


def failed(turn: Turn, operation: Operation, request: ChangeOffsets, error: Exception) -> None:
    """Answer with the name of the failed step; the cause is in this worker's log."""
    _abandon(turn, operation, request.connector)
    if operation.step in _READS:
        error = InternalError(CONFIG_UNREADABLE)
    elif operation.step is Step.FENCING:
        error = InternalError(FENCING_FAILED)
    fail(turn, operation, error)


def _may_change(turn: Turn, operation: Operation, connector: str) -> bool:
    """Answer, and return False, unless this worker leads and the connector is stopped."""
    snapshot = turn.state.snapshot
    error: Exception
    if not turn.state.is_leader:
        error = not_leader(turn, LEADER_CHANGES)
    elif (dispute := disputes.dispute(turn.state)) is not None:
        error = dispute
    elif not snapshot.contains(connector):
        error = not_found(connector)
    elif (
        snapshot.target_state(connector) is not TargetState.STOPPED
        or snapshot.task_count(connector) != 0
    ):
        error = BadRequestError(must_be_stopped(connector))
    else:
        return True
    _abandon(turn, operation, connector)
    fail(turn, operation, error)
    return False


def _needs_fencing(turn: Turn, connector: str) -> bool:
    settings = turn.state.settings
    return not settings.standalone and settings.needs_clearance(_config(turn, connector))


def _fence(turn: Turn, operation: Operation, connector: str) -> None:
    proceed(turn, operation, Step.FENCING, stages.fencing(connector))
    fencing = RequestFencing(
        effect_id=_effect(turn, operation), leader_url=None, connector=connector
    )
    turn.emit(fencing)


def _prepare(turn: Turn, operation: Operation, request: ChangeOffsets) -> None:
    connector = request.connector
    config = turn.state.snapshot.connector_configs[connector]
    stage = stages.modifying_offsets(connector)
    proceed(turn, operation, Step.PREPARING, stage, config=config)
    left_ms = CHANGE_TIMEOUT_MS
    if operation.deadline_ms is not None:
        left_ms = min(left_ms, operation.deadline_ms - turn.now_ms - ANSWER_MARGIN_MS)
    turn.emit(
        PrepareOffsetChange(
            effect_id=_effect(turn, operation),
            connector=connector,
            config=config,
            offsets=request.offsets,
            timeout_ms=max(1, left_ms),
        )
    )


def _read(turn: Turn, operation: Operation, step: Step) -> None:
    proceed(turn, operation, step, stages.READING_CONFIG)
    turn.emit(
        ReadConfigToEnd(
            effect_id=_effect(turn, operation),
            timeout_ms=turn.state.settings.worker_sync_timeout_ms,
        )
    )


def _abandon(turn: Turn, operation: Operation, connector: str) -> None:
    """Drop the prepared change, if there is one."""
    if operation.step in (Step.PREPARING, Step.CONFIRMING):
        turn.emit(AbandonOffsetChange(connector=connector))


def _config(turn: Turn, connector: str) -> Any:
    return turn.state.snapshot.connector_config(connector)


def _effect(turn: Turn, operation: Operation) -> int:
    return turn.wait_for(OperationWaiter(request_id=operation.request_id))
