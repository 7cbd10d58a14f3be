"""Children with the worker's own host, for tests with real plugins."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pyconnect_agent.channel.requests import WorkerSettings
from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.children.launch import Launcher
from pyconnect_agent.children.logs import LogSettings
from pyconnect_agent.children.ports import ChildSettings, TaskConfigsGenerated
from pyconnect_agent.core.config.agent_keys import NO_AGENT_KEYS, AgentKeys
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.plugin_catalog import PluginDesc
from tests.support.agents.launchers import shared_launcher
from tests.support.eventually import eventually_async
from tests.support.fakes.children import MemoryOffsetStore, RecordingListener

STRING = "org.apache.kafka.connect.storage.StringConverter"


class ChildrenWorld:
    """One worker's children, what they reported, and their offset store."""

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
        task_id = ConnectorTaskId(config["name"], 0)
        self.children.tasks.start(task_id, config, generated.configs[0], target_state)
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
    """Start children; kill whatever is left of them."""
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
