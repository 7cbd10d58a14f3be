"""Restarts by plan (KIP-745): the selected instances, and the answer."""

from itertools import pairwise

from pyconnect_agent.core.errors import NotFoundError
from pyconnect_agent.core.herder.requests import PutConnectorConfig, RestartConnectorAndTasks
from pyconnect_agent.core.herder.requests.restarts import restart_plan, stronger
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.configlog import RestartRequested
from pyconnect_agent.core.reporting import ConnectorStateInfo, Status
from tests.simulation.herder_world import TASKS, World
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
    """The flags select from a running connector with one failed task."""
    current = info(State.RUNNING, State.RUNNING, State.FAILED)
    plan = restart_plan(request(only_failed=only_failed, include_tasks=include_tasks), current)
    assert plan.restart_connector is connector
    assert plan.restart_tasks == set(tasks)


def test_only_selected_instances_are_shown_restarting() -> None:
    """Selected instances keep worker id, trace and version; others keep their state."""
    current = info(State.FAILED, State.RUNNING, State.FAILED)
    shown = restart_plan(request(only_failed=True, include_tasks=True), current).state_info
    assert shown.connector.state is State.RESTARTING
    assert shown.connector.trace == "why"
    assert [state.state for _, state in shown.tasks] == [State.RUNNING, State.RESTARTING]


def test_only_a_stronger_request_replaces_a_pending_one() -> None:
    """From weak to strong: failed connector, also failed tasks, connector, everything."""
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


def world_with_a_failed_task() -> World:
    """Return a worker with two tasks, of which number 1 has failed."""
    world = World()
    world.settled(PutConnectorConfig(connector="a", config={TASKS: "2"}))
    world.fail(ConnectorTaskId("a", 1))
    world.settle()
    return world


def restart(world: World, *, only_failed: bool, include_tasks: bool) -> object:
    """Restart, and let the restarted work run again before the herder gets the write's result."""
    flags = {"only_failed": only_failed, "include_tasks": include_tasks}
    number = world.ask(RestartConnectorAndTasks(connector="a", **flags))
    world.deliver_all()
    (write,) = world.answers
    world.answers.remove(write)
    world.write_elsewhere(config_records.restart_request("a", **flags))
    world.settle()
    write.finish(True)
    world.settle()
    reply = world.replies[number]
    return reply.error or reply.result


def test_the_answer_keeps_traces_and_versions_of_what_is_restarted() -> None:
    """The answer has the trace of a failed task, even if the task has been restarted by then."""
    info = restart(world_with_a_failed_task(), only_failed=True, include_tasks=True)
    assert isinstance(info, ConnectorStateInfo)
    assert info.connector.state is State.RUNNING
    states = {number: (status.state, status.trace) for number, status in info.tasks}
    expected = {0: (State.RUNNING, None), 1: (State.RESTARTING, "ConnectException: on purpose")}
    assert states == expected
    assert {status.version for _, status in info.tasks} == {"1"}


def test_a_restart_of_everything_selects_all() -> None:
    """The answer shows connector and tasks as RESTARTING, and all run again afterwards."""
    world = world_with_a_failed_task()
    info = restart(world, only_failed=False, include_tasks=True)
    assert isinstance(info, ConnectorStateInfo)
    shown = {info.connector.state, *(status.state for _, status in info.tasks)}
    assert shown == {State.RESTARTING}
    assert {status.state for status in world.task_statuses.values()} == {State.RUNNING}


def test_the_request_is_written_although_no_status_is_known() -> None:
    """As at Apache's leader, the record is written before a missing status is reported."""
    world = world_with_a_failed_task()
    world.connector_statuses.clear()
    end = len(world.log)
    error = restart(world, only_failed=False, include_tasks=True)
    assert isinstance(error, NotFoundError)
    assert error.message == "Status for connector a not found"
    assert {record.key for record in world.log[end + 1 :]} == {b"restart-connector-a"}
