"""The details of real child processes, actions on them, and their limits."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence

import pytest

from pyconnect_agent.children.launch import DEFAULT_PRELOAD, Launcher
from pyconnect_agent.children.ports import ChildDetails
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.restart_policy import NoRestart
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.plugins.bad_plugins import bad_source

pytestmark = pytest.mark.wire

REASON = "killed on purpose"
LEASE_MS = 2_000


async def test_every_child_is_described() -> None:
    """The details of a child have pid, state and memory, and a task's the time of its last poll."""
    async with children_world() as w:
        task_id = await w.run_task(bad_source())
        await w.task_is(task_id, State.RUNNING)

        async def polled() -> Sequence[ChildDetails] | None:
            details = await w.children.child_details()
            return details if details[1].last_activity_ms is not None else None

        found = await eventually_async(polled)
        assert found is not None
        connector, task = found
        assert (connector.connector, connector.task) == ("c", None)
        assert (task.connector, task.task, task.pid) == ("c", 0, w.pid(task_id))
        assert connector.state is task.state is State.RUNNING
        assert task.rss_bytes is not None
        assert task.rss_bytes > 1_000_000
        assert task.last_activity_ms is not None
        assert task.last_activity_ms >= task.since_ms - 1_000
        assert task.queue_size is not None
        assert task.responsive


async def test_a_connector_without_a_process_is_described_too() -> None:
    """A stopped connector has a state and neither pid nor memory."""
    async with children_world() as w:
        w.start_connector(bad_source(), TargetState.STOPPED)
        (connector,) = await w.children.child_details()
        assert (connector.state, connector.pid, connector.rss_bytes) == (State.STOPPED, None, None)


async def test_frozen_children_show_no_stacks_and_do_not_respond() -> None:
    """A frozen child's details come within a second; the error about its stacks has the pid."""
    async with children_world() as w:
        task_id = await w.running_task(bad_source())
        os.kill(w.pid(task_id), signal.SIGSTOP)
        (task,) = await w.children.child_details()
        assert not task.responsive
        assert task.pid == w.pid(task_id)
        assert task.last_activity_ms is None
        with pytest.raises(AgentError, match=f"pid {w.pid(task_id)}"):
            await w.children.task_stacks(task_id)


async def test_stacks_show_where_python_code_hangs() -> None:
    """Stacks have thread names, functions and source lines."""
    async with children_world() as w:
        task_id = await w.running_task(bad_source(poll="hang"))

        async def hangs() -> bool:
            # The task is RUNNING before its first poll.
            text = await w.children.task_stacks(task_id)
            assert text.startswith("Thread MainThread (most recent call last):\n")
            return "in misbehave\n    threading.Event().wait()" in text

        await eventually_async(hangs)


async def test_stacks_show_the_thread_that_holds_the_interpreter() -> None:
    """The stacks show a plugin that lets no other thread run."""
    async with children_world() as w:
        task_id = await w.running_task(bad_source(poll="hold-the-interpreter"))

        async def hangs() -> str | None:
            # The task is RUNNING before its first poll.
            text = await w.children.task_stacks(task_id)
            held = "The interpreter did not answer" in text and "in misbehave" in text
            return text if held else None

        text = await eventually_async(hangs)
        assert text is not None
        assert not (await w.children.child_details())[0].responsive
        again = await w.children.task_stacks(task_id)
        assert again.count("in misbehave") == text.count("in misbehave")


@cases("force", False, True)
@cases("poll", "", "hang", "hold-the-interpreter")
async def test_a_killed_task_is_failed_with_the_reason(poll: str, *, force: bool) -> None:
    """A killed task fails with the reason, however it ended, and can be started again."""
    async with children_world(graceful_ms=300) as w:
        task_id = await w.running_task(bad_source(poll=poll))
        w.children.kill_task(task_id, force=force, reason=REASON)
        await w.task_is(task_id, State.FAILED)
        assert w.listener.task_states(task_id) == [State.RUNNING, State.FAILED]
        trace = w.listener.task_trace(task_id)
        assert trace.startswith(REASON)
        assert force or "\nIts stacks before that:\n" in trace
        assert w.listener.tasks[task_id][-1].no_restart is NoRestart.KILLED
        assert task_id not in w.children.tasks.running()
        w.children.tasks.start(task_id, bad_source(), bad_source(), TargetState.STARTED)
        await w.task_is(task_id, State.RUNNING)


async def test_frozen_tasks_can_be_killed_and_a_stop_waits() -> None:
    """SIGKILL ends a frozen task, and a killed task reports nothing after FAILED."""
    async with children_world(graceful_ms=100) as w:
        task_id = await w.running_task(bad_source())
        os.kill(w.pid(task_id), signal.SIGSTOP)
        w.children.kill_task(task_id, force=False, reason=REASON)
        await w.task_is(task_id, State.FAILED)
    async with children_world(graceful_ms=300) as w:
        task_id = await w.running_task(bad_source(poll="hang"))
        w.children.kill_task(task_id, force=False, reason=REASON)
        await w.children.tasks.stop([task_id])
        assert w.listener.task_states(task_id) == [State.RUNNING, State.FAILED]


async def test_a_stop_without_a_lease_brings_no_last_commit() -> None:
    """A task whose lease has expired ends without a last commit: another worker may run it."""
    async with children_world(lease_ms=LEASE_MS) as w:
        task_id = await w.run_task(bad_source())
        await w.task_is(task_id, State.RUNNING)
        leases = w.children._leases
        assert leases is not None
        os.kill(w.pid(task_id), signal.SIGSTOP)
        leases.cancel()
        cancelled_s = time.monotonic()
        # The connector's process has no lease any more either.
        await w.connector_is("c", State.UNASSIGNED)
        # The lease that the frozen task will find in its pipe has expired by then, too.
        await eventually_async(lambda: time.monotonic() > cancelled_s + 2 * LEASE_MS / 1000)
        stopping = asyncio.ensure_future(w.children.tasks.stop([task_id]))
        await asyncio.sleep(0)
        os.kill(w.pid(task_id), signal.SIGCONT)
        await stopping
        assert w.listener.task_states(task_id) == [State.RUNNING, State.UNASSIGNED]
        assert w.listener.expired_leases == 2


async def test_a_task_over_its_memory_is_ended_and_nothing_else_is() -> None:
    """A task over its memory limit fails with the memory used; other processes go on."""
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
    """Details show use and limits, and the use of tasks without limits too."""
    async with children_world() as w:
        config = bad_source(agent_limit_memory_bytes=str(1 << 40), agent_limit_cpu_percent="90")
        await w.running_task(config)

        async def known() -> bool:
            (details,) = await w.children.child_details()
            assert (details.limits.memory_bytes, details.limits.cpu_percent) == (1 << 40, 90)
            return details.rss_bytes is not None and details.cpu_percent is not None

        await eventually_async(known)


async def test_a_worker_without_processes_says_so_and_recovers() -> None:
    """A process that cannot be started fails with the limits in its trace; later starts succeed."""
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
