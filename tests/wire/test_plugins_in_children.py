"""Plugins that raise, hang or exit, in the worker's own child processes; no Kafka."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyconnect_agent.core.errors import (
    AgentError,
    BadRequestError,
    InternalError,
    NotFoundError,
    RequestTimedOutError,
)
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.bad_plugins import BAD_SINK, BAD_SOURCE
from tests.support.children_world import children_world, run
from tests.support.eventually import eventually_async

pytestmark = pytest.mark.wire

T0 = ConnectorTaskId("c", 0)


def source(**settings: str) -> Mapping[str, str]:
    config = {"name": "c", "connector.class": BAD_SOURCE, "tasks.max": "1"}
    return config | {name.replace("_", "."): value for name, value in settings.items()}


def test_a_connector_that_raises_in_start_is_failed_with_its_causes() -> None:
    """The trace begins with the error and goes on with what caused it."""

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector(source(start="connect-exception"))
            await w.connector_is("c", State.FAILED)
            trace = w.listener.connector_trace("c")
            assert trace.startswith("pyconnect_api.errors.ConnectException: bad config\n")
            assert "Caused by: OSError: disk on fire" in trace
            assert w.listener.connectors["c"][-1].version == "0.9"

    run(scenario)


@pytest.mark.parametrize(
    ("how", "text"),
    [("exit", "connector process exited with code 7"), ("abort", "killed by signal 6 (SIGABRT)")],
)
def test_a_connector_that_ends_its_process_is_failed(how: str, text: str) -> None:
    """os._exit and a crash in native code read alike."""

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector(source(start=how))
            await w.connector_is("c", State.FAILED)
            assert text in w.listener.connector_trace("c")

    run(scenario)


def test_sys_exit_in_a_connector_is_a_failure_like_any_other() -> None:
    """The process stays, so the connector can still be stopped in order."""

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector(source(start="sys-exit"))
            await w.connector_is("c", State.FAILED)
            assert "SystemExit: 9" in w.listener.connector_trace("c")
            await w.children.stop_connectors(["c"])
            assert w.listener.connector_states("c") == [State.FAILED, State.UNASSIGNED]

    run(scenario)


def test_a_connector_that_hangs_in_start_is_killed_when_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It reports nothing but UNASSIGNED, which the supervisor says for it."""
    monkeypatch.setattr("pyconnect_agent.supervise.children.CONNECTOR_GRACEFUL_MS", 300)

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector(source(start="hang"))
            await w.children.stop_connectors(["c"])
            assert w.listener.connector_states("c") == [State.UNASSIGNED]
            assert w.children.running_connectors() == frozenset()

    run(scenario)


def test_a_connector_pauses_resumes_and_stops() -> None:
    """Each target state is reached on one instance, whose process stays."""

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector(source(), TargetState.PAUSED)
            await w.connector_is("c", State.PAUSED)
            w.children.set_connector_target_state("c", TargetState.STARTED)
            await w.connector_is("c", State.RUNNING)
            w.children.set_connector_target_state("c", TargetState.STOPPED)
            await w.connector_is("c", State.STOPPED)
            await w.children.stop_connectors(["c"])
            assert w.listener.connector_states("c") == [
                State.PAUSED,
                State.RUNNING,
                State.STOPPED,
                State.UNASSIGNED,
            ]

    run(scenario)


def test_a_connector_that_was_stopped_gives_its_process_back() -> None:
    """A stopped connector costs no process; resuming it starts another instance."""

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector(source(), TargetState.STARTED)
            await w.connector_is("c", State.RUNNING)
            w.children.set_connector_target_state("c", TargetState.STOPPED)
            await w.connector_is("c", State.STOPPED)
            await eventually_async(lambda: w.children._connectors.children() == ())
            assert w.children.running_connectors() == {"c"}
            w.children.set_connector_target_state("c", TargetState.STARTED)
            await w.connector_is("c", State.RUNNING)
            assert len(w.children._connectors.children()) == 1
            w.children.set_connector_target_state("c", TargetState.STOPPED)
            w.children.set_connector_target_state("c", TargetState.STARTED)
            await w.connector_is("c", State.RUNNING)
            assert len((await w.generate(source())).configs) == 1

    run(scenario)


def test_a_connector_that_fails_to_stop_is_failed_by_a_pause_and_stopped_by_a_stop() -> None:
    """Kafka's difference between the two."""

    async def scenario() -> None:
        for target_state, state in (
            (TargetState.PAUSED, State.FAILED),
            (TargetState.STOPPED, State.STOPPED),
        ):
            async with children_world() as w:
                w.start_connector(source(stop="raise"))
                await w.connector_is("c", State.RUNNING)
                w.children.set_connector_target_state("c", target_state)
                await w.connector_is("c", state)

    run(scenario)


def test_a_connector_can_fail_itself_and_ask_for_new_tasks() -> None:
    """Both calls of its context reach the listener."""

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector(source(report="source is gone", reconfigure="yes"))
            await w.connector_is("c", State.FAILED)
            assert "source is gone" in w.listener.connector_trace("c")
            assert w.listener.reconfigurations == ["c"]

    run(scenario)


def test_task_configs_are_completed_and_keep_references(tmp_path: Path) -> None:
    """`task.class` is added; a resolved secret never leaves the child."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=sesame-open\n")
    properties = {
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
    }

    async def scenario() -> None:
        async with children_world(properties) as w:
            config = source(password=f"${{file:{secrets}:password}}")
            w.start_connector(config)
            await w.connector_is("c", State.RUNNING)
            generated = await w.generate(config)
            assert generated.configs == (
                {
                    **config,
                    "number": "0",
                    "task.class": "tests.support.bad_plugins.BadSourceTask",
                },
            )
            assert generated.connector_config_changed is True
            again = await w.children.generate_task_configs("c", config, config)
            assert again.connector_config_changed is False

    run(scenario)


def test_a_secret_does_not_appear_in_a_trace(tmp_path: Path) -> None:
    """The reference stands where the value was quoted."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=sesame-open\n")
    properties = {
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
    }

    async def scenario() -> None:
        async with children_world(properties) as w:
            w.start_connector(source(report=f"${{file:{secrets}:password}}"))
            await w.connector_is("c", State.FAILED)
            trace = w.listener.connector_trace("c")
            assert "sesame-open" not in trace
            assert "${file:" in trace

    run(scenario)


def test_too_many_tasks_fail_the_connector_unless_allowed() -> None:
    """`tasks.max.enforce=false` makes it a warning."""

    async def scenario() -> None:
        async with children_world() as w:
            config = source(made="3", tasks_max="2")
            w.start_connector(config)
            await w.connector_is("c", State.RUNNING)
            with pytest.raises(AgentError, match="has generated 3 tasks, which is greater than 2"):
                await w.generate(config)
            await w.connector_is("c", State.FAILED)
        async with children_world() as w:
            config = source(made="3", tasks_max="2", tasks_max_enforce="false")
            w.start_connector(config)
            await w.connector_is("c", State.RUNNING)
            assert len((await w.generate(config)).configs) == 3

    run(scenario)


def test_tasks_of_a_set_that_is_too_large_do_not_start() -> None:
    """It was made before the limit was lowered; what is allowed starts all the same."""

    async def scenario() -> None:
        async with children_world() as w:
            for config, state in (
                (source(tasks_max="2"), State.FAILED),
                (source(tasks_max="2", tasks_max_enforce="false"), State.RUNNING),
            ):
                w.children.start_task(T0, config, config, TargetState.STARTED, task_count=3)
                await w.task_is(T0, state)
                await w.children.stop_tasks([T0])
                await eventually_async(lambda: T0 not in w.children.running_tasks(), 20)
            (failed,) = [r for r in w.listener.tasks[T0] if r.state is State.FAILED]
            text = "The connector c has generated 3 tasks, which is greater than 2"
            assert text in (failed.trace or "")

    run(scenario)


def test_an_unknown_connector_class_fails_with_connects_text() -> None:
    """The trace lists what there is."""

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector({"name": "c", "connector.class": "NoSuchThing"})
            await w.connector_is("c", State.FAILED)
            trace = w.listener.connector_trace("c")
            assert "Failed to find any class that implements Connector" in trace
            assert "NoSuchThing" in trace

    run(scenario)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
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
    ],
)
def test_a_task_that_fails_says_why(settings: dict[str, str], text: str) -> None:
    """Whatever the way, the status has a trace."""

    async def scenario() -> None:
        async with children_world() as w:
            task_id = await w.run_task(source(**settings))
            await w.task_is(task_id, State.FAILED)
            assert text in w.listener.task_trace(task_id)

    run(scenario)


@pytest.mark.parametrize("policy", ["None", "Principal", "Allowlist"])
def test_a_task_does_not_start_with_overrides_that_the_worker_denies(policy: str) -> None:
    """Although its config was stored: the policy may have become stricter since."""

    async def scenario() -> None:
        properties = {"connector.client.config.override.policy": policy}
        async with children_world(properties) as w:
            task_id = await w.run_task(source(producer_override_linger_ms="5"))
            await w.task_is(task_id, State.FAILED)
            text = f"The '{policy}' policy does not allow 'linger.ms' to be overridden"
            assert text in w.listener.task_trace(task_id)

    run(scenario)


@pytest.mark.parametrize(
    ("class_name", "text"),
    [
        ("pyconnect_api.Struct", "Failed to find any class that implements Connector"),
        ("JsonConverter", "Failed to find any class that implements Connector"),
        ("tests.support.no_such.Source", "Failed to find any class that implements Connector"),
        ("tests.support.bad_plugins.UnconstructibleSource", "OSError: no licence"),
        ("tests.support.bad_plugins.BadSourceTask", "any class that implements Connector"),
    ],
)
def test_a_class_that_makes_no_connector_is_told_in_the_trace(class_name: str, text: str) -> None:
    """Of the connector, and of a task of its that is started all the same."""

    async def scenario() -> None:
        async with children_world() as w:
            config = source(connector_class=class_name)
            w.start_connector(config)
            await w.connector_is("c", State.FAILED)
            assert text in w.listener.connector_trace("c")
            w.children.start_task(T0, config, config, TargetState.STARTED)
            await w.task_is(T0, State.FAILED)
            assert text in w.listener.task_trace(T0)

    run(scenario)


@pytest.mark.parametrize(
    ("class_name", "text"),
    [
        ("ConnectorForTaskSource", "ConnectorForTaskSource.task_class() returned <class"),
        ("AbstractTaskSource", "Could not construct tests.support.bad_plugins.AbstractTask"),
    ],
)
def test_a_class_that_makes_no_task_is_told_in_its_trace(class_name: str, text: str) -> None:
    """With the connector that named it."""

    async def scenario() -> None:
        async with children_world() as w:
            config = source(connector_class=f"tests.support.bad_plugins.{class_name}")
            w.children.start_task(T0, config, config, TargetState.STARTED)
            await w.task_is(T0, State.FAILED)
            assert text in w.listener.task_trace(T0)

    run(scenario)


def test_a_paused_task_is_not_started_until_it_is_resumed() -> None:
    """A failing start shows only then."""

    async def scenario() -> None:
        async with children_world() as w:
            task_id = await w.run_task(source(task_start="raise"), TargetState.PAUSED)
            await w.task_is(task_id, State.PAUSED)
            w.children.set_task_target_state(task_id, TargetState.STARTED)
            await w.task_is(task_id, State.FAILED)

    run(scenario)


def test_a_paused_task_can_be_stopped() -> None:
    """It ends without ever having been started."""

    async def scenario() -> None:
        async with children_world() as w:
            task_id = await w.run_task(source(task_start="raise"), TargetState.PAUSED)
            await w.task_is(task_id, State.PAUSED)
            await w.children.stop_tasks([task_id])
            assert w.listener.task_states(task_id) == [State.PAUSED, State.UNASSIGNED]

    run(scenario)


def test_a_running_task_pauses_and_resumes() -> None:
    """RUNNING, PAUSED, RUNNING."""

    async def scenario() -> None:
        async with children_world() as w:
            task_id = await w.run_task(source())
            await w.task_is(task_id, State.RUNNING)
            w.children.set_task_target_state(task_id, TargetState.PAUSED)
            await w.task_is(task_id, State.PAUSED)
            w.children.set_task_target_state(task_id, TargetState.STARTED)
            await w.task_is(task_id, State.RUNNING)

    run(scenario)


def test_a_failure_while_stopping_ends_unassigned() -> None:
    """Whoever is being stopped does not fail."""

    async def scenario() -> None:
        async with children_world() as w:
            task_id = await w.run_task(source(task_stop="raise"))
            await w.task_is(task_id, State.RUNNING)
            await w.children.stop_tasks([task_id])
            assert w.listener.task_states(task_id) == [State.RUNNING, State.UNASSIGNED]

    run(scenario)


def test_a_hanging_poll_is_killed_and_says_nothing_more() -> None:
    """The graceful time is for all tasks together."""

    async def scenario() -> None:
        async with children_world(graceful_ms=200) as w:
            task_id = await w.run_task(source(poll="hang"))
            await w.task_is(task_id, State.RUNNING)

            async def hangs() -> bool:
                # RUNNING is reported before the first poll.
                return "in misbehave" in await w.children.task_stacks(task_id)

            await eventually_async(hangs)
            await w.children.stop_tasks([task_id])
            assert w.listener.task_states(task_id) == [State.RUNNING]
            assert w.children.running_tasks() == frozenset()

    run(scenario)


def test_sigterm_alone_does_not_end_a_task() -> None:
    """Service managers send it to every process; the supervisor stops its children itself."""

    async def scenario() -> None:
        async with children_world() as w:
            task_id = await w.run_task(source())
            await w.task_is(task_id, State.RUNNING)
            os.kill(w.pid(task_id), signal.SIGTERM)
            w.children.set_task_target_state(task_id, TargetState.PAUSED)
            await w.task_is(task_id, State.PAUSED)

    run(scenario)


def test_a_child_without_a_lease_ends_itself() -> None:
    """A supervisor that hangs loses its children after the lease, as one that dies does at once."""

    async def scenario() -> None:
        async with children_world(lease_ms=600) as w:
            task_id = await w.run_task(source())
            await w.task_is(task_id, State.RUNNING)
            leases = w.children._leases
            assert leases is not None
            leases.cancel()
            await w.task_is(task_id, State.UNASSIGNED)
            await w.connector_is("c", State.UNASSIGNED)
            assert w.listener.expired_leases == 2

    run(scenario)


def test_renewed_leases_keep_a_child_alive() -> None:
    """Several terms pass, and the task still answers."""

    async def scenario() -> None:
        async with children_world(lease_ms=300) as w:
            task_id = await w.run_task(source())
            await w.task_is(task_id, State.RUNNING)
            pid = w.pid(task_id)
            loop = asyncio.get_running_loop()
            end = loop.time() + 1.2
            while loop.time() < end:
                w.children.set_task_target_state(task_id, TargetState.PAUSED)
                await w.task_is(task_id, State.PAUSED)
                w.children.set_task_target_state(task_id, TargetState.STARTED)
                await w.task_is(task_id, State.RUNNING)
            assert w.pid(task_id) == pid

    run(scenario)


def test_a_sink_needs_topics() -> None:
    """The connector fails with Connect's text."""

    async def scenario() -> None:
        async with children_world() as w:
            w.start_connector({"name": "c", "connector.class": BAD_SINK})
            await w.connector_is("c", State.FAILED)
            trace = w.listener.connector_trace("c")
            assert "Must configure one of topics or topics.regex" in trace

    run(scenario)


def test_validation_runs_plugin_code_in_a_child() -> None:
    """An answer, an error of the plugin, a death and a hang: none harms the supervisor."""

    async def scenario() -> None:
        async with children_world() as w:
            infos = await w.children.validate({**source(), "tasks.max": "x"}, 20_000)
            errors = {c.value.name: c.value.errors for c in infos.configs if c.value is not None}
            assert any("Not a number of type INT" in text for text in errors["tasks.max"])
            with pytest.raises(InternalError, match="ValueError: no good"):
                await w.children.validate(source(validate="raise"), 20_000)
            overridden = {**source(), "producer.override.batch.size": "x"}
            with pytest.raises(InternalError, match=r"^Invalid value x for") as raised:
                await w.children.validate(overridden, 20_000)
            assert raised.value.cause_class == "org.apache.kafka.common.config.ConfigException"
            with pytest.raises(InternalError, match="exited with code 7"):
                await w.children.validate(source(validate="exit"), 20_000)
            with pytest.raises(RequestTimedOutError):
                await w.children.validate(source(validate="hang"), 500)
            with pytest.raises(BadRequestError, match="contains no connector type"):
                await w.children.validate({"name": "c"}, 20_000)

    run(scenario)


def test_plugins_are_described_by_name() -> None:
    """Own keys come first; unknown names are not found."""

    async def scenario() -> None:
        async with children_world() as w:
            keys = await w.children.plugin_config("FileStreamSource", None)
            assert [key["name"] for key in keys][:3] == ["file", "topic", "batch.size"]
            with pytest.raises(NotFoundError, match=r"Unknown plugin Nothing\."):
                await w.children.plugin_config("Nothing", None)

    run(scenario)
