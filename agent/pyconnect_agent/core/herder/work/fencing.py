"""The leader fences producers that older task sets of a connector may still run (KIP-618).

Layer: core. KIP-618: read to the end, fence as many ids as the last task count
record says, look again, write the new count. Requests for one connector queue in a lane of their
own: the next one finds the round done. Its configs may change meanwhile, and then the round fails.
"""

from __future__ import annotations

from pyconnect_agent.core.errors import (
    BadRequestError,
    ConflictError,
    InternalError,
    PrivilegedWriteError,
    RetriableKafkaError,
)
from pyconnect_agent.core.herder.effects import (
    FenceProducers,
    ReadConfigToEnd,
    WriteTaskCountRecord,
)
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.requests.configs import not_found, not_leader
from pyconnect_agent.core.herder.requests.messages import (
    FenceZombies,
    StopConnector,
    SubmitTaskConfigs,
)
from pyconnect_agent.core.herder.requests.operations import (
    begin_again,
    fail,
    proceed,
    request_error,
    succeed,
)
from pyconnect_agent.core.herder.state import ApplyTaskConfigs, Operation, Step
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.waiters import OperationWaiter
from pyconnect_clients.connect_names import alter_transactional_id, task_transactional_ids

FENCING_TIMEOUT_MS = 90_000

_STANDALONE = "Kafka Connect in standalone mode does not support exactly-once source connectors."
_UNREADABLE = "Failed to read to end of config topic before performing zombie fencing"
_FAILED = "Failed to perform zombie fencing"
_CANCELLED = "Failed to complete zombie fencing because a new set of task configs was generated"
_OVERTAKEN = "Fencing failed because new task configurations were generated for the connector"


def begin(turn: Turn, operation: Operation, request: FenceZombies) -> None:
    if turn.state.settings.standalone:
        fail(turn, operation, InternalError(_STANDALONE))
    elif _may_fence(turn, operation, request.connector):
        _read(turn, operation, Step.READING_CONFIG)


def resume(turn: Turn, operation: Operation, request: FenceZombies) -> None:
    """The next of: read → fence → read again → write the count → done."""
    connector = request.connector
    if operation.step is Step.WRITING:
        if connector in turn.state.snapshot.pending_fencing:
            fail(turn, operation, ConflictError(_CANCELLED))
        else:
            succeed(turn, operation)
        return
    if operation.step in (Step.FENCING, Step.READING_AGAIN) and (
        _generation(turn, connector) != operation.generation
    ):
        text = _CANCELLED if operation.step is Step.FENCING else _OVERTAKEN
        fail(turn, operation, ConflictError(text))
        return
    if not turn.state.serving:
        # Another worker may lead when the rebalance is through; a second round does no harm.
        begin_again(turn, operation)
        return
    if not _may_fence(turn, operation, connector):
        return
    match operation.step:
        case Step.READING_CONFIG:
            _decide(turn, operation, connector)
        case Step.FENCING:
            _read(turn, operation, Step.READING_AGAIN)
        case _:
            _write_count(turn, operation, connector)


def failed(turn: Turn, operation: Operation, error: Exception) -> None:
    """Answer with the name of the failed step, and of a round with its cause.

    Fenced producers stay fenced, so reading is repeated until the request's time is over.
    """
    if operation.step is Step.READING_AGAIN and isinstance(error, RetriableKafkaError):
        _read(turn, operation, Step.READING_AGAIN)
    elif isinstance(error, PrivilegedWriteError):
        fail(turn, operation, error)
    elif operation.step is Step.READING_CONFIG:
        fail(turn, operation, InternalError(_UNREADABLE))
    else:
        cause = request_error(error)
        text = f"{_FAILED}: {cause.message}"
        fail(turn, operation, InternalError(text, permanent=cause.permanent))


def _may_fence(turn: Turn, operation: Operation, connector: str) -> bool:
    """Answer and return False when this worker cannot or need not do it."""
    snapshot = turn.state.snapshot
    if not turn.state.is_leader:
        error = not_leader(turn, "Only the leader may perform zombie fencing.")
        fail(turn, operation, error)
    elif not snapshot.contains(connector):
        fail(turn, operation, not_found(connector))
    elif turn.state.settings.connector_type(snapshot.connector_config(connector)) == "sink":
        error_ = BadRequestError(f"Connector {connector} is not a source connector")
        fail(turn, operation, error_)
    else:
        return True
    return False


def _decide(turn: Turn, operation: Operation, connector: str) -> None:
    snapshot = turn.state.snapshot
    fenced = snapshot.task_count_records.get(connector)
    if connector not in snapshot.pending_fencing and fenced is not None:
        succeed(turn, operation)
        return
    single = fenced == 1 and snapshot.task_count(connector) == 1
    if fenced is None or single:
        # Nothing ran before, or the one new task fences the one old task itself.
        _write_count(turn, operation, connector)
        return
    config = snapshot.connector_configs[connector]
    generation = _generation(turn, connector)
    proceed(turn, operation, Step.FENCING, stages.fencing(connector), generation=generation)
    group_id = turn.state.settings.group_id
    turn.emit(
        FenceProducers(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            connector=connector,
            config=config,
            transactional_ids=task_transactional_ids(group_id, connector, fenced),
            ids_if_permitted=_alter_ids(group_id, connector, fenced),
            timeout_ms=FENCING_TIMEOUT_MS,
        )
    )


def _alter_ids(group_id: str, connector: str, fenced: int) -> tuple[str, ...]:
    """The id under which offsets are changed: only then when a change may have been begun.

    Before any, the count record is made 0, and stays so until tasks are about to run again.
    """
    return (alter_transactional_id(group_id, connector),) if fenced == 0 else ()


def _task_set_on_its_way(turn: Turn, connector: str) -> bool:
    """Whether a newer task set is being written here.

    A count that follows it in the topic would count as its own: later rounds would fence too few.
    """
    queue = turn.lanes.get(connector)
    first = turn.operations.get(queue[0]) if queue else None
    return (
        first is not None
        and first.step is Step.WRITING
        and isinstance(first.request, ApplyTaskConfigs | StopConnector | SubmitTaskConfigs)
    )


def _read(turn: Turn, operation: Operation, step: Step) -> None:
    proceed(turn, operation, step, stages.READING_CONFIG)
    turn.emit(
        ReadConfigToEnd(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            timeout_ms=turn.state.settings.worker_sync_timeout_ms,
        )
    )


def _write_count(turn: Turn, operation: Operation, connector: str) -> None:
    if _task_set_on_its_way(turn, connector):
        fail(turn, operation, ConflictError(_OVERTAKEN))
        return
    stage = f"writing a task count record for connector {connector} to the config topic"
    proceed(turn, operation, Step.WRITING, stage)
    turn.emit(
        WriteTaskCountRecord(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            connector=connector,
            task_count=turn.state.snapshot.task_count(connector),
        )
    )


def _generation(turn: Turn, connector: str) -> int:
    return turn.state.snapshot.task_config_generations.get(connector, 0)
