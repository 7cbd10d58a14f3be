"""Tasks that raise, hang or exit, in the worker's own child processes; no Kafka."""

import os
import signal

import psutil
import pytest

from pyconnect_agent.channel.requests import SetLoggerLevel
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.tasks.trace import TRACE_CHARACTERS
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.plugins.bad_plugins import bad_source

pytestmark = pytest.mark.wire

T0 = ConnectorTaskId("c", 0)


async def test_tasks_of_a_set_that_is_too_large_do_not_start() -> None:
    """A task of a set above tasks.max fails unless tasks.max.enforce=false."""
    async with children_world() as w:
        for config, state in (
            (bad_source(tasks_max="2"), State.FAILED),
            (bad_source(tasks_max="2", tasks_max_enforce="false"), State.RUNNING),
        ):
            w.children.tasks.start(T0, config, config, TargetState.STARTED, task_count=3)
            await w.task_is(T0, state)
            await w.children.tasks.stop([T0])
            await eventually_async(lambda: T0 not in w.children.tasks.running())
        (failed,) = [r for r in w.listener.tasks[T0] if r.state is State.FAILED]
        text = "The connector c has generated 3 tasks, which is greater than 2"
        assert text in (failed.trace or "")


@cases(
    "settings, text",
    ({"task_start": "raise"}, "ValueError: no good"),
    ({"poll": "connect-exception"}, "Caused by: OSError: disk on fire"),
    ({"poll": "sys-exit"}, "SystemExit: 9"),
    ({"poll": "exit"}, "task process exited with code 7"),
    ({"poll": "abort"}, "task process was killed by signal 6 (SIGABRT)"),
    ({"key_converter": "NoSuchConverter"}, "Class NoSuchConverter could not be found"),
    ({"key_converter": "FileStreamSource"}, "Class FileStreamSource could not be found"),
    (
        {"value_converter": "pyconnect_api.Struct"},
        "Class pyconnect_api.Struct does not implement the Converter interface",
    ),
    ({"transforms": "t"}, 'Missing required configuration "transforms.t.type"'),
    (
        {"transforms": "t", "transforms_t_type": "DropHeaders"},
        'Missing required configuration "headers"',
    ),
    ({"producer_override_linger_ms": "soon"}, "linger.ms: Not a number of type LONG"),
)
async def test_a_task_that_fails_says_why(settings: dict[str, str], text: str) -> None:
    """Each kind of failure leaves a trace in the status."""
    async with children_world() as w:
        task_id = w.start_task(bad_source(**settings))
        await w.task_is(task_id, State.FAILED)
        assert text in w.listener.task_trace(task_id)


async def test_a_long_trace_is_shortened_to_what_a_status_can_hold() -> None:
    """A long trace is shortened, because a worker could not write the status."""
    async with children_world() as w:
        task_id = w.start_task(bad_source(task_start="raise-much"))
        await w.task_is(task_id, State.FAILED)
        trace = w.listener.task_trace(task_id)
        assert len(trace) <= TRACE_CHARACTERS
        assert trace.startswith("ValueError: beginxxx")
        assert "\n[...]\n" in trace


@cases("policy", "None", "Principal", "Allowlist")
async def test_a_task_does_not_start_with_overrides_that_the_worker_denies(policy: str) -> None:
    """A stored config with overrides that the worker now denies fails its task."""
    properties = {"connector.client.config.override.policy": policy}
    async with children_world(properties) as w:
        task_id = w.start_task(bad_source(producer_override_linger_ms="5"))
        await w.task_is(task_id, State.FAILED)
        text = f"The '{policy}' policy does not allow 'linger.ms' to be overridden"
        assert text in w.listener.task_trace(task_id)


@cases(
    "class_name, text",
    ("ConnectorForTaskSource", "ConnectorForTaskSource.task_class() returned <class"),
    ("AbstractTaskSource", "Could not construct tests.support.plugins.bad_plugins.Abstract"),
)
async def test_a_class_that_is_not_a_task_is_named_in_its_trace(class_name: str, text: str) -> None:
    """The trace names the class that the connector returned."""
    async with children_world() as w:
        config = bad_source(connector_class=f"tests.support.plugins.bad_plugins.{class_name}")
        w.children.tasks.start(T0, config, config, TargetState.STARTED)
        await w.task_is(T0, State.FAILED)
        assert text in w.listener.task_trace(T0)


async def test_a_task_has_the_class_that_its_started_connector_named() -> None:
    """A task has the class that the started instance of its connector returned."""
    async with children_world() as w:
        chosen = "tests.support.plugins.bad_plugins.ChoosingSource"
        task_id = await w.run_task(bad_source(connector_class=chosen, chosen="plain"))
        await w.task_is(task_id, State.RUNNING)


async def test_a_paused_task_is_not_started_until_it_is_resumed() -> None:
    """A paused task is started at the resume, where its failing `start` is called."""
    async with children_world() as w:
        task_id = w.start_task(bad_source(task_start="raise"), TargetState.PAUSED)
        await w.task_is(task_id, State.PAUSED)
        w.children.tasks.set_target_state(task_id, TargetState.STARTED)
        await w.task_is(task_id, State.FAILED)


async def test_a_paused_task_can_be_stopped() -> None:
    """A paused task can be stopped without having been started."""
    async with children_world() as w:
        task_id = w.start_task(bad_source(task_start="raise"), TargetState.PAUSED)
        await w.task_is(task_id, State.PAUSED)
        await w.children.tasks.stop([task_id])
        assert w.listener.task_states(task_id) == [State.PAUSED, State.UNASSIGNED]


async def test_a_running_task_pauses_and_resumes() -> None:
    """A running task can be paused and resumed."""
    async with children_world() as w:
        task_id = await w.running_task(bad_source())
        w.children.tasks.set_target_state(task_id, TargetState.PAUSED)
        await w.task_is(task_id, State.PAUSED)
        w.children.tasks.set_target_state(task_id, TargetState.STARTED)
        await w.task_is(task_id, State.RUNNING)


async def test_a_failure_while_stopping_ends_unassigned() -> None:
    """A task that is being stopped does not become FAILED."""
    async with children_world() as w:
        task_id = await w.running_task(bad_source(task_stop="raise"))
        await w.children.tasks.stop([task_id])
        assert w.listener.task_states(task_id) == [State.RUNNING, State.UNASSIGNED]


async def test_a_hanging_poll_is_killed_and_says_nothing_more() -> None:
    """A hanging poll is killed after the graceful time, which is for all tasks together."""
    async with children_world(graceful_ms=200) as w:
        task_id = await w.running_task(bad_source(poll="hang"))

        async def hangs() -> bool:
            # The task is RUNNING before its first poll.
            return "in misbehave" in await w.children.task_stacks(task_id)

        await eventually_async(hangs)
        await w.children.tasks.stop([task_id])
        assert w.listener.task_states(task_id) == [State.RUNNING]
        assert w.children.tasks.running() == frozenset()


async def test_sigterm_alone_does_not_end_a_task() -> None:
    """SIGTERM alone does not end a task: the worker process stops its children itself."""
    async with children_world() as w:
        task_id = await w.running_task(bad_source())
        os.kill(w.pid(task_id), signal.SIGTERM)
        w.children.tasks.set_target_state(task_id, TargetState.PAUSED)
        await w.task_is(task_id, State.PAUSED)


async def test_a_task_whose_control_thread_has_died_fails_with_the_reason() -> None:
    """A task without its control thread fails, because a stop would not reach it."""
    async with children_world() as w:
        task_id = await w.running_task(bad_source())
        child = w.children.tasks.details()[task_id].child
        child.send(SetLoggerLevel(namespace="a", level="no level"))
        await w.task_is(task_id, State.FAILED)
        assert "KeyError: 'no level'" in w.listener.task_trace(task_id)
        await child.gone()
        assert task_id not in w.children.tasks.running()


async def test_a_connector_whose_control_thread_has_died_fails_with_the_reason() -> None:
    """A connector without its control thread fails, and the status keeps the reason."""
    async with children_world() as w:
        w.start_connector(bad_source())
        await w.connector_is("c", State.RUNNING)
        child = w.children.connectors.details()["c"].child
        assert child is not None
        child.send(SetLoggerLevel(namespace="a", level="no level"))
        await child.gone()
        assert w.listener.connector_states("c")[-1] is State.FAILED
        assert "KeyError: 'no level'" in w.listener.connector_trace("c")


async def test_a_task_that_is_killed_while_the_fork_server_is_stopped_becomes_failed() -> None:
    """A killed task is FAILED although the stopped fork server cannot report the end."""
    async with children_world() as w:
        task_id = await w.running_task(bad_source())
        (child,) = w.children.tasks.children()
        assert child.pid is not None
        server = psutil.Process(child.pid).parent()
        assert server is not None
        server.suspend()
        try:
            os.kill(child.pid, signal.SIGKILL)
            await w.task_is(task_id, State.FAILED)
        finally:
            server.resume()
        assert "was killed by signal 9 (SIGKILL)" in w.listener.task_trace(task_id)
