"""Real child processes, without Kafka and without real plugins."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from pyconnect_agent.channel.requests import WorkerSettings
from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.children.launch import Launched, Launcher
from pyconnect_agent.children.ports import ChildSettings
from pyconnect_agent.core.errors import AgentError, InternalError, RetriableKafkaError
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.cases import cases
from tests.support.eventually import eventually, eventually_async
from tests.support.fakes.children_world import (
    MemoryOffsetStore,
    RecordingListener,
    scripted_launcher,
)

pytestmark = pytest.mark.wire

T0 = ConnectorTaskId("c", 0)
T1 = ConnectorTaskId("c", 1)


class DyingLauncher(Launcher):
    """A launcher whose fork server dies when it is asked for a process."""

    def launch(self) -> Launched:
        raise EOFError("unexpected EOF")


class World:
    """Children with a scripted host, and the reports from them."""

    def __init__(
        self,
        *,
        graceful_ms: int = 5_000,
        lease_ms: int | None = None,
        launcher: Launcher | None = None,
    ) -> None:
        self.store = MemoryOffsetStore()
        self.listener = RecordingListener()
        self.children = ChildProcesses(
            ChildSettings(
                worker=WorkerSettings(properties={}),
                task_shutdown_graceful_timeout_ms=graceful_ms,
                lease_ms=lease_ms,
            ),
            self.store,
            launcher=launcher or scripted_launcher(),
        )
        self.children.connect(self.listener)

    def start_task(self, task_id: ConnectorTaskId, act: str = "run") -> None:
        self.children.tasks.start(task_id, {"name": "c"}, {"act": act}, TargetState.STARTED)

    def start_connector(
        self, act: str = "run", target_state: TargetState = TargetState.STARTED
    ) -> None:
        self.children.connectors.start("c", {"name": "c", "act": act}, target_state)

    async def task_is(self, task_id: ConnectorTaskId, *states: State) -> None:
        await eventually_async(
            lambda: self.listener.task_states(task_id) == list(states),
            describe=lambda: self.listener.tasks,
        )

    async def connector_is(self, *states: State) -> None:
        await eventually_async(
            lambda: self.listener.connector_states("c") == list(states),
            describe=lambda: self.listener.connectors,
        )

    def pid(self, task_id: ConnectorTaskId) -> int:
        pid = self.children.tasks.details()[task_id].child.pid
        assert pid is not None
        return pid


@asynccontextmanager
async def world(
    *, graceful_ms: int = 5_000, lease_ms: int | None = None, launcher: Launcher | None = None
) -> AsyncIterator[World]:
    made = World(graceful_ms=graceful_ms, lease_ms=lease_ms, launcher=launcher)
    await made.children.start()
    try:
        yield made
    finally:
        await made.children.stop(hurry=True)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_task_runs_and_stops_in_order() -> None:
    """A task is RUNNING and then UNASSIGNED, and its process has ended."""
    async with world() as w:
        w.start_task(T0)
        await w.task_is(T0, State.RUNNING)
        pid = w.pid(T0)
        assert w.children.tasks.running() == {T0}
        await w.children.tasks.stop([T0])
        assert w.listener.task_states(T0) == [State.RUNNING, State.UNASSIGNED]
        assert w.listener.tasks[T0][0].version == "1.2"
        assert w.children.tasks.running() == frozenset()
        assert gone(pid)


async def test_a_task_that_exits_by_itself_is_failed_with_its_exit_code() -> None:
    """A task that exits is FAILED with its exit code, and another task goes on."""
    async with world() as w:
        w.start_task(T1)
        await w.task_is(T1, State.RUNNING)
        w.start_task(T0, "exit-3")
        await w.task_is(T0, State.RUNNING, State.FAILED)
        assert "task process exited with code 3" in w.listener.task_trace(T0)
        assert w.children.tasks.running() == {T1}
        assert w.listener.task_states(T1) == [State.RUNNING]


async def test_a_task_killed_from_outside_is_failed_with_the_signal() -> None:
    """A task killed by SIGKILL is FAILED with the signal, and can be started again."""
    async with world() as w:
        w.start_task(T0)
        await w.task_is(T0, State.RUNNING)
        os.kill(w.pid(T0), signal.SIGKILL)
        await w.task_is(T0, State.RUNNING, State.FAILED)
        assert "was killed by signal 9 (SIGKILL)" in w.listener.task_trace(T0)
        w.start_task(T0)
        await w.task_is(T0, State.RUNNING, State.FAILED, State.RUNNING)


async def test_a_hanging_task_is_killed_after_the_graceful_time_and_reports_nothing_more() -> None:
    """A hanging task is ended by SIGKILL after the graceful time, not by SIGTERM."""
    # The other task must have time to stop in order on a busy machine.
    async with world(graceful_ms=3_000) as w:
        w.start_task(T0, "hang")
        w.start_task(T1)
        await w.task_is(T0, State.RUNNING)
        await w.task_is(T1, State.RUNNING)
        pid = w.pid(T0)
        await w.children.tasks.stop([T0, T1])
        assert gone(pid)
        assert w.listener.task_states(T0) == [State.RUNNING]
        assert w.listener.task_states(T1) == [State.RUNNING, State.UNASSIGNED]


async def test_a_cancelled_task_never_reports_again() -> None:
    """The messages of a task after its end do not reach the listener."""
    async with world(graceful_ms=50) as w:
        w.start_task(T0, "late")
        await w.task_is(T0, State.RUNNING)
        await w.children.tasks.stop([T0])
        assert w.listener.task_states(T0) == [State.RUNNING]


async def test_a_task_whose_process_cannot_be_started_is_failed() -> None:
    """A task is FAILED if its process cannot start, also when the fork server dies."""
    async with world(launcher=DyingLauncher()) as w:
        w.start_task(T0)
        await w.task_is(T0, State.FAILED)


async def test_starts_and_stops_may_overtake_each_other() -> None:
    """A second start of a task is an error; a stop may precede the task's process."""
    async with world() as w:
        w.start_task(T0)
        with pytest.raises(AgentError, match="Task already exists in this worker: c-0"):
            w.start_task(T0)
        await w.task_is(T0, State.RUNNING)
    async with world() as w:
        w.start_task(T0)
        await w.children.tasks.stop([T0])
        assert w.children.tasks.running() == frozenset()
        assert w.listener.task_states(T0)[-1] is State.UNASSIGNED


@cases(
    "act, reason",
    ("garbage", "The message has version 63, expected 02"),
    ("no-message", "StateReported is not valid: Expected `str | null`, got `int` - at `$.version`"),
)
async def test_a_child_that_sends_an_unreadable_message_is_killed(act: str, reason: str) -> None:
    """A task that sends an unreadable message fails alone, and its trace has the reason."""
    async with world() as w:
        w.start_task(T0, act)
        await w.task_is(T0, State.FAILED)
        assert w.listener.task_trace(T0) == (
            f"task process was killed because it sent an unreadable message (task c-0):\n{reason}"
        )


async def test_a_message_that_the_worker_cannot_handle_fails_the_task_with_that_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error of the worker about a message fails the task, and the worker goes on."""

    def fail(*_: object) -> None:
        raise LookupError("no such index")

    async with world() as w:
        monkeypatch.setattr(w.listener, "topic_used", fail)
        w.start_task(T0, "topics")
        await w.task_is(T0, State.FAILED)
        trace = w.listener.task_trace(T0)
        assert "was killed because the worker failed at its TopicUsed (task c-0)" in trace
        assert trace.endswith("LookupError: no such index")


@cases(
    "act, how, reason",
    ("raise", "exited with code 1", "LookupError: nothing reports this"),
    ("crash", "was killed by signal 11 (SIGSEGV)", "Fatal Python error: Segmentation fault"),
    ("exit-3", "exited with code 3", "Plugin code may have called os._exit"),
)
async def test_a_task_that_dies_has_its_last_words(act: str, how: str, reason: str) -> None:
    """The trace of a dead task has its exception, its crash, or its exit code alone."""
    async with world() as w:
        w.start_task(T0, act)
        await eventually_async(lambda: w.listener.task_states(T0)[-1:] == [State.FAILED])
        trace = w.listener.task_trace(T0)
        assert trace.startswith(f"task process {how} (task c-0)")
        assert reason in trace
        assert (f"in _{act}" in trace) is (act != "exit-3")


@cases(
    "launcher, how",
    (Launcher(host="tests.support.no_such_host:run", preload=()), "exited with code 1"),
    (Launcher(preload=("tests.support.no_such_host",)), "could not be started"),
)
async def test_a_part_that_cannot_be_imported_is_named(
    launcher: Launcher, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A module that cannot be imported is named in traces, in answers and in the log."""
    text = "ModuleNotFoundError: No module named 'tests.support.no_such_host'"

    try:
        async with world(launcher=launcher) as w:
            w.start_task(T0)
            await w.task_is(T0, State.FAILED)
            trace = w.listener.task_trace(T0)
            assert trace.startswith(f"task process {how} (task c-0):")
            assert text in trace
            with pytest.raises(InternalError, match=text) as raised:
                await w.children.jobs.validate({"act": "refuse"}, 60_000)
            assert f"The validation process {how} before it answered" in raised.value.message
            assert sum(text in str(vars(record).get("how")) for record in caplog.records) == 2
    finally:
        launcher.close()


async def test_stores_answer_through_the_supervisor() -> None:
    """A task gets the results and errors of the offset store."""
    async with world() as w:
        w.store.entries[b"gone"] = b"old"
        w.start_task(T0, "offsets")
        await w.task_is(T0, State.FAILED)
        assert w.store.entries == {b"k": b"v"}
        trace = w.listener.task_trace(T0)
        assert "OffsetsWritten(request_id=1)" in trace
        assert "OffsetsRead(request_id=2, entries={b'k': b'v'})" in trace
    async with world() as w:
        w.store.failure = RetriableKafkaError("broker is away")
        w.start_task(T0, "offsets")
        await w.task_is(T0, State.FAILED)
        trace = w.listener.task_trace(T0)
        assert "broker is away" in trace
        assert "retriable=True" in trace


async def test_used_topics_are_reported() -> None:
    """The listener gets the topics that a task uses."""
    async with world() as w:
        w.start_task(T0, "topics")
        await w.task_is(T0, State.RUNNING)
        assert w.listener.topics == [(T0, "t1")]


async def test_a_connector_generates_task_configs() -> None:
    """A connector's task configs come back, or an error with its text."""
    async with world() as w:
        w.start_connector()
        await w.connector_is(State.RUNNING)
        generated = await w.children.connectors.generate_task_configs("c", {"name": "c"}, None)
        assert generated.configs == ({"n": "0"}, {"n": "1"})
        assert generated.connector_config_changed is True
        with pytest.raises(AgentError, match="no tasks"):
            await w.children.connectors.generate_task_configs("c", {"refuse": "1"}, None)


async def test_a_connector_that_dies_is_failed_and_its_open_request_too() -> None:
    """A connector that dies is FAILED, and its open request fails too."""
    async with world() as w:
        w.start_connector()
        await w.connector_is(State.RUNNING)
        with pytest.raises(AgentError, match="exited with code 5"):
            await w.children.connectors.generate_task_configs("c", {"die": "1"}, None)
        await w.connector_is(State.RUNNING, State.FAILED)
        assert "connector process exited with code 5" in w.listener.connector_trace("c")
        assert w.children.connectors.running() == {"c"}
        await w.children.connectors.stop(["c"])
        assert w.children.connectors.running() == frozenset()


async def test_a_stopped_connector_gets_no_process_until_it_is_resumed() -> None:
    """STOPPED is reported without a process; a resume starts one."""
    async with world() as w:
        w.start_connector(target_state=TargetState.STOPPED)
        assert w.listener.connector_states("c") == [State.STOPPED]
        with pytest.raises(AgentError, match="not found in this worker"):
            await w.children.connectors.generate_task_configs("c", {}, None)
        w.children.connectors.set_target_state("c", TargetState.STARTED)
        await w.connector_is(State.STOPPED, State.RUNNING)
        await w.children.connectors.stop(["c"])
        assert w.listener.connector_states("c")[-1] is State.UNASSIGNED


async def test_stopping_in_a_hurry_kills_at_once() -> None:
    """A stop in a hurry gives no graceful time and leaves no process."""
    async with world(graceful_ms=600_000) as w:
        w.start_task(T0, "hang")
        await w.task_is(T0, State.RUNNING)
        pid = w.pid(T0)
        await asyncio.wait_for(w.children.stop(hurry=True), 60)
        assert gone(pid)


async def test_the_last_report_arrives_although_a_later_message_could_not_be_sent() -> None:
    """The last report of a task arrives although a later message to it cannot be sent."""
    async with world() as w:
        w.start_task(T0, "last-words")
        await w.task_is(T0, State.RUNNING)
        pid = w.pid(T0)
        w.children.tasks.set_target_state(T0, TargetState.PAUSED)
        # The loop must not run, because it would read the report.
        eventually(lambda: gone(pid))
        w.children.tasks.set_target_state(T0, TargetState.STARTED)
        await w.task_is(T0, State.RUNNING, State.FAILED)
        assert w.listener.task_trace(T0) == "last words"


@cases("hurry", True, False)
async def test_an_offset_store_that_does_not_answer_holds_up_no_stop(hurry: bool) -> None:
    """A stop does not wait for an offset store that a child has asked."""
    asked, answer = threading.Event(), threading.Event()

    def write(entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        asked.set()
        answer.wait()

    async with world(graceful_ms=100) as w:
        w.store.write = write  # type: ignore[method-assign]
        try:
            w.start_task(T0, "offsets")
            await eventually_async(asked.is_set)
            await asyncio.wait_for(w.children.stop(hurry=hurry), 60)
        finally:
            answer.set()
