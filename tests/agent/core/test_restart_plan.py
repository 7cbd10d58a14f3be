"""Restart plans (KIP-745)."""

from itertools import pairwise

from pyconnect_agent.core.herder.requests.restarts import (
    restart_plan,
    stronger,
)
from pyconnect_agent.core.ids import State
from pyconnect_agent.core.internal_topics.configlog import RestartRequested
from pyconnect_agent.core.reporting import ConnectorStateInfo, Status
from tests.support.cases import cases


def request(*, only_failed: bool, include_tasks: bool) -> RestartRequested:
    return RestartRequested(connector="c", only_failed=only_failed, include_tasks=include_tasks)


def status(state: State) -> Status:
    return Status(state=state, worker_id="w:1", generation=1, trace="why", version="1.0")


def info(connector: State, *tasks: State) -> ConnectorStateInfo:
    return ConnectorStateInfo(
        name="c",
        connector=status(connector),
        tasks=tuple((number, status(state)) for number, state in enumerate(tasks)),
        type="sink",
    )


@cases(
    "only_failed, include_tasks, connector, tasks",
    (False, False, True, []),
    (False, True, True, [0, 1]),
    (True, False, False, []),
    (True, True, False, [1]),
)
def test_the_flags_of_a_plan_select_connector_and_tasks(
    *, only_failed: bool, include_tasks: bool, connector: bool, tasks: list[int]
) -> None:
    """Of a running connector with one failed task."""
    current = info(State.RUNNING, State.RUNNING, State.FAILED)
    plan = restart_plan(request(only_failed=only_failed, include_tasks=include_tasks), current)
    assert plan.restart_connector is connector
    assert plan.restart_tasks == set(tasks)


def test_only_selected_instances_are_shown_restarting() -> None:
    """Worker ids, traces and versions are kept."""
    current = info(State.FAILED, State.RUNNING, State.FAILED)
    shown = restart_plan(request(only_failed=True, include_tasks=True), current).state_info
    assert shown.connector.state is State.RESTARTING
    assert shown.connector.trace == "why"
    assert [state.state for _, state in shown.tasks] == [State.RUNNING, State.RESTARTING]


def test_only_a_stronger_request_replaces_a_pending_one() -> None:
    """Ascending: failed connector, failed connector and tasks, connector, everything."""
    ascending = [
        request(only_failed=True, include_tasks=False),
        request(only_failed=True, include_tasks=True),
        request(only_failed=False, include_tasks=False),
        request(only_failed=False, include_tasks=True),
    ]
    for weaker, higher in pairwise(ascending):
        assert stronger(weaker, higher) is higher
        assert stronger(higher, weaker) is higher
        assert stronger(None, weaker) is weaker
