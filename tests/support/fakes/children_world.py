"""Children of real fork servers, without a herder: their reports, and offsets in memory.

A test process keeps its fork servers, because starting one takes longer than most tests.
"""

import atexit
import selectors
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache

from pyconnect_agent.channel import Channel
from pyconnect_agent.channel.requests import RunTaskJob, WorkerSettings
from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.children.launch import DEFAULT_HOST, DEFAULT_PRELOAD, Launched, Launcher
from pyconnect_agent.children.logs import LogSettings
from pyconnect_agent.children.ports import ChildSettings, TaskConfigsGenerated
from pyconnect_agent.core.config.agent_keys import NO_AGENT_KEYS, AgentKeys
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State, TargetState
from pyconnect_agent.core.plugin_catalog import PluginDesc
from pyconnect_agent.core.reporting import Reported
from tests.support.eventually import eventually_async


@dataclass
class RecordingListener:
    """A `children.ports.ChildListener` that keeps the reports."""

    tasks: dict[ConnectorTaskId, list[Reported]] = field(default_factory=dict)
    connectors: dict[str, list[Reported]] = field(default_factory=dict)
    reconfigurations: list[str] = field(default_factory=list)
    topics: list[tuple[ConnectorTaskId, str]] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    expired_leases: int = 0
    starts_asked: list[tuple[ConnectorTaskId, int]] = field(default_factory=list)

    def reported(self, item: Instance, report: Reported) -> None:
        if isinstance(item, ConnectorTaskId):
            self.tasks.setdefault(item, []).append(report)
        else:
            self.connectors.setdefault(item, []).append(report)

    def task_reconfiguration_requested(self, connector: str) -> None:
        self.reconfigurations.append(connector)

    def task_start_asked(self, task_id: ConnectorTaskId, request_id: int) -> None:
        self.starts_asked.append((task_id, request_id))

    def topic_used(self, task_id: ConnectorTaskId, topic: str) -> None:
        self.topics.append((task_id, topic))

    def config_ttl_expired(self, connector: str) -> None:
        self.expired.append(connector)

    def lease_expired(self) -> None:
        self.expired_leases += 1

    def task_states(self, task_id: ConnectorTaskId) -> list[State]:
        """Return the states of one task in the order of their reports."""
        return [reported.state for reported in self.tasks.get(task_id, [])]

    def connector_states(self, connector: str) -> list[State]:
        """Return the states of one connector in the order of their reports."""
        return [reported.state for reported in self.connectors.get(connector, [])]

    def task_trace(self, task_id: ConnectorTaskId) -> str:
        """Return the trace of the task's last state, empty without one."""
        return self.tasks[task_id][-1].trace or ""

    def connector_trace(self, connector: str) -> str:
        """Return the trace of the connector's last state, empty without one."""
        return self.connectors[connector][-1].trace or ""


class MemoryOffsetStore:
    """A `stores.ports.OffsetStore` in memory; reads and writes raise `failure` if it is set."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.failure: Exception | None = None

    def start(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        if self.failure is not None:
            raise self.failure
        return {key: self.entries[key] for key in keys if key in self.entries}

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        if self.failure is not None:
            raise self.failure
        for key, value in entries.items():
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = value

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        return {key: (key,) if key in self.entries else () for key in keys}

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        return dict(self.entries)


END_S = 30.0
SCRIPTED_HOST = "tests.support.fakes.child_host:run"


@cache
def shared_launcher(
    host: str = DEFAULT_HOST, preload: tuple[str, ...] = DEFAULT_PRELOAD
) -> Launcher:
    """Return the launcher of this host, whose fork server ends with this process."""
    launcher = Launcher(host=host, preload=preload)
    atexit.register(launcher.close)
    return launcher


def scripted_launcher() -> Launcher:
    """Return a launcher whose children run `tests.support.fakes.child_host`."""
    return shared_launcher(SCRIPTED_HOST, ("tests.support.fakes.child_host",))


def launch(launcher: Launcher, act: str) -> Launched:
    """Start a scripted task; see `tests.support.fakes.child_host`."""
    launched = launcher.launch()
    Channel(launched.connection).send(
        RunTaskJob(
            worker=WorkerSettings(properties={}),
            task_id=ConnectorTaskId("c", 0),
            connector_config={"name": "c"},
            task_config={"act": act},
            target_state=TargetState.STARTED,
        )
    )
    return launched


def has_ended(launched: Launched) -> bool:
    """Wait for the end of a child."""
    with selectors.DefaultSelector() as selector:
        selector.register(launched.sentinel, selectors.EVENT_READ)
        return bool(selector.select(END_S))


def exit_code(launched: Launched) -> int | None:
    """Wait for the end of a child; return its exit code."""
    assert has_ended(launched)
    code = launched.exit_code()
    launched.close()
    launched.connection.close()
    return code


STRING = "org.apache.kafka.connect.storage.StringConverter"


class ChildrenWorld:
    """One worker's children, their reports, and their offset store."""

    def __init__(
        self,
        properties: Mapping[str, str],
        launcher: Launcher,
        *,
        graceful_ms: int,
        lease_ms: int | None,
        logs: LogSettings,
        plugins: tuple[PluginDesc, ...],
        agent_keys: AgentKeys,
    ) -> None:
        self.store = MemoryOffsetStore()
        self.listener = RecordingListener()
        self.children = ChildProcesses(
            ChildSettings(
                worker=WorkerSettings(
                    properties={
                        "bootstrap.servers": "127.0.0.1:1",
                        "key.converter": STRING,
                        "value.converter": STRING,
                        **properties,
                    },
                    plugins=plugins,
                ),
                task_shutdown_graceful_timeout_ms=graceful_ms,
                lease_ms=lease_ms,
                logs=logs,
                agent_keys=agent_keys,
            ),
            self.store,
            launcher=launcher,
        )
        self.children.connect(self.listener)

    def start_connector(
        self, config: Mapping[str, str], target_state: TargetState = TargetState.STARTED
    ) -> None:
        self.children.connectors.start(config["name"], config, target_state)

    async def connector_is(self, name: str, state: State, timeout_s: float = 60) -> None:
        await eventually_async(
            lambda: self.listener.connector_states(name)[-1:] == [state],
            timeout_s,
            describe=lambda: f"{state} of {self.listener.connectors}",
        )

    async def task_is(self, task_id: ConnectorTaskId, state: State, timeout_s: float = 60) -> None:
        await eventually_async(
            lambda: self.listener.task_states(task_id)[-1:] == [state],
            timeout_s,
            describe=lambda: f"{state} of {self.listener.tasks}",
        )

    async def run_task(
        self, config: Mapping[str, str], target_state: TargetState = TargetState.STARTED
    ) -> ConnectorTaskId:
        """Start connector and first task; return when the connector runs."""
        self.start_connector(config)
        await self.connector_is(config["name"], State.RUNNING)
        generated = await self.generate(config)
        return self.start_task(config, target_state, generated.configs[0])

    def start_task(
        self,
        config: Mapping[str, str],
        target_state: TargetState = TargetState.STARTED,
        task_config: Mapping[str, str] | None = None,
    ) -> ConnectorTaskId:
        """Start the first task without its connector."""
        task_id = ConnectorTaskId(config["name"], 0)
        self.children.tasks.start(task_id, config, task_config or config, target_state)
        return task_id

    async def running_task(self, config: Mapping[str, str]) -> ConnectorTaskId:
        """Start the first task without its connector; return when it runs."""
        task_id = self.start_task(config)
        await self.task_is(task_id, State.RUNNING)
        return task_id

    async def generate(self, config: Mapping[str, str]) -> TaskConfigsGenerated:
        return await self.children.connectors.generate_task_configs(config["name"], config, None)

    def pid(self, task_id: ConnectorTaskId) -> int:
        pid = self.children.tasks.details()[task_id].child.pid
        assert pid is not None
        return pid


@asynccontextmanager
async def children_world(
    properties: Mapping[str, str] | None = None,
    *,
    graceful_ms: int = 60_000,
    lease_ms: int | None = None,
    launcher: Launcher | None = None,
    logs: LogSettings | None = None,
    plugins: tuple[PluginDesc, ...] = (),
    agent_keys: AgentKeys = NO_AGENT_KEYS,
) -> AsyncIterator[ChildrenWorld]:
    """Start children; kill those that are left at the end."""
    world = ChildrenWorld(
        properties or {},
        launcher or shared_launcher(),
        graceful_ms=graceful_ms,
        lease_ms=lease_ms,
        logs=logs or LogSettings(),
        plugins=plugins,
        agent_keys=agent_keys,
    )
    await world.children.start()
    try:
        yield world
    finally:
        await world.children.stop(hurry=True)
