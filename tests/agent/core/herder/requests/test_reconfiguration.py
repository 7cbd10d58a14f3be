"""New task configs: when they are written, and how failures are retried."""

from itertools import pairwise

import pytest

from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.requests.reconfiguration import backoff_ms
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics import config_records
from tests.simulation.herder_world import TASKS, Answer, World

CONFIG = {"name": "c", TASKS: "2", "text": "x"}


@pytest.fixture
def world() -> World:
    world = World()
    world.settled(ask.PutConnectorConfig(connector="c", config=CONFIG))
    return world


def test_unchanged_task_configs_are_not_written(world: World) -> None:
    """Task configs equal to the stored ones are not written, and no task restarts."""
    before, tasks = list(world.log), dict(world.tasks)
    world.after(on.ReconfigurationRequested(connector="c"))
    assert world.log == before
    assert world.tasks == tasks


def test_a_smaller_task_set_stops_the_surplus_tasks(world: World) -> None:
    """Surplus tasks stop, and their statuses are removed."""
    world.settled(ask.PutConnectorConfig(connector="c", config={**CONFIG, TASKS: "1"}))
    assert list(world.tasks) == [ConnectorTaskId("c", 0)]
    assert list(world.task_statuses) == [ConnectorTaskId("c", 0)]


def test_all_tasks_stop_before_the_group_is_joined_again(world: World) -> None:
    """No task of an older set runs during a rebalance."""
    world.write_elsewhere(
        *(config_records.task_config(ConnectorTaskId("c", n), {"n": str(n)}) for n in range(3)),
        config_records.tasks_commit("c", 3),
    )
    world.read_log()
    world.deliver_all()
    stops = [answer for answer in world.answerable() if answer.queue.startswith("stop")]
    assert len(stops) == 1
    assert not any(answer.queue == "group" for answer in world.answers)
    world.answer(stops[0])
    world.deliver_all()
    assert world.tasks == {}
    assert any(answer.queue == "group" for answer in world.answers)


def test_failures_are_retried_with_growing_pauses() -> None:
    """The delay between attempts doubles from 250 ms to 60 s, without a limit of attempts."""
    expected = [250, 500, 1000, 60_000, 60_000]
    assert [backoff_ms(attempt) for attempt in (1, 2, 3, 9, 100)] == expected


def test_a_failed_generation_is_tried_again_until_it_succeeds() -> None:
    """A failed generation is repeated as long as the connector runs."""
    world = World()
    world.ask(ask.PutConnectorConfig(connector="c", config=CONFIG))
    times: list[int] = []

    def fails(answer: Answer) -> bool:
        is_generation = answer.queue.startswith("generate")
        times.extend([world.now_ms] * is_generation)
        return is_generation

    while len(times) < 3:
        world.go_on(until=lambda: len(times) == 3, fails=fails)
        world.pass_time()
    world.settle()
    assert [later - earlier for earlier, later in pairwise(times)] == [250, 500]
    assert len(world.tasks) == 2


def test_a_failed_connector_is_not_asked_again() -> None:
    """A FAILED connector is not asked for task configs again: only a restart helps."""
    world = World()
    world.ask(ask.PutConnectorConfig(connector="c", config=CONFIG))
    world.go_on(but={"generate c"})
    world.fail("c")
    [due] = [answer for answer in world.answers if answer.queue == "generate c"]
    world.answer(due, well=False)
    world.settle()
    assert world.state.reconfigurations == {}
    assert world.tasks == {}
    assert world.connector_statuses["c"].state is State.FAILED


def test_a_paused_connector_makes_no_tasks() -> None:
    """A connector created as PAUSED gets its tasks when it is resumed (KIP-980, KIP-52)."""
    world = World()
    paused = TargetState.PAUSED
    world.settled(ask.PutConnectorConfig(connector="c", config=CONFIG, initial_state=paused))
    assert world.tasks == {}
    world.settled(ask.SetTargetState(connector="c", target_state=TargetState.STARTED))
    assert len(world.tasks) == 2


def test_new_values_of_config_providers_restart_tasks_of_the_same_configs(world: World) -> None:
    """Equal task configs are written again if the child reports new values of config providers."""
    before = len(world.log)
    world.values_changed = True
    world.after(on.ReconfigurationRequested(connector="c"))
    assert len(world.log) > before
    after = len(world.log)
    world.values_changed = False
    world.after(on.ReconfigurationRequested(connector="c"))
    assert len(world.log) == after
