"""The leader fences producers that older task sets of a connector may still run (KIP-618).

KIP-618: read to the end, fence as many ids as the last task count record says, check again, write
the new count. Requests for one connector queue in their own lane: the next one finds the round
done. The connector's configs may change meanwhile, and then the round fails.
"""

from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.errors import (
    BadRequestError,
    ConflictError,
    InternalError,
    PrivilegedWriteError,
    RetriableKafkaError,
)
from pyconnect_agent.core.herder import steps
from pyconnect_agent.core.herder.effects import FenceProducers, WriteTaskCountRecord
from pyconnect_agent.core.herder.requests.configs import StopConnector, SubmitTaskConfigs
from pyconnect_agent.core.herder.requests.reconfiguration import ApplyTaskConfigs
from pyconnect_agent.core.herder.state import Operation, Step
from pyconnect_agent.core.herder.steps import ConnectorRequest
from pyconnect_agent.core.herder.turn import Turn, request_error
from pyconnect_clients.connect_names import alter_transactional_id, task_transactional_ids

FENCING_TIMEOUT_MS = 90_000

_STANDALONE = "Kafka Connect in standalone mode does not support exactly-once source connectors."
_UNREADABLE = "Failed to read to end of config topic before performing zombie fencing"
_FAILED = "Failed to perform zombie fencing"
_CANCELLED = "Failed to complete zombie fencing because a new set of task configs was generated"
_OVERTAKEN = "Fencing failed because new task configurations were generated for the connector"


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceZombies(ConnectorRequest):
    """Internal endpoint of KIP-618. -> None."""

    leaders_write = True

    @property
    def lane(self) -> str | None:
        """A lane beside the connector's: its configs may change while zombies are fenced."""
        return f"{self.connector} fencing"

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.state.settings.standalone:
            turn.fail(operation, InternalError(_STANDALONE))
        elif self._may_fence(turn, operation):
            self._read(turn, operation, Step.READING_CONFIG)

    def resumed(self, turn: Turn, operation: Operation, result: Any) -> None:
        """Take the next step of: read → fence → read again → write the count → done."""
        step = operation.step
        if step is Step.WRITING:
            if self.connector in turn.state.snapshot.pending_fencing:
                turn.fail(operation, ConflictError(_CANCELLED))
            else:
                turn.succeed(operation)
        elif step in (Step.FENCING, Step.READING_AGAIN) and (
            self._generation(turn) != operation.generation
        ):
            text = _CANCELLED if step is Step.FENCING else _OVERTAKEN
            turn.fail(operation, ConflictError(text))
        elif not turn.state.serving:
            # Another worker may lead after the rebalance; a second round does no harm.
            turn.begin_again(operation)
        elif self._may_fence(turn, operation):
            match step:
                case Step.READING_CONFIG:
                    self._decide(turn, operation)
                case Step.FENCING:
                    self._read(turn, operation, Step.READING_AGAIN)
                case _:
                    self._write_count(turn, operation)

    def failed(self, turn: Turn, operation: Operation, error: Exception) -> None:
        """Answer with the name of the failed step, for a fencing round also with the cause.

        Fenced producers stay fenced, so reading is repeated until the request's time is over.
        """
        if operation.step is Step.READING_AGAIN and isinstance(error, RetriableKafkaError):
            self._read(turn, operation, Step.READING_AGAIN)
        elif isinstance(error, PrivilegedWriteError):
            turn.fail(operation, error)
        elif operation.step is Step.READING_CONFIG:
            turn.fail(operation, InternalError(_UNREADABLE))
        else:
            cause = request_error(error)
            text = f"{_FAILED}: {cause.message}"
            turn.fail(operation, InternalError(text, permanent=cause.permanent))

    def _may_fence(self, turn: Turn, operation: Operation) -> bool:
        """Return whether this worker can fence producers; if not, the operation has failed."""
        if not (
            turn.leads(operation, "Only the leader may perform zombie fencing.")
            and turn.exists(operation, self.connector)
        ):
            return False
        config = turn.state.snapshot.connector_config(self.connector)
        sink = turn.state.settings.connector_type(config) == "sink"
        if sink:
            error = BadRequestError(f"Connector {self.connector} is not a source connector")
            turn.fail(operation, error)
        return not sink

    def _decide(self, turn: Turn, operation: Operation) -> None:
        connector, snapshot = self.connector, turn.state.snapshot
        fenced = snapshot.task_count_records.get(connector)
        if connector not in snapshot.pending_fencing and fenced is not None:
            turn.succeed(operation)
            return
        single = fenced == 1 and snapshot.task_count(connector) == 1
        if fenced is None or single:
            # No task ran before, or the one new task fences the one old task itself.
            self._write_count(turn, operation)
            return
        group_id = turn.state.settings.group_id
        # Only with a count of 0 a change of offsets may have begun: 0 is written before any change,
        # and stays until tasks are about to run again.
        alter_ids = (alter_transactional_id(group_id, connector),) if fenced == 0 else ()
        turn.proceed(
            operation,
            Step.FENCING,
            steps.fencing(connector),
            FenceProducers(
                connector=connector,
                config=snapshot.connector_configs[connector],
                transactional_ids=task_transactional_ids(group_id, connector, fenced),
                ids_if_permitted=alter_ids,
                timeout_ms=FENCING_TIMEOUT_MS,
            ),
            generation=self._generation(turn),
        )

    def _read(self, turn: Turn, operation: Operation, step: Step) -> None:
        turn.proceed(operation, step, steps.READING_CONFIG, turn.read_to_end())

    def _write_count(self, turn: Turn, operation: Operation) -> None:
        active = turn.first_in_lane(self.connector)
        if (
            active is not None
            and active.step is Step.WRITING
            and isinstance(active.request, ApplyTaskConfigs | StopConnector | SubmitTaskConfigs)
        ):
            # This worker is writing a newer task set. A count behind it in the topic would count as
            # that set's own: later rounds would fence too few producers.
            turn.fail(operation, ConflictError(_OVERTAKEN))
            return
        turn.proceed(
            operation,
            Step.WRITING,
            f"writing a task count record for connector {self.connector} to the config topic",
            WriteTaskCountRecord(
                connector=self.connector, task_count=turn.state.snapshot.task_count(self.connector)
            ),
        )

    def _generation(self, turn: Turn) -> int:
        return turn.state.snapshot.task_config_generations.get(self.connector, 0)
