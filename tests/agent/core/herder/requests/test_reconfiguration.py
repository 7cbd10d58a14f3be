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
    """A connector that asks for new ones and makes the same ones restarts nothing."""
    before, tasks = list(world.log), dict(world.tasks)
    world.after(on.ReconfigurationRequested(connector="c"))
    assert world.log == before
    assert world.tasks == tasks


def test_a_smaller_task_set_stops_the_surplus_tasks(world: World) -> None:
    """And its statuses are cleaned."""
    world.settled(ask.PutConnectorConfig(connector="c", config={**CONFIG, TASKS: "1"}))
    assert list(world.tasks) == [ConnectorTaskId("c", 0)]
    assert list(world.task_statuses) == [ConnectorTaskId("c", 0)]


def test_all_tasks_stop_before_the_group_is_joined_again(world: World) -> None:
    """No work of the old generation runs while a rebalance is under way."""
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
    """250 ms doubling to 60 s, without an end."""
    expected = [250, 500, 1000, 60_000, 60_000]
    assert [backoff_ms(attempt) for attempt in (1, 2, 3, 9, 100)] == expected


def test_a_failed_generation_is_tried_again_until_it_succeeds() -> None:
    """As long as the connector runs."""
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
    """Too many tasks fail the connector: only a restart helps."""
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
    """Resuming does (KIP-980's initial state, KIP-52)."""
    world = World()
    paused = TargetState.PAUSED
    world.settled(ask.PutConnectorConfig(connector="c", config=CONFIG, initial_state=paused))
    assert world.tasks == {}
    world.settled(ask.SetTargetState(connector="c", target_state=TargetState.STARTED))
    assert len(world.tasks) == 2


def test_new_values_of_config_providers_restart_tasks_of_the_same_configs(world: World) -> None:
    """The stored config stays: only the child that resolved the reference reports the change."""
    before = len(world.log)
    world.values_changed = True
    world.after(on.ReconfigurationRequested(connector="c"))
    assert len(world.log) > before
    after = len(world.log)
    world.values_changed = False
    world.after(on.ReconfigurationRequested(connector="c"))
    assert len(world.log) == after
