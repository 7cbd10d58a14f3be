"""Requests that read and change a connector: its config, its target state, its task set.

After every wait the conditions are checked again: another worker may have become leader, the
connector may be removed. A stop follows KIP-875: first an empty task set, then the target state, so
that a failure between the two leaves a connector that is merely short of tasks.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyconnect_agent.core.errors import AlreadyExistsError, BadRequestError, InternalError
from pyconnect_agent.core.herder import steps
from pyconnect_agent.core.herder.effects import (
    RemoveConnectorConfig,
    ValidateConfig,
    WriteConnectorConfig,
    WriteTargetState,
    WriteTaskConfigs,
)
from pyconnect_agent.core.herder.state import HerderState, Operation, Step
from pyconnect_agent.core.herder.steps import ConnectorRequest, Request
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.reporting import ConnectorInfo, TaskInfo
from pyconnect_clients.connect_names import alter_transactional_id, task_transactional_ids


class SharedId(NamedTuple):
    """An id that a connector shares with another or with the leader (`other` None)."""

    transactional_id: str
    other: str | None


def shared_id(
    group_id: str,
    connector: str,
    tasks_max: int,
    others: Callable[[str], int | None],
    *,
    leader: str,
) -> SharedId | None:
    """Return an id of a new source connector that is in use already, or None.

    `others` returns how many tasks an existing connector may have, None for other names; `leader`
    is the id of the group's leader. Ids of tasks end with the task's number. So two connectors
    share an id only if the id with which one alters offsets is an id of the other's tasks.
    """
    alter = alter_transactional_id(group_id, connector)
    if leader == alter or leader in task_transactional_ids(group_id, connector, tasks_max):
        return SharedId(leader, None)
    for number in range(tasks_max):
        if others(other := f"{connector}-{number}") is not None:
            return SharedId(alter_transactional_id(group_id, other), other)
    owner, _, number_text = connector.rpartition("-")
    if any(str(number) == number_text for number in range(others(owner) or 0)):
        return SharedId(alter, owner)
    return None


_INT_DIGITS = 10
_LEADER_SETS = "Only the leader can set connector configs."


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Request):
    """A health check, answered with None once the herder serves requests."""

    served_drained = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        turn.succeed(operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConnectorInfo(Request):
    """-> ConnectorInfo."""

    connector: str
    served_drained = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.exists(operation, self.connector):
            turn.succeed(operation, connector_info(turn.state, self.connector))


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConnectorConfig(Request):
    """-> ConnectorConfig (raw)."""

    connector: str
    served_drained = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.exists(operation, self.connector):
            turn.succeed(operation, turn.state.snapshot.connector_config(self.connector))


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTaskConfigs(Request):
    """-> tuple[TaskInfo, ...]."""

    connector: str
    served_drained = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        snapshot = turn.state.snapshot
        if turn.exists(operation, self.connector):
            infos = tuple(
                TaskInfo(id=task_id, config=snapshot.task_configs.get(task_id, {}))
                for task_id in snapshot.tasks(self.connector)
            )
            turn.succeed(operation, infos)


@dataclass(frozen=True, slots=True, kw_only=True)
class PutResult:
    """Result of a change. `created` True leads to status 201, False to 200."""

    created: bool
    info: ConnectorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeConfig(ConnectorRequest):
    """Put and patch: validate, check again, write, answer with a `PutResult`."""

    leaders_write = True

    def _validate(self, turn: Turn, operation: Operation, config: ConnectorConfig) -> None:
        turn.proceed(
            operation,
            Step.VALIDATING,
            f"validating the config of connector {self.connector}",
            ValidateConfig(
                connector=self.connector,
                config=config,
                timeout_ms=turn.state.settings.validation_timeout_ms,
            ),
            config=config,
        )

    def resumed(self, turn: Turn, operation: Operation, result: Any) -> None:
        """Go on; a standalone worker answers once the connector runs with its task configs."""
        if operation.step is Step.VALIDATING:
            # Meanwhile the worker may have lost the leadership or stopped serving.
            if not turn.state.serving:
                turn.begin_again(operation)
            elif turn.leads(operation, _LEADER_SETS):
                self.validated(turn, operation)
        elif turn.state.settings.standalone:
            turn.leave_lane(turn.proceed(operation, Step.SETTLING, steps.STARTING_CONNECTOR))
        else:
            self.answer(turn, operation)

    @abstractmethod
    def validated(self, turn: Turn, operation: Operation) -> None:
        """Check the conditions again, then write."""

    def _write(
        self,
        turn: Turn,
        operation: Operation,
        config: ConnectorConfig,
        *,
        target_state: TargetState | None,
        created: bool,
    ) -> None:
        turn.proceed(
            operation,
            Step.WRITING,
            f"writing a config for connector {self.connector} to the config topic",
            WriteConnectorConfig(
                connector=self.connector, config=config, target_state=target_state
            ),
            config=config,
            created=created,
        )

    def answer(self, turn: Turn, operation: Operation) -> None:
        info = connector_info(turn.state, self.connector, operation.config)
        assert info is not None
        turn.succeed(operation, PutResult(created=operation.created, info=info))


@dataclass(frozen=True, slots=True, kw_only=True)
class PutConnectorConfig(ChangeConfig):
    """-> PutResult. The receiving worker has validated `config`.

    `allow_replace` False is POST: an existing name is AlreadyExistsError.
    """

    config: ConnectorConfig
    initial_state: TargetState | None = None
    allow_replace: bool = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.leads(operation, _LEADER_SETS):
            self._validate(turn, operation, self.config)

    def validated(self, turn: Turn, operation: Operation) -> None:
        exists = turn.state.snapshot.contains(self.connector)
        error: Exception | None = None
        if not exists:
            error = self._shared_id_error(turn)
        elif not self.allow_replace:
            error = AlreadyExistsError(f"Connector {self.connector} already exists")
        if error is not None:
            turn.fail(operation, error)
            return
        self._write(
            turn, operation, self.config, target_state=self.initial_state, created=not exists
        )

    def _shared_id_error(self, turn: Turn) -> BadRequestError | None:
        """Return an error if, with exactly-once, a producer would fence another connector's."""
        settings, snapshot = turn.state.settings, turn.state.snapshot
        if not settings.needs_start_permission(self.config):
            return None

        def others(name: str) -> int | None:
            config = snapshot.connector_config(name)
            return None if config is None else tasks_max(config)

        found = shared_id(
            settings.group_id,
            self.connector,
            tasks_max(self.config),
            others,
            leader=settings.leader_transactional_id,
        )
        if found is None:
            return None
        user = "the leader of the group" if found.other is None else f"connector {found.other}"
        return BadRequestError(
            f"Connector {self.connector} cannot be created with exactly-once support: its"
            f" producers would share the transactional id {found.transactional_id} with {user} and"
            " fence each other. Choose another name."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchConnectorConfig(ChangeConfig):
    """-> PutResult. None removes a key (KIP-477); the merged config is validated."""

    patch: Mapping[str, str | None]

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.leads(operation, _LEADER_SETS) and turn.exists(operation, self.connector):
            config = turn.state.snapshot.connector_configs[self.connector]
            self._validate(turn, operation, self._patched(config))

    def validated(self, turn: Turn, operation: Operation) -> None:
        config = turn.state.snapshot.connector_config(self.connector)
        if config is None or self._patched(config) != operation.config:
            # The config changed while the merged one was validated: merge and validate again.
            self.begin(turn, operation)
        else:
            self._write(turn, operation, operation.config, target_state=None, created=False)

    def _patched(self, config: ConnectorConfig) -> ConnectorConfig:
        merged = {**config, **self.patch}
        return {key: value for key, value in merged.items() if self.patch.get(key, "") is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteConnector(ConnectorRequest):
    """-> None."""

    leaders_write = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        if not turn.leads(operation, "Only the leader can delete connector configs."):
            return
        if turn.exists(operation, self.connector):
            turn.proceed(
                operation,
                Step.WRITING,
                f"removing the config for connector {self.connector} from the config topic",
                RemoveConnectorConfig(connector=self.connector),
            )


def connector_info(
    state: HerderState, connector: str, config: ConnectorConfig | None = None
) -> ConnectorInfo | None:
    """Return a connector as in this worker's config topic, with `config` as its config if given."""
    shown = config if config is not None else state.snapshot.connector_config(connector)
    if shown is None:
        return None
    return ConnectorInfo(
        name=connector,
        config=shown,
        tasks=state.snapshot.tasks(connector),
        type=state.settings.connector_type(shown),
    )


def tasks_max(config: ConnectorConfig) -> int:
    """Return `tasks.max`, or 1 if it is not a number."""
    text = (config.get("tasks.max") or "").strip()
    # A config of another worker may have any text, also more digits than Python reads.
    return int(text) if text.isdecimal() and len(text) <= _INT_DIGITS else 1


def settled(turn: Turn, connector: str, error: Exception | None = None) -> None:
    """Answer requests that wait for the start of the connector; `error`: the start has failed."""
    if not turn.state.settings.standalone:
        return
    for operation in tuple(turn.operations.current.values()):
        request = operation.request
        if (
            operation.step is Step.SETTLING
            and isinstance(request, ChangeConfig)
            and request.connector == connector
        ):
            if error is None:
                request.answer(turn, operation)
            else:
                turn.fail(operation, error)


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
            # A standalone Apache worker answers 500 here, with this text.
            error = InternalError(f"No connector `{self.connector}` configured")
            turn.fail(operation, error)
        elif self._may_stop(turn, operation):
            write_task_configs(turn, operation, self.connector, ())

    def resumed(self, turn: Turn, operation: Operation, result: Any) -> None:
        """Take the next step of: empty task set → target state → read back → done."""
        match operation.step:
            case Step.WRITING:
                if self._may_stop(turn, operation):
                    turn.proceed(
                        operation,
                        Step.WRITING_TARGET_STATE,
                        # "stage" is the word in Apache's text.
                        f"writing the STOPPED target stage for connector {self.connector} to the"
                        " config topic",
                        WriteTargetState(
                            connector=self.connector, target_state=TargetState.STOPPED
                        ),
                    )
            case Step.WRITING_TARGET_STATE:
                stage = steps.READING_CONFIG
                turn.proceed(operation, Step.READING_BACK, stage, turn.read_to_end())
            case _:
                turn.succeed(operation)

    def failed(self, turn: Turn, operation: Operation, error: Exception) -> None:
        if operation.step is Step.READING_BACK:
            # Both records are written. The read only lets the client see its own change.
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
        steps.writing_task_configs(connector, len(configs)),
        WriteTaskConfigs(connector=connector, configs=configs),
    )
