"""Failed work: automatic restarts, and late reports of children."""

from dataclasses import replace

from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.decide import decide
from pyconnect_agent.core.herder.effects import PutStatus
from pyconnect_agent.core.herder.instances import RestartDue
from pyconnect_agent.core.herder.requests import (
    PutConnectorConfig,
    RestartTask,
    SetTargetState,
    StopConnector,
)
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.core.restart_policy import NoRestart
from tests.simulation.herder_world import TASKS, World
from tests.support.cases import cases

TASK = ConnectorTaskId("a", 0)
SETTINGS = {
    TASKS: "2",
    "agent.restart.policy": "on-failure",
    "agent.restart.backoff.ms": "1000",
    "agent.restart.max.attempts": "2",
    "agent.restart.stable.ms": "60000",
}


def world(**settings: str) -> World:
    """Return a worker at rest with connector `a` and two tasks; `_` in names stands for a dot."""
    changed = {f"agent.restart.{name.replace('_', '.')}": text for name, text in settings.items()}
    found = World()
    found.settled(PutConnectorConfig(connector="a", config={**SETTINGS, **changed}))
    return found


def fail(found: World, no_restart: NoRestart | None = None) -> None:
    """Let task 0 fail, and let the herder handle the report."""
    report = Reported(state=State.FAILED, trace="ValueError: x", no_restart=no_restart)
    found.inbox.append(on.InstanceReported(item=TASK, report=report))
    found.deliver_all()


def trace(found: World) -> str:
    return found.task_statuses[TASK].trace or ""


def test_a_failed_task_is_restarted_after_its_wait_and_no_other_is() -> None:
    """A failed task restarts at the time in its trace, and the other task goes on."""
    found = world()
    before, other = found.now_ms, found.tasks[ConnectorTaskId("a", 1)]
    fail(found)
    assert found.task_statuses[TASK].state is State.FAILED
    assert trace(found).startswith("ValueError: x\nThis is restarted automatically at ")
    assert "attempt 1 of at most 2" in trace(found)
    found.settle()
    assert found.task_statuses[TASK].state is State.RUNNING
    assert before + 800 <= found.now_ms <= before + 1_200
    assert found.tasks[ConnectorTaskId("a", 1)] is other


def test_a_task_that_restarts_shows_why_it_had_failed() -> None:
    """RESTARTING has the trace of the failure, RUNNING has none."""
    found = world()
    fail(found)
    shown = [found.task_statuses[TASK]]
    while found.step():
        if found.task_statuses[TASK] != shown[-1]:
            shown.append(found.task_statuses[TASK])
    states = [(status.state, status.trace) for status in shown[-2:]]
    assert states == [(State.RESTARTING, "ValueError: x"), (State.RUNNING, None)]


def test_restarts_end_at_their_limit() -> None:
    """The failure after the last allowed restart is final until a user restarts the task."""
    found = world()
    for _ in range(2):
        fail(found)
        found.settle()
        assert found.task_statuses[TASK].state is State.RUNNING
    fail(found)
    found.settle()
    assert found.task_statuses[TASK].state is State.FAILED
    assert "2 restarts within" in trace(found)
    found.settled(RestartTask(task_id=TASK))
    assert found.task_statuses[TASK].state is State.RUNNING
    fail(found)
    assert "attempt 1 of at most 2" in trace(found)


@cases("reason", NoRestart.PERMANENT, NoRestart.KILLED)
def test_failures_that_a_restart_does_not_cure_stay_failed(reason: NoRestart) -> None:
    """A task with a permanent failure, or killed by a user, stays FAILED."""
    found = world()
    fail(found, reason)
    found.settle()
    assert found.task_statuses[TASK].state is State.FAILED


def test_without_the_policy_the_trace_stays_as_it_is() -> None:
    """`never`, and `auto` in a group that may have Java workers, change neither state nor trace."""
    found = world(policy="never")
    fail(found)
    found.settle()
    assert (found.task_statuses[TASK].state, trace(found)) == (State.FAILED, "ValueError: x")
    found = world(policy="auto")
    assert not found.state.agents_only
    fail(found)
    found.settle()
    assert (found.task_statuses[TASK].state, trace(found)) == (State.FAILED, "ValueError: x")


def test_a_restart_that_was_planned_before_the_policy_changed_is_dropped() -> None:
    """The policy is checked again when a planned restart is due."""
    found = world(policy="auto")
    membership = found.state.membership
    found.state = replace(found.state, membership=None)
    fail(found)
    assert "restarted automatically at" in trace(found)
    found.state = replace(found.state, membership=membership)
    found.settle()
    assert found.task_statuses[TASK].state is State.FAILED
    assert found.state.work["a"].restarts[0].ended is NoRestart.POLICY


def test_a_failed_connector_is_restarted_too() -> None:
    """The connector instance starts again, and its tasks are not touched."""
    found = world()
    tasks = dict(found.tasks)
    found.fail("a")
    found.deliver_all()
    assert found.connector_statuses["a"].state is State.FAILED
    found.settle()
    assert found.connector_statuses["a"].state is State.RUNNING
    assert found.tasks == tasks


def test_a_task_that_runs_again_is_not_restarted() -> None:
    """A task that was restarted meanwhile is left alone by a late timer."""
    found = world()
    fail(found)
    found.ask(RestartTask(task_id=TASK))
    while not found.tasks.get(TASK) or found.task_statuses[TASK].state is not State.RUNNING:
        assert found.step()
    started = found.tasks[TASK]
    found.settle()
    assert found.tasks[TASK] is started
    found = world()
    fail(found)
    found.settle()
    started = found.tasks[TASK]
    found.after(on.TimerDue(timer=RestartDue(connector="a", task=0)))
    assert found.tasks[TASK] is started


def test_a_change_of_the_connector_takes_the_place_of_a_planned_restart() -> None:
    """A new config or target state takes effect instead of the planned restart."""
    found = world()
    fail(found)
    found.settled(PutConnectorConfig(connector="a", config={**SETTINGS, "other": "1"}))
    assert found.task_statuses[TASK].state is State.RUNNING
    assert not found.state.work["a"].restarts
    found = world()
    fail(found)
    found.settled(StopConnector(connector="a"))
    assert found.tasks == {}
    assert found.connector_statuses["a"].state is State.STOPPED
    found = world()
    fail(found)
    found.settled(SetTargetState(connector="a", target_state=TargetState.PAUSED))
    assert found.tasks[TASK].target_state is TargetState.PAUSED
    assert found.task_statuses[TASK].state is State.PAUSED


@cases("member", True, False)
@cases("state", State.UNASSIGNED, State.FAILED, State.RUNNING)
def test_a_final_report_without_membership_is_late(member: bool, state: State) -> None:
    """Another worker may have the work, so the status topic has to be read before the write."""
    world = World()
    world.settled(PutConnectorConfig(connector="a", config={TASKS: "1"}))
    found = world.state
    if not member:
        found, _ = decide(found, on.MembershipLost(), world.now_ms)
    late = []
    for report in (
        on.InstanceReported(item=ConnectorTaskId("a", 0), report=Reported(state=state)),
        on.InstanceReported(item="a", report=Reported(state=state)),
    ):
        _, effects = decide(found, report, world.now_ms)
        late += [e.late for e in effects if isinstance(e, PutStatus)]
    assert late == [not member and state is not State.RUNNING] * 2
