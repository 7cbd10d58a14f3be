"""Limits of real task processes."""

import os
import signal

import pytest

from pyconnect_agent.children.launch import DEFAULT_PRELOAD, Launcher
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.plugins.bad_plugins import bad_source

pytestmark = pytest.mark.wire


async def test_a_task_over_its_memory_is_ended_and_nothing_else_is() -> None:
    """FAILED with what it used; a restart may help. Its neighbour and its connector go on."""
    async with children_world() as w:
        task_id = await w.run_task(bad_source())
        await w.task_is(task_id, State.RUNNING)
        neighbour = ConnectorTaskId("c", 1)
        limited = bad_source(agent_limit_memory_bytes="1")
        w.children.tasks.start(neighbour, limited, limited, TargetState.STARTED)
        await w.task_is(neighbour, State.FAILED)
        trace = w.listener.task_trace(neighbour)
        assert "over its memory limit: it used" in trace
        assert "agent.limit.memory.bytes is 1." in trace
        assert w.listener.tasks[neighbour][-1].no_restart is None
        assert w.listener.task_states(task_id)[-1] is State.RUNNING
        assert w.listener.connector_states("c") == [State.RUNNING]
        assert w.children.tasks.running() == {task_id}


async def test_use_and_limits_are_described() -> None:
    """Also of a task that has none: an operator sets limits by what he sees."""
    async with children_world() as w:
        config = bad_source(agent_limit_memory_bytes=str(1 << 40), agent_limit_cpu_percent="90")
        task_id = await w.run_task(config)
        await w.task_is(task_id, State.RUNNING)

        async def known() -> bool:
            details = (await w.children.child_details())[1]
            assert (details.limits.memory_bytes, details.limits.cpu_percent) == (1 << 40, 90)
            return details.rss_bytes is not None and details.cpu_percent is not None

        await eventually_async(known)


async def test_a_worker_without_processes_says_so_and_recovers() -> None:
    """Connector and task are FAILED with the limits to look at; nothing is tried in a loop."""
    launcher = Launcher(preload=(*DEFAULT_PRELOAD, "tests.support.commands.few_processes"))
    async with children_world(launcher=launcher) as w:
        config = bad_source()
        w.start_connector(config)
        await w.connector_is("c", State.FAILED)
        trace = w.listener.connectors["c"][-1].trace
        assert "could not be started" in trace
        assert "RLIMIT_NPROC" in trace
        assert "pids.max" in trace
        assert w.listener.connector_states("c") == [State.FAILED]
        assert launcher._server is not None
        os.kill(launcher._server.pid, signal.SIGUSR1)
        task_id = await w.run_task({**config, "name": "later"})
        await w.task_is(task_id, State.RUNNING)
    launcher.close()
