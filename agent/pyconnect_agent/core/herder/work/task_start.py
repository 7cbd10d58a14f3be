"""Start tasks from the newest task set. Layer: core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyconnect_agent.core.herder.effects import StartTask
from pyconnect_agent.core.herder.state import RunningTask
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState


def start(turn: Turn, task_ids: Sequence[ConnectorTaskId]) -> None:
    """Start tasks of one connector; the caller knows that they may."""
    if not task_ids:
        return
    connector = task_ids[0].connector
    work, snapshot = turn.work_of(connector), turn.state.snapshot
    config = snapshot.connector_configs[connector]
    target = snapshot.target_state(connector) or TargetState.STARTED
    generation = snapshot.task_config_generations.get(connector, 0)
    tasks = dict(work.tasks)
    running = RunningTask(generation=generation, target_state=target)
    for task_id in task_ids:
        turn.emit(
            StartTask(
                task_id=task_id,
                connector_config=config,
                task_config=snapshot.task_configs[task_id],
                target_state=target,
                generation=generation,
                task_count=snapshot.task_count(connector),
            )
        )
        tasks[task_id.task] = running
    turn.put_work(connector, replace(work, tasks=tasks))
