"""The consequences of a new state of the config topic for this worker.

New and removed connectors and commits of task configs ask for a rebalance; every other change is
handled by the worker that runs the connector. A snapshot that an effect has read may be ahead of
the changes that are still in the inbox. The differences are then found by comparison, and the late
changes have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyconnect_agent.core.herder.effects import ApplyLoggerLevel
from pyconnect_agent.core.herder.events import ConfigAdvanced
from pyconnect_agent.core.herder.state import MembershipPhase
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import instances
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.internal_topics.configlog import (
    ConfigChange,
    ConnectorConfigRemoved,
    ConnectorConfigUpdated,
    LoggerLevelUpdated,
    RestartRequested,
    SessionKeyUpdated,
    TargetStateChanged,
    TaskConfigsUpdated,
)
from pyconnect_agent.core.restart_plan import stronger


def config_advanced(turn: Turn, event: ConfigAdvanced) -> None:
    if event.snapshot.offset > turn.state.snapshot.offset:
        _adopt(turn, event.snapshot, event.changes)
    for change in event.changes:
        match change:
            case RestartRequested(connector=connector):
                pending = turn.state.restarts.get(connector)
                restarts = {**turn.state.restarts, connector: stronger(pending, change)}
                turn.update(restarts=restarts)
            case LoggerLevelUpdated(namespace=namespace, level=level):
                turn.emit(ApplyLoggerLevel(namespace=namespace, level=level))
            case _:
                pass


def adopt_read(turn: Turn, snapshot: ConfigSnapshot) -> None:
    """Adopt the snapshot that an effect has read, if it is newer."""
    if snapshot.offset > turn.state.snapshot.offset:
        _adopt(turn, snapshot, differences(turn.state.snapshot, snapshot))


def differences(old: ConfigSnapshot, new: ConfigSnapshot) -> tuple[ConfigChange, ...]:
    """The changes that lead from one snapshot to a later one, one per connector and kind."""
    changes: list[ConfigChange] = [
        ConnectorConfigRemoved(connector=connector)
        for connector in old.connector_configs.keys() - new.connector_configs.keys()
    ]
    for connector, config in new.connector_configs.items():
        before = old.connector_configs.get(connector)
        if before is not config and before != config:
            changes.append(ConnectorConfigUpdated(connector=connector))
        if old.target_states.get(connector) is not new.target_states.get(connector):
            changes.append(TargetStateChanged(connector=connector))
        if _task_set(old, connector) != _task_set(new, connector):
            changes.append(TaskConfigsUpdated(connector=connector))
    return tuple(changes)


def _adopt(turn: Turn, snapshot: ConfigSnapshot, changes: Iterable[ConfigChange]) -> None:
    old = turn.state.snapshot
    turn.update(snapshot=snapshot)
    if turn.state.phase in (MembershipPhase.STARTING, MembershipPhase.STOPPED):
        return
    touched: dict[str, None] = {}
    rebalance = False
    for change in changes:
        match change:
            case ConnectorConfigUpdated(connector=connector):
                rebalance = rebalance or not old.contains(connector)
                touched[connector] = None
                # Also when the text is the same: that is how a user has secrets read again.
                if old.contains(connector):
                    instances.stop_connector(turn, connector)
            case ConnectorConfigRemoved(connector=connector):
                rebalance = rebalance or old.contains(connector)
                touched[connector] = None
            case TaskConfigsUpdated(connector=connector):
                rebalance = True
                touched[connector] = None
            case TargetStateChanged(connector=connector):
                touched[connector] = None
            case SessionKeyUpdated() | RestartRequested() | LoggerLevelUpdated():
                pass
    # While lost work waits for its worker, any newer state is assigned again.
    if rebalance or (turn.state.scheduled_rebalance and _past_assignment(turn)):
        turn.update(
            rejoin_wanted=True, rebalance_expected=turn.state.rebalance_expected or rebalance
        )
    for connector in touched:
        instances.reconcile(turn, connector)


def _past_assignment(turn: Turn) -> bool:
    membership = turn.state.membership
    offset = turn.state.snapshot.offset
    return membership is not None and offset != membership.assignment.config_offset


def _task_set(snapshot: ConfigSnapshot, connector: str) -> tuple[int, int, bool]:
    return (
        snapshot.task_count(connector),
        snapshot.task_config_generations.get(connector, 0),
        connector in snapshot.inconsistent,
    )
