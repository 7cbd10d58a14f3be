"""The history of failures on this worker, and the restarts of failed work.

A history belongs to an assignment: it is forgotten when an operator, a new config or another owner
starts the work. An automatic restart takes the way of a restart by request: the work is stopped,
RESTARTING is written, and it starts from the newest configs, an exactly-once source task only after
older producers are fenced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyconnect_agent.core.herder.state import HerderState
from pyconnect_agent.core.herder.steps import Timer
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import instances
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.core.restart_policy import (
    NO_RESTARTS,
    NoRestart,
    RestartMode,
    RestartPolicy,
    Restarts,
    after_failure,
    after_restart,
    after_start,
    jitter_of,
    remark,
)


def policy_of(state: HerderState, connector: str) -> RestartPolicy:
    """Return the policy in force for a connector and its tasks."""
    config = state.snapshot.connector_config(connector)
    keys = state.settings.agent_keys
    policy = keys.restart if config is None else keys.of_connector(config).restart
    return policy.within(agents_only=state.agents_only)


def failed(turn: Turn, connector: str, task: int | None, report: Reported) -> Reported:
    """Plan the next restart; returns the report with a remark on it. `task` None: the connector."""
    share, policy = turn.work_of(connector), policy_of(turn.state, connector)
    before = share.restarts.get(task, NO_RESTARTS)
    item = connector if task is None else str(ConnectorTaskId(connector, task))
    jitter = jitter_of(turn.state.settings.worker_id, item, before.total)
    history = after_failure(
        before, policy, turn.now_ms, jitter=jitter, no_restart=report.no_restart
    )
    put(turn, connector, task, replace(history, trace=report.trace))
    turn.failed.append((connector, task))
    added = remark(history, policy)
    if not added:
        return report
    trace = f"{report.trace.rstrip()}\n{added}" if report.trace else added
    return replace(report, trace=trace)


def started(turn: Turn, connector: str, task: int | None) -> None:
    """Note that it runs, or is paused as it should be."""
    history = turn.work_of(connector).restarts.get(task)
    if history is not None:
        put(turn, connector, task, after_start(history, turn.now_ms))


def put(turn: Turn, connector: str, task: int | None, history: Restarts) -> None:
    share = turn.work_of(connector)
    turn.put_work(connector, replace(share, restarts={**share.restarts, task: history}))


def forget(turn: Turn, connector: str, tasks: Iterable[int | None]) -> None:
    share = turn.work_of(connector)
    gone = share.restarts.keys() & set(tasks)
    if gone:
        rest = {task: found for task, found in share.restarts.items() if task not in gone}
        turn.put_work(connector, replace(share, restarts=rest))


REBALANCING_MS = 1_000
"""Until a restart is looked at again that fell due while the group rebalances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartDue(Timer):
    """Restart an instance if it still is FAILED and ours; `task` None: the connector."""

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
        if policy_of(turn.state, connector).mode is RestartMode.NEVER:
            given_up = replace(history, next_ms=None, ended=NoRestart.POLICY)
            put(turn, connector, task, given_up)
            return
        if task is None:
            instances.stop_connector(turn, connector)
            share = replace(turn.work_of(connector), restarting_connector=True)
        else:
            instances.stop_tasks(turn, connector, (task,))
            share = turn.work_of(connector)
            share = replace(share, restarting_tasks=share.restarting_tasks | {task})
        turn.put_work(connector, share)
        put(turn, connector, task, after_restart(history, turn.now_ms))
        instances.publish_restarting(turn, connector)
        instances.reconcile(turn, connector)


def plan(turn: Turn) -> None:
    """Wake up for the restarts of work that has failed in this turn."""
    for connector, task in turn.failed:
        history = turn.work_of(connector).restarts.get(task)
        if history is not None and history.next_ms is not None:
            turn.wake_at(history.next_ms, RestartDue(connector=connector, task=task))
