"""Connectors without work, whose processes end until the next call; no Kafka."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from pyconnect_agent.core.config.agent_keys import AgentKeys
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.ids import State, TargetState
from pyconnect_agent.tasks.connector.host import QUIET_S
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.plugins.bad_plugins import idle_source

pytestmark = pytest.mark.wire

RUNNING, PAUSED, STOPPED = State.RUNNING, State.PAUSED, State.STOPPED


async def asleep(world: ChildrenWorld) -> set[str]:
    return {child.connector for child in await world.children.child_details() if child.asleep}


async def sleep(world: ChildrenWorld, names: Iterable[str]) -> None:
    """Wait until exactly these connectors are asleep and their processes have ended."""
    wanted = set(names)

    async def done() -> bool:
        pids = {child.pid for child in await world.children.child_details()} - {None}
        return await asleep(world) == wanted and len(world.children.connectors.children()) == len(
            pids
        )

    await eventually_async(done, 60)


def calls(config: dict[str, str]) -> list[str]:
    return Path(config["journal"]).read_text().split()


async def run(world: ChildrenWorld, *configs: dict[str, str]) -> None:
    """Start connectors and have their task configs made."""
    for config in configs:
        world.start_connector(config)
    for config in configs:
        await world.connector_is(config["name"], RUNNING)
        await world.generate(config)


async def test_an_idle_connector_sleeps_until_its_next_call(tmp_path: Path) -> None:
    """Each start has one stop before the next start, and the state stays RUNNING."""
    config = idle_source("c", tmp_path)
    async with children_world(agent_keys=AgentKeys()) as w:
        await run(w, config)
        await sleep(w, {"c"})
        assert calls(config) == ["start", "configs", "stop"]
        assert len((await w.generate(config)).configs) == 1
        await sleep(w, {"c"})
        assert calls(config) == ["start", "configs", "stop"] * 2
        assert w.children.connectors.running() == {"c"}
        await w.children.connectors.stop(["c"])
        assert w.listener.connector_states("c") == [RUNNING, State.UNASSIGNED]
        assert calls(config) == ["start", "configs", "stop"] * 2


async def test_a_sleeping_connector_is_paused_resumed_and_stopped(tmp_path: Path) -> None:
    """Pause and stop need no process; each resume is a start."""
    config = idle_source("c", tmp_path)
    async with children_world(agent_keys=AgentKeys()) as w:
        await run(w, config)
        await sleep(w, {"c"})
        w.children.connectors.set_target_state("c", TargetState.PAUSED)
        w.children.connectors.set_target_state("c", TargetState.PAUSED)
        await sleep(w, {"c"})
        with pytest.raises(AgentError, match="not found in this worker"):
            await w.generate(config)
        w.children.connectors.set_target_state("c", TargetState.STARTED)
        await w.connector_is("c", RUNNING)
        w.children.connectors.set_target_state("c", TargetState.PAUSED)
        # Paused with its process, which then ends too.
        await w.connector_is("c", PAUSED)
        await sleep(w, {"c"})
        w.children.connectors.set_target_state("c", TargetState.STOPPED)
        assert await asleep(w) == set()
        w.children.connectors.set_target_state("c", TargetState.STARTED)
        await w.connector_is("c", RUNNING)
        expected = [RUNNING, PAUSED, RUNNING, PAUSED, STOPPED, RUNNING]
        assert w.listener.connector_states("c") == expected
        assert calls(config) == ["start", "configs", "stop", "start", "stop", "start"]


async def test_a_connector_with_work_or_without_leave_keeps_its_process(tmp_path: Path) -> None:
    """Threads, processes, values that expire, no task configs yet, the setting."""
    awake = (
        idle_source("thread", tmp_path, own="thread"),
        idle_source("process", tmp_path, own="process"),
        idle_source("setting", tmp_path, agent_connector_sleep="false"),
        idle_source("expires", tmp_path, value="${ttl:path:x}"),
    )
    properties = {
        "config.providers": "ttl",
        "config.providers.ttl.class": "tests.support.plugins.bad_plugins.ExpiringProvider",
    }
    async with children_world(properties, agent_keys=AgentKeys()) as w:
        w.start_connector(idle_source("unasked", tmp_path))
        await run(w, *awake)
        # The last one that may sleep has been looked at as often as the others.
        await run(w, idle_source("idle", tmp_path))
        await sleep(w, {"idle"})
        (tmp_path / "thread-ask").touch()
        await eventually_async(lambda: w.listener.reconfigurations == ["thread"], QUIET_S)
        assert "stop" not in [call for config in awake for call in calls(config)]


async def test_a_connector_that_does_not_wake_up_is_failed(tmp_path: Path) -> None:
    """The request fails, and the trace has the reason."""
    config = idle_source("c", tmp_path, refuse=str(tmp_path / "refuse"), stop="raise")
    async with children_world(agent_keys=AgentKeys()) as w:
        await run(w, config)
        # It sleeps although it failed to stop, as one that is to be STOPPED.
        await sleep(w, {"c"})
        (tmp_path / "refuse").touch()
        with pytest.raises(AgentError, match="The connector is not running"):
            await w.generate(config)
        await w.connector_is("c", State.FAILED)
        assert "refused this time" in w.listener.connector_trace("c")
        await w.children.connectors.stop(["c"])
        assert w.listener.connector_states("c")[-1] is State.UNASSIGNED
