"""Make the task configs of a running connector again and apply them if they differ.

Kafka: DistributedHerder.reconfigureConnectorTasksWithExponentialBackoffRetries. Retried without
limit, 250 ms doubling to 60 s, as long as the connector runs here; a failed connector asks again
when it runs again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.herder.effects import GenerateTaskConfigs, SendTaskConfigs
from pyconnect_agent.core.herder.events import ReconfigurationRetry
from pyconnect_agent.core.herder.membership import leader_id_conflicts as disputes
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.requests.configs import settled, settling_failed
from pyconnect_agent.core.herder.requests.operations import enqueue, fail, proceed, succeed
from pyconnect_agent.core.herder.requests.target_states import write_task_configs
from pyconnect_agent.core.herder.state import (
    ApplyTaskConfigs,
    Life,
    Operation,
    Reconfiguration,
    ReconfigurationStep,
    Step,
)
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.waiters import GenerationWaiter, OperationWaiter
from pyconnect_agent.core.ids import State, TargetState

FIRST_BACKOFF_MS = 250
LONGEST_BACKOFF_MS = 60_000


def request(turn: Turn, connector: str) -> None:
    """Ignored unless the connector runs here and is to be STARTED."""
    if not _runs_here(turn, connector):
        return
    active = turn.reconfigurations.get(connector)
    if active is None or active.step is ReconfigurationStep.BACKING_OFF:
        _generate(turn, connector, attempt=active.attempt if active is not None else 0)
    else:
        turn.reconfigurations.set(connector, replace(active, again=True))


def generated(turn: Turn, waiter: GenerationWaiter, result: Any) -> None:
    """`result` is a children.ports.TaskConfigsGenerated."""
    connector = waiter.connector
    active = turn.reconfigurations.get(connector)
    if active is None:
        return
    if not _runs_here(turn, connector):
        turn.reconfigurations.discard(connector)
        return
    values_changed = active.values_changed or result.values_changed
    active = replace(active, values_changed=values_changed)
    turn.reconfigurations.set(connector, active)
    if active.again or turn.state.snapshot.connector_config(connector) != waiter.config:
        _generate(turn, connector, attempt=active.attempt)
        return
    turn.reconfigurations.set(connector, replace(active, step=ReconfigurationStep.APPLYING))
    apply = ApplyTaskConfigs(
        connector=connector,
        configs=result.configs,
        generated_from=waiter.config,
        connector_config_changed=result.connector_config_changed,
        values_changed=values_changed,
    )
    # The herder's own requests have negative ids, the shell's are positive.
    enqueue(turn, -turn.new_id(), apply, deadline_ms=None)


def begin_apply(turn: Turn, operation: Operation, apply: ApplyTaskConfigs) -> None:
    """Look again at everything that may have changed while the operation queued."""
    connector = apply.connector
    snapshot = turn.state.snapshot
    if not _runs_here(turn, connector):
        succeed(turn, operation)
        turn.reconfigurations.discard(connector)
    elif snapshot.connector_config(connector) != apply.generated_from:
        succeed(turn, operation)
        _again(turn, connector)
    elif not _differs(turn, apply):
        applied(turn, operation, apply)
    elif not turn.state.is_leader:
        _send_to_leader(turn, operation, apply)
    elif (dispute := disputes.dispute(turn.state)) is not None:
        failed_to_apply(turn, operation, apply, dispute)
    else:
        write_task_configs(turn, operation, connector, apply.configs)


def _send_to_leader(turn: Turn, operation: Operation, apply: ApplyTaskConfigs) -> None:
    """Kafka: DistributedHerder.publishConnectorTaskConfigs for a follower."""
    leader_url = turn.state.leader_url
    if not leader_url:
        text = (
            "Request to leader to reconfigure connector tasks failed because the URL of the"
            " leader's REST interface is empty!"
        )
        failed_to_apply(turn, operation, apply, InternalError(text))
        return
    stage = stages.writing_task_configs(apply.connector, len(apply.configs))
    proceed(turn, operation, Step.SENDING, stage)
    turn.emit(
        SendTaskConfigs(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            leader_url=leader_url,
            connector=apply.connector,
            configs=apply.configs,
        )
    )


def applied(turn: Turn, operation: Operation, apply: ApplyTaskConfigs) -> None:
    succeed(turn, operation)
    active = turn.reconfigurations.get(apply.connector)
    turn.reconfigurations.discard(apply.connector)
    settled(turn, apply.connector)
    if active is not None and active.again:
        request(turn, apply.connector)


def failed_to_apply(
    turn: Turn, operation: Operation, apply: ApplyTaskConfigs, error: Exception
) -> None:
    fail(turn, operation, error)
    failed(turn, apply.connector, error)


def failed(turn: Turn, connector: str, error: Exception) -> None:
    """Wait and try again, unless the connector itself has failed."""
    settling_failed(turn, connector, error)
    active = turn.reconfigurations.get(connector)
    if active is None:
        return
    if not _runs_here(turn, connector):
        turn.reconfigurations.discard(connector)
        return
    attempt = active.attempt + 1
    waiting = replace(active, step=ReconfigurationStep.BACKING_OFF, attempt=attempt, again=False)
    turn.reconfigurations.set(connector, waiting)
    timer = ReconfigurationRetry(connector=connector, attempt=attempt)
    turn.wake_at(turn.now_ms + backoff_ms(attempt), timer)


def retry_due(turn: Turn, timer: ReconfigurationRetry) -> None:
    active = turn.reconfigurations.get(timer.connector)
    if (
        active is None
        or active.step is not ReconfigurationStep.BACKING_OFF
        or active.attempt != timer.attempt
    ):
        return
    if _runs_here(turn, timer.connector):
        _generate(turn, timer.connector, attempt=active.attempt)
    else:
        turn.reconfigurations.discard(timer.connector)


def backoff_ms(attempt: int) -> int:
    """Before attempt 1, 2, 3 …: 250, 500, 1000 … 60000."""
    return min(FIRST_BACKOFF_MS << min(attempt - 1, 20), LONGEST_BACKOFF_MS)


def _generate(turn: Turn, connector: str, *, attempt: int) -> None:
    config = turn.state.snapshot.connector_configs[connector]
    step = ReconfigurationStep.GENERATING
    active = turn.reconfigurations.get(connector) or Reconfiguration(step=step)
    turn.reconfigurations.set(connector, replace(active, step=step, attempt=attempt, again=False))
    turn.emit(
        GenerateTaskConfigs(
            effect_id=turn.wait_for(GenerationWaiter(connector=connector, config=config)),
            connector=connector,
            config=config,
            applied_config=turn.state.snapshot.applied_config(connector),
        )
    )


def _again(turn: Turn, connector: str) -> None:
    active = turn.reconfigurations.get(connector)
    _generate(turn, connector, attempt=active.attempt if active is not None else 0)


def _differs(turn: Turn, apply: ApplyTaskConfigs) -> bool:
    snapshot = turn.state.snapshot
    connector = apply.connector
    if (
        apply.connector_config_changed
        and snapshot.applied_config(connector) != apply.generated_from
    ):
        return True
    if apply.values_changed:
        return True
    if snapshot.task_count(connector) != len(apply.configs) or connector in snapshot.inconsistent:
        return True
    return any(
        snapshot.task_config(task_id) != config
        for task_id, config in zip(snapshot.tasks(connector), apply.configs, strict=True)
    )


def _runs_here(turn: Turn, connector: str) -> bool:
    """RUNNING by its own report, with the current config, and not about to stop."""
    share = turn.work.get(connector)
    snapshot = turn.state.snapshot
    return (
        share is not None
        and share.connector is not None
        and share.connector.life is Life.STARTED
        and share.connector.reported is State.RUNNING
        and share.connector.config == snapshot.connector_config(connector)
        and snapshot.target_state(connector) is TargetState.STARTED
    )
