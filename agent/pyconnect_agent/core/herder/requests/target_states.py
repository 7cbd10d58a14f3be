"""Operations that change a connector's target: pause, resume, stop, task sets.

Stopping is KIP-875's: first an empty task set, then the target state, so that a failure between
the two leaves a connector that is merely short of tasks.
"""

from __future__ import annotations

from pyconnect_agent.core.errors import (
    BadRequestError,
    InternalError,
    NotFoundError,
    RequestError,
)
from pyconnect_agent.core.herder.effects import (
    ReadConfigToEnd,
    WriteTargetState,
    WriteTaskConfigs,
)
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.requests.configs import not_found, not_leader
from pyconnect_agent.core.herder.requests.messages import (
    SetTargetState,
    StopConnector,
    SubmitTaskConfigs,
)
from pyconnect_agent.core.herder.requests.operations import fail, proceed, succeed
from pyconnect_agent.core.herder.state import Operation, Step
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.waiters import OperationWaiter
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig

_STANDALONE_TASKS = (
    "Kafka Connect in standalone mode does not support externally setting task configurations."
)
_LEADER_STOPS = "Only the leader can transition connectors to the STOPPED state."


def begin_target_state(turn: Turn, operation: Operation, request: SetTargetState) -> None:
    """Pause and resume may be written by any worker."""
    if not turn.state.snapshot.contains(request.connector):
        fail(turn, operation, _unknown(request.connector))
        return
    target = request.target_state
    stage = (
        f"writing the {target.value} target state for connector {request.connector} to the"
        " config topic"
    )
    proceed(turn, operation, Step.WRITING_TARGET_STATE, stage)
    _write_target_state(turn, operation, request.connector, target)


def begin_stop(turn: Turn, operation: Operation, request: StopConnector) -> None:
    if not turn.state.snapshot.contains(request.connector):
        fail(turn, operation, _unknown_to_stop(turn, request.connector))
        return
    if not turn.state.is_leader:
        fail(turn, operation, not_leader(turn, _LEADER_STOPS))
        return
    write_task_configs(turn, operation, request.connector, ())


def resume_stop(turn: Turn, operation: Operation, request: StopConnector) -> None:
    """The next of: empty task set → target state → read back → done."""
    match operation.step:
        case Step.WRITING if not turn.state.snapshot.contains(request.connector):
            fail(turn, operation, _unknown(request.connector))
        case Step.WRITING if not turn.state.is_leader:
            fail(turn, operation, not_leader(turn, _LEADER_STOPS))
        case Step.WRITING:
            # "stage" is Apache's own word there.
            stage = (
                f"writing the STOPPED target stage for connector {request.connector} to the"
                " config topic"
            )
            proceed(turn, operation, Step.WRITING_TARGET_STATE, stage)
            _write_target_state(turn, operation, request.connector, TargetState.STOPPED)
        case Step.WRITING_TARGET_STATE:
            proceed(turn, operation, Step.READING_BACK, stages.READING_CONFIG)
            turn.emit(
                ReadConfigToEnd(
                    effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
                    timeout_ms=turn.state.settings.worker_sync_timeout_ms,
                )
            )
        case _:
            succeed(turn, operation)


def begin_submit(turn: Turn, operation: Operation, request: SubmitTaskConfigs) -> None:
    if turn.state.settings.standalone:
        fail(turn, operation, InternalError(_STANDALONE_TASKS))
        return
    if not turn.state.is_leader:
        fail(turn, operation, not_leader(turn, "Only the leader may write task configurations."))
        return
    if not turn.state.snapshot.contains(request.connector):
        fail(turn, operation, not_found(request.connector))
        return
    refusal = stopped_refusal(turn, request.connector, request.configs)
    if refusal is not None:
        fail(turn, operation, refusal)
        return
    write_task_configs(turn, operation, request.connector, request.configs)


def stopped_refusal(
    turn: Turn, connector: str, configs: tuple[ConnectorConfig, ...]
) -> BadRequestError | None:
    if not configs or turn.state.snapshot.target_state(connector) is not TargetState.STOPPED:
        return None
    return BadRequestError(
        f"Cannot submit non-empty set of task configs for stopped connector {connector}"
    )


def write_task_configs(
    turn: Turn, operation: Operation, connector: str, configs: tuple[ConnectorConfig, ...]
) -> None:
    stage = stages.writing_task_configs(connector, len(configs))
    proceed(turn, operation, Step.WRITING, stage)
    turn.emit(
        WriteTaskConfigs(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            connector=connector,
            configs=configs,
        )
    )


def _write_target_state(
    turn: Turn, operation: Operation, connector: str, target_state: TargetState
) -> None:
    turn.emit(
        WriteTargetState(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            connector=connector,
            target_state=target_state,
        )
    )


def _unknown(connector: str) -> NotFoundError:
    return NotFoundError(f"Unknown connector {connector}")


def _unknown_to_stop(turn: Turn, connector: str) -> RequestError:
    """A standalone Apache worker answers 500 here, in these words."""
    if turn.state.settings.standalone:
        return InternalError(f"No connector `{connector}` configured")
    return _unknown(connector)
