"""Altering and resetting a connector's offsets (KIP-875).

Kafka: `DistributedHerder.modifyConnectorOffsets`. Read to the end, check, fence producers that may
still run (exactly-once sources), read and check again, ask the connector, read and check once more,
write. Kafka Connect leaves out the last check: it does not notice when, while the connector is
asked, another worker resumes it or its config changes.

A rebalance or a new config in between starts the change from the beginning; other conditions that
fail end it. Nothing has been written then. A write that has begun is completed in any case.
"""

from dataclasses import dataclass, replace
from typing import Any

from pyconnect_agent.core.errors import BadRequestError, InternalError, NotFoundError
from pyconnect_agent.core.herder import steps
from pyconnect_agent.core.herder.effects import (
    AbandonOffsetChange,
    CommitOffsetChange,
    PrepareOffsetChange,
    RequestFencing,
)
from pyconnect_agent.core.herder.state import Operation, Step
from pyconnect_agent.core.herder.steps import ConnectorRequest
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.offsets.connector_offsets import (
    CONFIG_UNREADABLE,
    FENCING_FAILED,
    LEADER_CHANGES,
    must_be_stopped,
    success_text,
)

CHANGE_TIMEOUT_MS = 90_000
ANSWER_MARGIN_MS = 500
"""A change ends this much before its request, so that the answer can name the slow step."""

_READS = frozenset({Step.READING_CONFIG, Step.READING_AGAIN, Step.CONFIRMING})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOffsets(ConnectorRequest):
    """KIP-875: alter the offsets of a stopped connector, or reset them all (None). -> str.

    The result is the text for the client. `offsets`: the JSON text of the request, already checked;
    it may be very large, and only the child process that needs the offsets parses it.
    """

    offsets: bytes | None

    def begin(self, turn: Turn, operation: Operation) -> None:
        if turn.leads(operation, LEADER_CHANGES):
            self._read(turn, operation, Step.READING_CONFIG)

    def resumed(self, turn: Turn, operation: Operation, result: Any) -> None:
        """Take the next step of: read → fence → read again → prepare → confirm → change → done."""
        if operation.step is Step.CHANGING:
            text = success_text(is_reset=self.offsets is None, complete=operation.complete)
            turn.succeed(operation, text)
            return
        if operation.step is Step.PREPARING:
            operation = replace(operation, complete=bool(result))
        if not turn.state.serving:
            # Another worker may lead after the rebalance.
            self._abandon(turn, operation)
            turn.begin_again(operation)
            return
        if (error := self._refusal(turn)) is not None:
            self._abandon(turn, operation)
            turn.fail(operation, error)
            return
        config = turn.state.snapshot.connector_configs[self.connector]
        settings = turn.state.settings
        match operation.step:
            case Step.READING_CONFIG if not settings.standalone and settings.needs_start_permission(
                config
            ):
                fencing = RequestFencing(leader_url=None, connector=self.connector)
                turn.proceed(operation, Step.FENCING, steps.fencing(self.connector), fencing)
            case Step.FENCING:
                self._read(turn, operation, Step.READING_AGAIN)
            case Step.PREPARING:
                self._read(turn, operation, Step.CONFIRMING)
            case Step.CONFIRMING if config == operation.config:
                commit = CommitOffsetChange(connector=self.connector)
                turn.proceed(operation, Step.CHANGING, self._modifying, commit)
            case Step.CONFIRMING:
                # The connector was asked with an older config.
                self._abandon(turn, operation)
                self._read(turn, operation, Step.READING_CONFIG)
            case _:
                self._prepare(turn, operation)

    def failed(self, turn: Turn, operation: Operation, error: Exception) -> None:
        """Answer with the name of the failed step; the cause is in this worker's log."""
        self._abandon(turn, operation)
        if operation.step in _READS:
            error = InternalError(CONFIG_UNREADABLE)
        elif operation.step is Step.FENCING:
            error = InternalError(FENCING_FAILED)
        turn.fail(operation, error)

    @property
    def _modifying(self) -> str:
        return f"modifying offsets for connector {self.connector}"

    def _refusal(self, turn: Turn) -> Exception | None:
        """Return the reason to refuse; None when this worker leads and the connector is stopped."""
        state, snapshot = turn.state, turn.state.snapshot
        if not state.is_leader:
            return turn.not_leader(LEADER_CHANGES)
        if (dispute := state.dispute()) is not None:
            return dispute
        if not snapshot.contains(self.connector):
            return NotFoundError(f"Connector {self.connector} not found")
        if (
            snapshot.target_state(self.connector) is not TargetState.STOPPED
            or snapshot.task_count(self.connector) != 0
        ):
            return BadRequestError(must_be_stopped(self.connector))
        return None

    def _prepare(self, turn: Turn, operation: Operation) -> None:
        config = turn.state.snapshot.connector_configs[self.connector]
        left_ms = CHANGE_TIMEOUT_MS
        if operation.deadline_ms is not None:
            left_ms = min(left_ms, operation.deadline_ms - turn.now_ms - ANSWER_MARGIN_MS)
        turn.proceed(
            operation,
            Step.PREPARING,
            self._modifying,
            PrepareOffsetChange(
                connector=self.connector,
                config=config,
                offsets=self.offsets,
                timeout_ms=max(1, left_ms),
            ),
            config=config,
        )

    def _read(self, turn: Turn, operation: Operation, step: Step) -> None:
        turn.proceed(operation, step, steps.READING_CONFIG, turn.read_to_end())

    def _abandon(self, turn: Turn, operation: Operation) -> None:
        """Drop the prepared change, if there is one."""
        if operation.step in (Step.PREPARING, Step.CONFIRMING):
            turn.emit(AbandonOffsetChange(connector=self.connector))
