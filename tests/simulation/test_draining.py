"""A worker that is drained and undrained at any moment, under schedules that hypothesis picks."""

import pytest
from hypothesis.stateful import invariant, precondition, rule

from pyconnect_agent.core.errors import ServiceUnavailableError
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.events import Drain, Undrain
from pyconnect_agent.core.herder.state import MembershipPhase, owned_work
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.simulation.herder_world import TASKS, World
from tests.simulation.test_herder_schedules import COMMON, HerderMachine

pytestmark = pytest.mark.simulation


class DrainedMachine(HerderMachine):
    """The herder keeps all rules, whenever a drain begins or ends."""

    @rule()
    def drain(self) -> None:
        self.world.inbox.append(Drain())

    @rule()
    def undrain(self) -> None:
        self.world.inbox.append(Undrain())

    @precondition(lambda self: not self.world.inbox)
    @rule()
    def settle_drained(self) -> None:
        self.drain()
        self.world.settle()
        assert self.world.state.phase is MembershipPhase.DRAINED

    @invariant()
    def nothing_runs_on_a_drained_worker(self) -> None:
        world = self.world
        if world.state.phase is MembershipPhase.DRAINED:
            assert world.connectors == {}
            assert world.tasks == {}
            assert owned_work(world.state.work).empty
            assert world.state.membership is None

    def teardown(self) -> None:
        self.undrain()
        super().teardown()


class StandaloneDrainedMachine(DrainedMachine):
    standalone = True


TestDraining = DrainedMachine.TestCase
TestDraining.settings = COMMON
TestStandaloneDraining = StandaloneDrainedMachine.TestCase
TestStandaloneDraining.settings = COMMON


class WatchedWorld(World):
    """A world that keeps the kinds of all effects, in order."""

    def __init__(self) -> None:
        self.emitted: list[type] = []
        super().__init__()

    def _perform(self, effect: do.Effect) -> None:
        self.emitted.append(type(effect))
        super()._perform(effect)


@pytest.fixture
def world() -> WatchedWorld:
    """Return a worker that runs one connector with two tasks."""
    started = WatchedWorld()
    started.ask(ask.PutConnectorConfig(connector="c", config={TASKS: "2"}))
    started.settle()
    assert set(started.tasks) == {ConnectorTaskId("c", 0), ConnectorTaskId("c", 1)}
    return started


def test_a_drained_worker_has_stopped_flushed_and_left(world: WatchedWorld) -> None:
    """A drain stops all work, flushes the statuses (UNASSIGNED), then leaves the group."""
    world.emitted.clear()
    world.after(Drain())
    wanted = [do.StopWork, do.FlushStatuses, do.LeaveGroup]
    assert [kind for kind in world.emitted if kind in wanted] == wanted
    assert {status.state for status in world.task_statuses.values()} == {State.UNASSIGNED}
    assert world.state.phase is MembershipPhase.DRAINED


def test_an_undrained_worker_takes_its_work_back(world: World) -> None:
    """An undrained worker joins again and runs the configured work."""
    world.after(Drain())
    world.after(Undrain())
    world.check_rest()
    assert len(world.tasks) == 2


def test_a_drained_worker_answers_reads_and_pauses(world: World) -> None:
    """Reads and pauses need no group, so a drained worker serves them."""
    world.after(Drain())
    numbers = [
        world.ask(request)
        for request in (
            ask.Probe(),
            ask.GetConnectorInfo(connector="c"),
            ask.GetTaskConfigs(connector="c"),
            ask.SetTargetState(connector="c", target_state=TargetState.PAUSED),
        )
    ]
    world.settle()
    assert [world.replies[number].error for number in numbers] == [None] * 4


def test_a_drained_worker_refuses_requests_for_a_leader_or_owner(world: World) -> None:
    """New and queued requests get an error at once, which names the drain."""
    world.inbox.append(Drain())
    queued = world.ask(ask.DeleteConnector(connector="c"))
    world.settle()
    later = world.ask(ask.RestartTask(task_id=ConnectorTaskId("c", 0)))
    world.settle()
    for number in (queued, later):
        error = world.replies[number].error
        assert isinstance(error, ServiceUnavailableError)
        assert "drained" in error.message


def test_a_worker_drained_before_its_start_never_joins() -> None:
    """A worker drained before its start gets ready without a join."""
    world = World()
    world.inbox.appendleft(Drain())
    world.settle()
    assert world.state.phase is MembershipPhase.DRAINED
    assert world.state.ready
    assert world.generation == 0
