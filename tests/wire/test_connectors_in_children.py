"""Connectors that raise, hang, exit or sleep, in the worker's own child processes; no Kafka."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from pyconnect_agent.core.config.agent_keys import AgentKeys
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.tasks.connector import QUIET_S
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.plugins.bad_plugins import NumberedSource, bad_source, idle_source

pytestmark = pytest.mark.wire

T0 = ConnectorTaskId("c", 0)
FILE_PROVIDER = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}


@pytest.fixture
def password(tmp_path: Path) -> str:
    """A reference to the password `sesame-open`."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=sesame-open\n")
    return f"${{file:{secrets}:password}}"


async def test_a_connector_that_raises_in_start_is_failed_with_its_causes() -> None:
    """The trace of a connector that raises in `start` has the error and its causes."""
    async with children_world() as w:
        w.start_connector(bad_source(start="connect-exception"))
        await w.connector_is("c", State.FAILED)
        trace = w.listener.connector_trace("c")
        assert trace.startswith("pyconnect_api.errors.ConnectException: bad config\n")
        assert "Caused by: OSError: disk on fire" in trace
        assert w.listener.connectors["c"][-1].version == "0.9"


@cases(
    "how, text",
    ("exit", "connector process exited with code 7"),
    ("abort", "killed by signal 6 (SIGABRT)"),
)
async def test_a_connector_that_ends_its_process_is_failed(how: str, text: str) -> None:
    """A connector that ends its process is FAILED with the exit code or the signal."""
    async with children_world() as w:
        w.start_connector(bad_source(start=how))
        await w.connector_is("c", State.FAILED)
        assert text in w.listener.connector_trace("c")


async def test_task_configs_of_any_text_and_mapping_are_taken() -> None:
    """Task configs with enums and subclasses of str become plain texts in the child."""
    async with children_world() as w:
        w.start_connector(bad_source(odd="enum"))
        await w.connector_is("c", State.RUNNING)
        (config,) = (await w.generate(bad_source(odd="enum"))).configs
        task_class = "tests.support.plugins.bad_plugins.BadSourceTask"
        assert config == {"fast": "fast", "none": None, "task.class": task_class}
        assert {type(text) for text in (*config, config["fast"])} == {str}


@cases(
    "odd, text",
    ("number", r"BadSource.task_configs()[0]: the value of 'port' is of type int"),
    ("key", r"BadSource.task_configs()[0]: the key 1 is of type int"),
    ("none", r"BadSource.task_configs() returned NoneType, expected a list of mappings"),
)
async def test_task_configs_of_other_types_are_refused(odd: str, text: str) -> None:
    """Task configs of other types are refused, and the connector can be asked again."""
    async with children_world() as w:
        w.start_connector(bad_source(odd=odd))
        await w.connector_is("c", State.RUNNING)
        for _ in range(2):
            with pytest.raises(AgentError, match=re.escape(text)):
                await w.generate(bad_source(odd=odd))
        assert w.listener.connector_states("c") == [State.RUNNING]


async def test_a_connector_whose_version_is_not_a_text_is_failed_with_that_reason() -> None:
    """A version that is not a text fails the connector with its type."""
    async with children_world() as w:
        name = NumberedSource.__qualname__
        w.start_connector(
            {**bad_source(), "connector.class": f"{NumberedSource.__module__}.{name}"}
        )
        await w.connector_is("c", State.FAILED)
        trace = w.listener.connector_trace("c")
        assert "version() of the connector is of type tuple, expected str" in trace


async def test_a_death_in_stop_is_an_end_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A connector that dies in `stop` is UNASSIGNED, and the log says how it ended."""
    async with children_world() as w:
        w.start_connector(bad_source(stop="abort"))
        await w.connector_is("c", State.RUNNING)
        await w.children.connectors.stop(["c"])
        assert w.listener.connector_states("c") == [State.RUNNING, State.UNASSIGNED]
    (how,) = [text for record in caplog.records if (text := vars(record).get("how"))]
    assert how.startswith("connector process was killed by signal 6 (SIGABRT) (connector c):\n")
    assert "in misbehave" in how


async def test_sys_exit_in_a_connector_is_a_failure_like_any_other() -> None:
    """sys.exit in a connector is an ordinary failure, after which it can be stopped."""
    async with children_world() as w:
        w.start_connector(bad_source(start="sys-exit"))
        await w.connector_is("c", State.FAILED)
        assert "SystemExit: 9" in w.listener.connector_trace("c")
        await w.children.connectors.stop(["c"])
        assert w.listener.connector_states("c") == [State.FAILED, State.UNASSIGNED]


async def test_a_connector_that_hangs_in_start_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connector that hangs in `start` is killed, and the worker reports UNASSIGNED."""
    monkeypatch.setattr("pyconnect_agent.children.connectors.CONNECTOR_GRACEFUL_MS", 1_000)

    async with children_world() as w:
        w.start_connector(bad_source(start="hang"))
        await w.children.connectors.stop(["c"])
        assert w.listener.connector_states("c") == [State.UNASSIGNED]
        assert w.children.connectors.running() == frozenset()


async def test_a_connector_pauses_resumes_and_stops() -> None:
    """A connector reaches each target state in one process, which stays."""
    async with children_world() as w:
        w.start_connector(bad_source(), TargetState.PAUSED)
        await w.connector_is("c", State.PAUSED)
        w.children.connectors.set_target_state("c", TargetState.STARTED)
        await w.connector_is("c", State.RUNNING)
        w.children.connectors.set_target_state("c", TargetState.STOPPED)
        await w.connector_is("c", State.STOPPED)
        await w.children.connectors.stop(["c"])
        expected = [State.PAUSED, State.RUNNING, State.STOPPED, State.UNASSIGNED]
        assert w.listener.connector_states("c") == expected


async def test_a_connector_that_was_stopped_gives_its_process_back() -> None:
    """A stopped connector has no process, and a resume starts another instance."""
    async with children_world() as w:
        w.start_connector(bad_source(), TargetState.STARTED)
        await w.connector_is("c", State.RUNNING)
        w.children.connectors.set_target_state("c", TargetState.STOPPED)
        await w.connector_is("c", State.STOPPED)
        await eventually_async(lambda: w.children.connectors.children() == ())
        assert w.children.connectors.running() == {"c"}
        w.children.connectors.set_target_state("c", TargetState.STARTED)
        await w.connector_is("c", State.RUNNING)
        assert len(w.children.connectors.children()) == 1

        async def configs() -> Sequence[Mapping[str, str | None]]:
            try:
                return (await w.generate(bad_source())).configs
            except AgentError:
                return ()  # the states do not show yet that it stops first

        w.children.connectors.set_target_state("c", TargetState.STOPPED)
        w.children.connectors.set_target_state("c", TargetState.STARTED)
        assert len(await eventually_async(configs)) == 1
        await w.connector_is("c", State.RUNNING)


async def test_a_connector_that_fails_to_stop_is_failed_by_a_pause_and_stopped_by_a_stop() -> None:
    """A failing `stop` makes a paused connector FAILED and a stopped one STOPPED, as in Kafka."""
    for target_state, state in (
        (TargetState.PAUSED, State.FAILED),
        (TargetState.STOPPED, State.STOPPED),
    ):
        async with children_world() as w:
            w.start_connector(bad_source(stop="raise"))
            await w.connector_is("c", State.RUNNING)
            w.children.connectors.set_target_state("c", target_state)
            await w.connector_is("c", state)


async def test_a_connector_can_fail_itself_and_ask_for_new_tasks() -> None:
    """A connector can raise an error and request new tasks through its context."""
    async with children_world() as w:
        w.start_connector(bad_source(report="source is gone", reconfigure="yes"))
        await w.connector_is("c", State.FAILED)
        assert "source is gone" in w.listener.connector_trace("c")
        assert w.listener.reconfigurations == ["c"]


async def test_task_configs_are_completed_and_keep_references(password: str) -> None:
    """Task configs get `task.class`, and a resolved secret never leaves the child."""
    async with children_world(FILE_PROVIDER) as w:
        config = bad_source(password=password)
        w.start_connector(config)
        await w.connector_is("c", State.RUNNING)
        generated = await w.generate(config)
        assert generated.configs == (
            {
                **config,
                "number": "0",
                "task.class": "tests.support.plugins.bad_plugins.BadSourceTask",
            },
        )
        assert generated.connector_config_changed is True
        again = await w.children.connectors.generate_task_configs("c", config, config)
        assert again.connector_config_changed is False


async def test_a_secret_does_not_appear_in_a_trace(password: str) -> None:
    """A trace has references in place of secrets."""
    async with children_world(FILE_PROVIDER) as w:
        w.start_connector(bad_source(report=password))
        await w.connector_is("c", State.FAILED)
        trace = w.listener.connector_trace("c")
        assert "sesame-open" not in trace
        assert "${file:" in trace


async def test_too_many_tasks_fail_the_connector_unless_allowed() -> None:
    """Too many task configs fail the connector, unless `tasks.max.enforce=false`."""
    async with children_world() as w:
        config = bad_source(made="3", tasks_max="2")
        w.start_connector(config)
        await w.connector_is("c", State.RUNNING)
        with pytest.raises(AgentError, match="has generated 3 tasks, which is greater than 2"):
            await w.generate(config)
        await w.connector_is("c", State.FAILED)
    async with children_world() as w:
        config = bad_source(made="3", tasks_max="2", tasks_max_enforce="false")
        w.start_connector(config)
        await w.connector_is("c", State.RUNNING)
        assert len((await w.generate(config)).configs) == 3


@cases(
    "class_name, text",
    ("pyconnect_api.Struct", "Failed to find any class that implements Connector"),
    ("JsonConverter", "Failed to find any class that implements Connector"),
    ("tests.support.no_such.Source", "Failed to find any class that implements Connector"),
    ("tests.support.plugins.bad_plugins.UnconstructibleSource", "OSError: no licence"),
    ("tests.support.plugins.bad_plugins.BadSourceTask", "any class that implements Connector"),
)
async def test_a_class_of_another_kind_is_in_the_trace(class_name: str, text: str) -> None:
    """The traces of a connector and its task name a class that is not a connector."""
    async with children_world() as w:
        config = bad_source(connector_class=class_name)
        w.start_connector(config)
        await w.connector_is("c", State.FAILED)
        assert text in w.listener.connector_trace("c")
        w.children.tasks.start(T0, config, config, TargetState.STARTED)
        await w.task_is(T0, State.FAILED)
        assert text in w.listener.task_trace(T0)


RUNNING, PAUSED, STOPPED = State.RUNNING, State.PAUSED, State.STOPPED


async def asleep(world: ChildrenWorld) -> set[str]:
    return {child.connector for child in await world.children.child_details() if child.asleep}


async def sleep(world: ChildrenWorld, names: Iterable[str]) -> None:
    """Wait until exactly these connectors sleep and their processes have ended."""
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
    """Start connectors and generate their task configs."""
    for config in configs:
        world.start_connector(config)
    for config in configs:
        await world.connector_is(config["name"], RUNNING)
        await world.generate(config)


async def test_an_idle_connector_sleeps_until_its_next_call(tmp_path: Path) -> None:
    """Each start has a stop before the next start, and the state stays RUNNING."""
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
    """Pause and stop need no process, and each resume is a start."""
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
        # The connector is paused with a process, which then ends too.
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
    """Threads, processes, expiring values, missing task configs or the setting prevent sleep."""
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
        # The idle connector is checked last, as often as the others.
        await run(w, idle_source("idle", tmp_path))
        await sleep(w, {"idle"})
        (tmp_path / "thread-ask").touch()
        await eventually_async(lambda: w.listener.reconfigurations == ["thread"], QUIET_S)
        assert "stop" not in [call for config in awake for call in calls(config)]


async def test_a_connector_that_does_not_wake_up_is_failed(tmp_path: Path) -> None:
    """A connector that cannot wake up fails its request, and the trace has the reason."""
    config = idle_source("c", tmp_path, refuse=str(tmp_path / "refuse"), stop="raise")
    async with children_world(agent_keys=AgentKeys()) as w:
        await run(w, config)
        # It sleeps although its `stop` failed, as a connector becomes STOPPED then.
        await sleep(w, {"c"})
        (tmp_path / "refuse").touch()
        with pytest.raises(AgentError, match="The connector is not running"):
            await w.generate(config)
        await w.connector_is("c", State.FAILED)
        assert "refused this time" in w.listener.connector_trace("c")
        await w.children.connectors.stop(["c"])
        assert w.listener.connector_states("c")[-1] is State.UNASSIGNED
