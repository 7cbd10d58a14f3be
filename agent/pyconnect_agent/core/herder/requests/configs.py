"""Operations that read and change connector configs: get, put, patch, delete.

After every wait the conditions are looked at again: another worker may have become leader, the
connector may be gone.
"""

from __future__ import annotations

from pyconnect_agent.core.errors import (
    AlreadyExistsError,
    BadRequestError,
    NotFoundError,
    NotLeaderError,
)
from pyconnect_agent.core.exactly_once.transactional_ids import shared_id
from pyconnect_agent.core.herder.effects import (
    RemoveConnectorConfig,
    ValidateConfig,
    WriteConnectorConfig,
)
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.requests.messages import (
    DeleteConnector,
    GetConnectorConfig,
    GetConnectorInfo,
    GetTaskConfigs,
    PatchConnectorConfig,
    PutConnectorConfig,
    PutResult,
)
from pyconnect_agent.core.herder.requests.operations import (
    begin_again,
    fail,
    leave_lane,
    proceed,
    succeed,
)
from pyconnect_agent.core.herder.state import HerderState, Operation, Step
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.waiters import OperationWaiter
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.reporting import ConnectorInfo, TaskInfo

_INT_DIGITS = 10


def not_found(connector: str) -> NotFoundError:
    return NotFoundError(f"Connector {connector} not found")


def not_leader(turn: Turn, text: str) -> NotLeaderError:
    return NotLeaderError(text, target_url=turn.state.leader_url)


def connector_info(
    state: HerderState, connector: str, config: ConnectorConfig | None = None
) -> ConnectorInfo | None:
    """As the worker's view of the config topic has it; `config` when given, is shown instead."""
    shown = config if config is not None else state.snapshot.connector_config(connector)
    if shown is None:
        return None
    return ConnectorInfo(
        name=connector,
        config=shown,
        tasks=state.snapshot.tasks(connector),
        type=state.settings.connector_type(shown),
    )


def read(
    turn: Turn,
    operation: Operation,
    request: GetConnectorInfo | GetConnectorConfig | GetTaskConfigs,
) -> None:
    snapshot = turn.state.snapshot
    config = snapshot.connector_config(request.connector)
    if config is None:
        fail(turn, operation, not_found(request.connector))
        return
    match request:
        case GetConnectorInfo():
            succeed(turn, operation, connector_info(turn.state, request.connector))
        case GetConnectorConfig():
            succeed(turn, operation, config)
        case GetTaskConfigs():
            infos = tuple(
                TaskInfo(id=task_id, config=snapshot.task_configs.get(task_id, {}))
                for task_id in snapshot.tasks(request.connector)
            )
            succeed(turn, operation, infos)


def begin_put(turn: Turn, operation: Operation, request: PutConnectorConfig) -> None:
    if _leads(turn, operation):
        _validate(turn, operation, request.connector, request.config)


def _put_validated(turn: Turn, operation: Operation, request: PutConnectorConfig) -> None:
    exists = turn.state.snapshot.contains(request.connector)
    if exists and not request.allow_replace:
        error = AlreadyExistsError(f"Connector {request.connector} already exists")
        fail(turn, operation, error)
        return
    refusal = None if exists else _shared_id_error(turn, request)
    if refusal is not None:
        fail(turn, operation, refusal)
        return
    _write(
        turn,
        operation,
        request.connector,
        request.config,
        target_state=request.initial_state,
        created=not exists,
    )


def _shared_id_error(turn: Turn, request: PutConnectorConfig) -> BadRequestError | None:
    """Exactly-once only: a producer of one connector must not fence one of another."""
    settings, snapshot = turn.state.settings, turn.state.snapshot
    if not settings.needs_clearance(request.config):
        return None

    def others(name: str) -> int | None:
        config = snapshot.connector_config(name)
        return None if config is None else tasks_max(config)

    found = shared_id(
        settings.group_id,
        request.connector,
        tasks_max(request.config),
        others,
        leader=settings.leader_transactional_id,
    )
    if found is None:
        return None
    user = "the leader of the group" if found.other is None else f"connector {found.other}"
    return BadRequestError(
        f"Connector {request.connector} cannot be created with exactly-once support: its producers"
        f" would share the transactional id {found.transactional_id} with {user} and fence each"
        " other. Choose another name."
    )


def tasks_max(config: ConnectorConfig) -> int:
    """Return `tasks.max`, 1 where it is not given as a number."""
    text = (config.get("tasks.max") or "").strip()
    # A config of another worker may have any text, also of more digits than Python reads.
    return int(text) if text.isdecimal() and len(text) <= _INT_DIGITS else 1


def written(turn: Turn, operation: Operation, connector: str) -> None:
    """Answer, now that the config is on the topic.

    A standalone worker answers when the connector has started and its task configs are made.
    """
    if turn.state.settings.standalone:
        settling = proceed(turn, operation, Step.SETTLING, stages.STARTING_CONNECTOR)
        leave_lane(turn, settling)
    else:
        _answer_put(turn, operation, connector)


def settled(turn: Turn, connector: str) -> None:
    """Answer requests that wait for the connector to run with its task configs, or not to run."""
    for operation in _settling(turn, connector):
        _answer_put(turn, operation, connector)


def settling_failed(turn: Turn, connector: str, error: Exception) -> None:
    for operation in _settling(turn, connector):
        fail(turn, operation, error)


def _settling(turn: Turn, connector: str) -> list[Operation]:
    if not turn.state.settings.standalone:
        return []
    return [
        operation
        for operation in turn.operations.current.values()
        if operation.step is Step.SETTLING
        and isinstance(operation.request, PutConnectorConfig | PatchConnectorConfig)
        and operation.request.connector == connector
    ]


def _answer_put(turn: Turn, operation: Operation, connector: str) -> None:
    config = operation.config
    assert config is not None
    info = ConnectorInfo(
        name=connector,
        config=config,
        tasks=turn.state.snapshot.tasks(connector),
        type=turn.state.settings.connector_type(config),
    )
    succeed(turn, operation, PutResult(created=operation.created, info=info))


def begin_patch(turn: Turn, operation: Operation, request: PatchConnectorConfig) -> None:
    if not _leads(turn, operation):
        return
    config = turn.state.snapshot.connector_config(request.connector)
    if config is None:
        fail(turn, operation, not_found(request.connector))
        return
    _validate(turn, operation, request.connector, patched(config, request))


def _patch_validated(turn: Turn, operation: Operation, request: PatchConnectorConfig) -> None:
    config = turn.state.snapshot.connector_config(request.connector)
    if config is None or patched(config, request) != operation.config:
        # The config changed while the merged one was validated: merge and validate again.
        begin_patch(turn, operation, request)
        return
    assert operation.config is not None
    _write(turn, operation, request.connector, operation.config, target_state=None, created=False)


def validated(
    turn: Turn, operation: Operation, request: PutConnectorConfig | PatchConnectorConfig
) -> None:
    """The config is valid; the worker may have ceased to lead or to serve meanwhile."""
    if not turn.state.serving:
        begin_again(turn, operation)
    elif _leads(turn, operation):
        match request:
            case PutConnectorConfig():
                _put_validated(turn, operation, request)
            case PatchConnectorConfig():
                _patch_validated(turn, operation, request)


def _leads(turn: Turn, operation: Operation) -> bool:
    """Return whether this worker leads; otherwise the operation has failed."""
    if not turn.state.is_leader:
        fail(turn, operation, not_leader(turn, "Only the leader can set connector configs."))
    return turn.state.is_leader


def _validate(turn: Turn, operation: Operation, connector: str, config: ConnectorConfig) -> None:
    stage = f"validating the config of connector {connector}"
    proceed(turn, operation, Step.VALIDATING, stage, config=config)
    turn.emit(
        ValidateConfig(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            connector=connector,
            config=config,
            timeout_ms=turn.state.settings.validation_timeout_ms,
        )
    )


def patched(config: ConnectorConfig, request: PatchConnectorConfig) -> ConnectorConfig:
    """KIP-477: None removes a key, everything else is set."""
    merged = {**config, **request.patch}
    return {key: value for key, value in merged.items() if request.patch.get(key, "") is not None}


def begin_delete(turn: Turn, operation: Operation, request: DeleteConnector) -> None:
    if not turn.state.is_leader:
        fail(turn, operation, not_leader(turn, "Only the leader can delete connector configs."))
        return
    if not turn.state.snapshot.contains(request.connector):
        fail(turn, operation, not_found(request.connector))
        return
    stage = f"removing the config for connector {request.connector} from the config topic"
    proceed(turn, operation, Step.WRITING, stage)
    turn.emit(
        RemoveConnectorConfig(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            connector=request.connector,
        )
    )


def _write(
    turn: Turn,
    operation: Operation,
    connector: str,
    config: ConnectorConfig,
    *,
    target_state: TargetState | None,
    created: bool,
) -> None:
    stage = f"writing a config for connector {connector} to the config topic"
    proceed(turn, operation, Step.WRITING, stage, config=config, created=created)
    turn.emit(
        WriteConnectorConfig(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            connector=connector,
            config=config,
            target_state=target_state,
        )
    )
