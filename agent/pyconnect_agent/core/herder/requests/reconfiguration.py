"""Generate the task configs of a running connector again and apply them if they differ.

Kafka: DistributedHerder.reconfigureConnectorTasksWithExponentialBackoffRetries. Retries have no
limit as long as the connector runs here; the delay doubles from 250 ms to 60 s. A failed connector
asks again when it runs again.
"""

from dataclasses import dataclass, replace
from typing import Any

from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.herder import steps
from pyconnect_agent.core.herder.effects import GenerateTaskConfigs, SendTaskConfigs
from pyconnect_agent.core.herder.requests.configs import settled, write_task_configs
from pyconnect_agent.core.herder.state import (
    Life,
    Operation,
    Reconfiguration,
    ReconfigurationStep,
    Step,
)
from pyconnect_agent.core.herder.steps import ConnectorRequest, Timer, Waiter
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig

FIRST_BACKOFF_MS = 250
LONGEST_BACKOFF_MS = 60_000


def request(turn: Turn, connector: str) -> None:
    """Generate task configs, if the connector runs here and its target state is STARTED."""
    if not _runs_here(turn, connector):
        return
    active = turn.reconfigurations.get(connector)
    if active is None or active.step is ReconfigurationStep.BACKING_OFF:
        _generate(turn, connector)
    else:
        turn.reconfigurations.set(connector, replace(active, again=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Waiter):
    """The wait for task configs that are being generated from `config`."""

    connector: str
    config: ConnectorConfig

    def done(self, turn: Turn, result: Any) -> None:
        """Apply the task configs; `result` is a children.ports.TaskConfigsGenerated."""
        connector = self.connector
        active = turn.reconfigurations.get(connector)
        if active is None:
            return
        if not _runs_here(turn, connector):
            turn.reconfigurations.discard(connector)
            return
        values_changed = active.values_changed or result.values_changed
        active = replace(active, values_changed=values_changed)
        turn.reconfigurations.set(connector, active)
        if active.again or turn.state.snapshot.connector_config(connector) != self.config:
            _generate(turn, connector)
            return
        turn.reconfigurations.set(connector, replace(active, step=ReconfigurationStep.APPLYING))
        apply = ApplyTaskConfigs(
            connector=connector,
            configs=result.configs,
            generated_from=self.config,
            connector_config_changed=result.connector_config_changed,
            values_changed=values_changed,
        )
        # The herder's own requests have negative ids, the shell's positive ones.
        turn.enqueue(-turn.new_id(), apply, deadline_ms=None)

    def failed(self, turn: Turn, error: Exception) -> None:
        _back_off(turn, self.connector, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyTaskConfigs(ConnectorRequest):
    """The herder's own request: write newly generated task configs if they differ.

    `generated_from`: the connector config that they were generated from. `values_changed`: config
    providers supply new values for it, so the tasks restart even with the same configs.
    """

    configs: tuple[ConnectorConfig, ...]
    generated_from: ConnectorConfig
    connector_config_changed: bool
    values_changed: bool = False
    # A drained worker finds out that the connector does not run here.
    served_drained = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        """Check again all conditions that may have changed while the operation queued."""
        connector = self.connector
        if not _runs_here(turn, connector):
            turn.succeed(operation)
            turn.reconfigurations.discard(connector)
        elif turn.state.snapshot.connector_config(connector) != self.generated_from:
            turn.succeed(operation)
            _generate(turn, connector)
        elif not self._differs(turn):
            self.resumed(turn, operation, None)
        elif not turn.state.is_leader:
            self._send_to_leader(turn, operation)
        elif (dispute := turn.state.dispute()) is not None:
            self.failed(turn, operation, dispute)
        else:
            write_task_configs(turn, operation, connector, self.configs)

    def resumed(self, turn: Turn, operation: Operation, result: Any) -> None:
        """Answer requests that wait for the task configs, which are applied now."""
        turn.succeed(operation)
        active = turn.reconfigurations.get(self.connector)
        turn.reconfigurations.discard(self.connector)
        settled(turn, self.connector)
        if active is not None and active.again:
            request(turn, self.connector)

    def failed(self, turn: Turn, operation: Operation, error: Exception) -> None:
        turn.fail(operation, error)
        _back_off(turn, self.connector, error)

    def _send_to_leader(self, turn: Turn, operation: Operation) -> None:
        """Send the configs to the leader. Kafka: DistributedHerder.publishConnectorTaskConfigs."""
        leader_url = turn.state.leader_url
        if not leader_url:
            text = (
                "Request to leader to reconfigure connector tasks failed because the URL of the"
                " leader's REST interface is empty!"
            )
            self.failed(turn, operation, InternalError(text))
            return
        turn.proceed(
            operation,
            Step.SENDING,
            steps.writing_task_configs(self.connector, len(self.configs)),
            SendTaskConfigs(leader_url=leader_url, connector=self.connector, configs=self.configs),
        )

    def _differs(self, turn: Turn) -> bool:
        snapshot, connector = turn.state.snapshot, self.connector
        return (
            self.values_changed
            or (
                self.connector_config_changed
                and snapshot.applied_config(connector) != self.generated_from
            )
            or snapshot.task_count(connector) != len(self.configs)
            or connector in snapshot.inconsistent
            or any(
                snapshot.task_config(task_id) != config
                for task_id, config in zip(snapshot.tasks(connector), self.configs, strict=True)
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconfigurationRetry(Timer):
    connector: str
    attempt: int

    def due(self, turn: Turn) -> None:
        active = turn.reconfigurations.get(self.connector)
        if (
            active is None
            or active.step is not ReconfigurationStep.BACKING_OFF
            or active.attempt != self.attempt
        ):
            return
        if _runs_here(turn, self.connector):
            _generate(turn, self.connector)
        else:
            turn.reconfigurations.discard(self.connector)


def backoff_ms(attempt: int) -> int:
    """Return the delay before attempt 1, 2, 3 …: 250, 500, 1000 … 60000."""
    return min(FIRST_BACKOFF_MS << min(attempt - 1, 20), LONGEST_BACKOFF_MS)


def _back_off(turn: Turn, connector: str, error: Exception) -> None:
    """Wait and try again, unless the connector itself has failed."""
    settled(turn, connector, error)
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


def _generate(turn: Turn, connector: str) -> None:
    config = turn.state.snapshot.connector_configs[connector]
    step = ReconfigurationStep.GENERATING
    active = turn.reconfigurations.get(connector) or Reconfiguration(step=step)
    turn.reconfigurations.set(connector, replace(active, step=step, again=False))
    turn.ask(
        GenerateTaskConfigs(
            connector=connector,
            config=config,
            applied_config=turn.state.snapshot.applied_config(connector),
        ),
        Generation(connector=connector, config=config),
    )


def _runs_here(turn: Turn, connector: str) -> bool:
    """Return whether the connector reports RUNNING, with the current config, and is to go on."""
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
