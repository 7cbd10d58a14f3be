"""The history of failures on this worker, and when failed work is restarted. Layer: core.

`automatic_restarts` restarts; this module only counts, so that every place where work becomes
FAILED can use it. A history belongs to an assignment: it is forgotten when an operator, a new
config or another owner starts the work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyconnect_agent.core.herder.state import HerderState
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.core.restart_policy import (
    NO_RESTARTS,
    RestartPolicy,
    Restarts,
    after_failure,
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
    put(turn, connector, task, history)
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
