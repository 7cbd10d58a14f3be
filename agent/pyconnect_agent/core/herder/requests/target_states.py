"""Requests that change a connector's target: pause, resume, stop, task sets.

Stopping is KIP-875's: first an empty task set, then the target state, so that a failure between
the two leaves a connector that is merely short of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.errors import BadRequestError, InternalError
from pyconnect_agent.core.herder.effects import WriteTargetState, WriteTaskConfigs
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.state import Operation, Step
from pyconnect_agent.core.herder.steps import ConnectorRequest
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig

_STANDALONE_TASKS = (
    "Kafka Connect in standalone mode does not support externally setting task configurations."
)
_LEADER_STOPS = "Only the leader can transition connectors to the STOPPED state."


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTargetState(ConnectorRequest):
    """Pause and resume, by any worker. -> None."""

    target_state: TargetState
    served_drained = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.exists(operation, self.connector, f"Unknown connector {self.connector}"):
            turn.proceed(
                operation,
                Step.WRITING_TARGET_STATE,
                f"writing the {self.target_state.value} target state for connector"
                f" {self.connector} to the config topic",
                WriteTargetState(connector=self.connector, target_state=self.target_state),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StopConnector(ConnectorRequest):
    """KIP-875: empty task set, then STOPPED. -> None."""

    leaders_write = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.state.settings.standalone and not turn.state.snapshot.contains(self.connector):
            # A standalone Apache worker answers 500 here, in these words.
            error = InternalError(f"No connector `{self.connector}` configured")
            turn.fail(operation, error)
        elif self._may_stop(turn, operation):
            write_task_configs(turn, operation, self.connector, ())

    def resumed(self, turn: Turn, operation: Operation, result: Any) -> None:
        """The next of: empty task set → target state → read back → done."""
        match operation.step:
            case Step.WRITING:
                if self._may_stop(turn, operation):
                    turn.proceed(
                        operation,
                        Step.WRITING_TARGET_STATE,
                        # "stage" is Apache's own word there.
                        f"writing the STOPPED target stage for connector {self.connector} to the"
                        " config topic",
                        WriteTargetState(
                            connector=self.connector, target_state=TargetState.STOPPED
                        ),
                    )
            case Step.WRITING_TARGET_STATE:
                stage = stages.READING_CONFIG
                turn.proceed(operation, Step.READING_BACK, stage, turn.read_to_end())
            case _:
                turn.succeed(operation)

    def failed(self, turn: Turn, operation: Operation, error: Exception) -> None:
        if operation.step is Step.READING_BACK:
            # Both records are written; reading them back only saves the client a surprise.
            turn.succeed(operation)
        else:
            turn.fail(operation, error)

    def _may_stop(self, turn: Turn, operation: Operation) -> bool:
        unknown = f"Unknown connector {self.connector}"
        return turn.exists(operation, self.connector, unknown) and turn.leads(
            operation, _LEADER_STOPS
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitTaskConfigs(ConnectorRequest):
    """Internal endpoint: the complete new task set. -> None."""

    configs: tuple[ConnectorConfig, ...]
    leaders_write = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.state.settings.standalone:
            turn.fail(operation, InternalError(_STANDALONE_TASKS))
            return
        if not turn.leads(operation, "Only the leader may write task configurations."):
            return
        if not turn.exists(operation, self.connector):
            return
        if self.configs and (
            turn.state.snapshot.target_state(self.connector) is TargetState.STOPPED
        ):
            text = "Cannot submit non-empty set of task configs for stopped connector"
            turn.fail(operation, BadRequestError(f"{text} {self.connector}"))
        else:
            write_task_configs(turn, operation, self.connector, self.configs)


def write_task_configs(
    turn: Turn, operation: Operation, connector: str, configs: tuple[ConnectorConfig, ...]
) -> None:
    turn.proceed(
        operation,
        Step.WRITING,
        stages.writing_task_configs(connector, len(configs)),
        WriteTaskConfigs(connector=connector, configs=configs),
    )
