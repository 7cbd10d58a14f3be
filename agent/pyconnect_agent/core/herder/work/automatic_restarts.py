"""Restart FAILED work when its time has come, if it still is FAILED and ours. Layer: core.

The work takes the way of a restart by request: it is stopped, RESTARTING is written, and it starts
from the newest configs, an exactly-once source task only after older producers are fenced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyconnect_agent.core.herder.steps import Timer
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import failures, instances
from pyconnect_agent.core.restart_policy import NoRestart, RestartMode, after_restart

REBALANCING_MS = 1_000
"""Until a restart is looked at again that fell due while the group rebalances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartDue(Timer):
    """Restart a failed instance; `task` None: the connector."""

    connector: str
    task: int | None

    def due(self, turn: Turn) -> None:
        connector, task = self.connector, self.task
        history = turn.work_of(connector).restarts.get(task)
        if history is None or history.next_ms is None or history.next_ms > turn.now_ms:
            return
        if not turn.state.may_start_work:
            turn.wake_at(turn.now_ms + REBALANCING_MS, self)
            return
        if failures.policy_of(turn.state, connector).mode is RestartMode.NEVER:
            given_up = replace(history, next_ms=None, ended=NoRestart.POLICY)
            failures.put(turn, connector, task, given_up)
            return
        if task is None:
            instances.stop_connector(turn, connector)
            share = replace(turn.work_of(connector), restarting_connector=True)
        else:
            instances.stop_tasks(turn, connector, (task,))
            share = turn.work_of(connector)
            share = replace(share, restarting_tasks=share.restarting_tasks | {task})
        turn.put_work(connector, share)
        failures.put(turn, connector, task, after_restart(history, turn.now_ms))
        instances.publish_restarting(turn, connector)
        instances.reconcile(turn, connector)


def plan(turn: Turn) -> None:
    """Wake up for the restarts of work that has failed in this turn."""
    for connector, task in turn.failed:
        history = turn.work_of(connector).restarts.get(task)
        if history is not None and history.next_ms is not None:
            turn.wake_at(history.next_ms, RestartDue(connector=connector, task=task))
