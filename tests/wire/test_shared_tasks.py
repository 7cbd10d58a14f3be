"""Tasks that share a process, each in a thread, without Kafka."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from pyconnect_agent.core.config.agent_keys import OF_CONNECTOR, OF_LOCATION, AgentKeys
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.log_lines import LogQuestion
from pyconnect_agent.core.restart_policy import RestartMode, RestartPolicy
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.plugins.bad_plugins import bad_source

pytestmark = pytest.mark.wire

FIRST, SECOND, THIRD = (ConnectorTaskId("c", number) for number in range(3))
NO_RESTARTS = RestartPolicy(mode=RestartMode.NEVER)


@asynccontextmanager
async def sharing(
    isolation: str = OF_LOCATION, *, graceful_ms: int = 60_000
) -> AsyncIterator[ChildrenWorld]:
    keys = AgentKeys(restart=NO_RESTARTS, sleep=False, isolation=isolation)
    async with children_world(agent_keys=keys, graceful_ms=graceful_ms) as world:
        yield world


async def start(
    world: ChildrenWorld, *tasks: ConnectorTaskId, state: State = State.RUNNING, **settings: str
) -> None:
    for task in tasks:
        config = {**bad_source(**settings), "name": task.connector}
        world.children.tasks.start(task, config, config, TargetState.STARTED)
    for task in tasks:
        await world.task_is(task, state)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_tasks_share_a_process_that_ends_after_the_last_of_them() -> None:
    """Tasks share a process until the last one ends; a failed one does not affect the others."""
    async with sharing() as w:
        await start(w, FIRST, SECOND)
        pid = w.pid(FIRST)
        assert w.pid(SECOND) == pid
        await start(w, THIRD, state=State.FAILED, poll="sys-exit")
        assert "SystemExit: 9" in w.listener.task_trace(THIRD)
        await w.children.tasks.stop([FIRST])
        assert w.listener.task_states(FIRST)[-1] is State.UNASSIGNED
        await start(w, FIRST)
        assert w.pid(FIRST) == pid
        w.children.tasks.set_target_state(SECOND, TargetState.PAUSED)
        await w.task_is(SECOND, State.PAUSED)
        assert w.listener.task_states(FIRST)[-1] is State.RUNNING
        await w.children.tasks.stop([FIRST, SECOND])
        await eventually_async(lambda: gone(pid))
        await start(w, FIRST)
        assert w.pid(FIRST) != pid


async def test_each_connector_has_a_process_for_its_tasks() -> None:
    """With `connector` the tasks of a connector share a process; tasks with limits cannot share."""
    other = ConnectorTaskId("d", 0)
    async with sharing(OF_CONNECTOR) as w:
        await start(w, FIRST, SECOND, other)
        assert w.pid(FIRST) == w.pid(SECOND) != w.pid(other)
        limited = {"agent_limit_memory_bytes": "1000000000", "agent_isolation": "location"}
        await start(w, ConnectorTaskId("e", 0), state=State.FAILED, **limited)
        assert "Invalid value location for configuration agent.isolation: the limits" in (
            w.listener.task_trace(ConnectorTaskId("e", 0))
        )


async def test_a_task_that_hangs_ends_the_others_with_it() -> None:
    """A task that hangs ends its process, and the other tasks' traces name it."""
    async with sharing(graceful_ms=300) as w:
        await start(w, FIRST)
        pid = w.pid(FIRST)
        await start(w, SECOND, task_stop="hang")
        assert w.pid(SECOND) == pid
        await w.children.tasks.stop([SECOND])
        await w.task_is(FIRST, State.FAILED)
        assert (
            "task process was ended with task c-1, which shared its process (agent.isolation)"
            " (task c-0)."
        ) in w.listener.task_trace(FIRST)
        await eventually_async(lambda: FIRST not in w.children.tasks.running())
        await start(w, FIRST)
        assert w.pid(FIRST) != pid


@cases("poll, text", ("exit", "exited with code 7"), ("abort", "was killed by signal 6 (SIGABRT)"))
async def test_the_end_of_the_process_is_the_end_of_all(poll: str, text: str) -> None:
    """Each task's trace says how the process ended."""
    async with sharing() as w:
        await start(w, FIRST)
        await start(w, SECOND, state=State.FAILED, poll=poll)
        await w.task_is(FIRST, State.FAILED)
        for task in (FIRST, SECOND):
            assert f"task process {text} (task {task})" in w.listener.task_trace(task)


async def test_a_killed_process_fails_its_tasks_and_a_killed_task_its_process() -> None:
    """A killed process fails all its tasks, and `tasks kill` fails them with their process."""
    async with sharing() as w:
        await start(w, FIRST, SECOND)
        os.kill(w.pid(FIRST), signal.SIGKILL)
        for task in (FIRST, SECOND):
            await w.task_is(task, State.FAILED)
            assert "was killed by signal 9" in w.listener.task_trace(task)
        await eventually_async(lambda: not w.children.tasks.running())
        await start(w, FIRST, SECOND)
        w.children.kill_task(FIRST, force=True, reason="The operator has killed it.")
        for task in (FIRST, SECOND):
            await w.task_is(task, State.FAILED)
        assert "The operator has killed it." in w.listener.task_trace(FIRST)
        assert "was ended with task c-0" in w.listener.task_trace(SECOND)


async def test_each_line_is_in_the_log_of_its_task() -> None:
    """Each line is in the log of its task, also a line of a thread that the plugin started."""
    async with sharing() as w:
        await start(w, FIRST, SECOND, task_start="log-in-thread")

        def lines(task: ConnectorTaskId) -> list[str]:
            question = LogQuestion(connector=task.connector, task=task.task)
            return [line["text"] for line in w.children.logs(question)["lines"]]

        for task in (FIRST, SECOND):
            await eventually_async(lambda task=task: "from a thread" in str(lines(task)))
            assert sum("from a thread" in line for line in lines(task)) == 1
