"""Children without processes, which do everything at once, or only when a test allows it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pyconnect_agent.children.ports import ChildListener, TaskConfigsGenerated
from pyconnect_agent.core.config.config_infos import ConfigInfos
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.reporting import Reported

_STATES = {
    TargetState.STARTED: State.RUNNING,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}


class _Running(dict[Any, ConnectorConfig]):
    """The configs of the running connectors or tasks."""

    def __init__(self, children: FakeChildren) -> None:
        self.children = children

    async def stop(self, items: Sequence[Any]) -> None:
        await self.children.may_stop.wait()
        for item in items:
            if self.pop(item, None) is not None:
                self.report(item, State.UNASSIGNED)

    def set_target_state(self, item: str | ConnectorTaskId, target_state: TargetState) -> None:
        self.report(item, _STATES[target_state])

    def report(self, item: str | ConnectorTaskId, state: State) -> None:
        assert self.children.listener is not None
        self.children.listener.reported(item, Reported(state=state, version="1"))


class FakeConnectors(_Running):
    def start(self, connector: str, config: ConnectorConfig, target_state: TargetState) -> None:
        if config.get("refuse"):
            raise AgentError("refused on purpose")
        self[connector] = config
        self.set_target_state(connector, target_state)

    async def generate_task_configs(
        self, connector: str, config: ConnectorConfig, applied_config: ConnectorConfig | None
    ) -> TaskConfigsGenerated:
        count = int(config.get("tasks") or 1)
        return TaskConfigsGenerated(
            configs=tuple({"n": str(n), "text": config.get("text")} for n in range(count)),
            connector_config_changed=config != applied_config,
        )


class FakeTasks(_Running):
    def start(
        self,
        task_id: ConnectorTaskId,
        connector_config: ConnectorConfig,
        task_config: ConnectorConfig,
        target_state: TargetState,
        *,
        task_count: int = 0,
    ) -> None:
        self[task_id] = task_config
        self.set_target_state(task_id, target_state)

    def answer_start(self, task_id: ConnectorTaskId, number: int, refusal: str | None) -> None:
        self.children.answers.append((task_id, number, refusal))


class FakeChildren:
    """A stand-in for `ChildProcesses`. `tasks`: per connector; stops wait for `may_stop`."""

    def __init__(self) -> None:
        self.listener: ChildListener | None = None
        self.connectors = FakeConnectors(self)
        self.tasks = FakeTasks(self)
        self.may_stop = asyncio.Event()
        self.may_stop.set()
        self.stopped: list[bool] = []
        self.answers: list[tuple[ConnectorTaskId, int, str | None]] = []
        self.levels: list[tuple[str, str]] = []
        self.fenced: list[tuple[str, tuple[str, ...]]] = []
        self.prepared: dict[str, bytes | None] = {}
        self.changed: list[tuple[str, bytes | None]] = []

    @property
    def jobs(self) -> FakeChildren:
        return self

    @property
    def offset_changes(self) -> FakeChildren:
        return self

    async def start(self) -> None: ...

    async def stop(self, *, hurry: bool = False) -> None:
        """Stop all work, and note whether the stop is in a hurry."""
        self.stopped.append(hurry)
        if hurry:
            self.may_stop.set()
        await self.tasks.stop(tuple(self.tasks))
        await self.connectors.stop(tuple(self.connectors))

    def set_logger_level(self, namespace: str, level: str) -> None:
        self.levels.append((namespace, level))

    async def fence_producers(
        self,
        connector: str,
        config: ConnectorConfig,
        transactional_ids: Sequence[str],
        timeout_ms: int,
        *,
        ids_if_permitted: Sequence[str] = (),
    ) -> None:
        self.fenced.append((connector, (*transactional_ids, *ids_if_permitted)))

    async def prepare(
        self, connector: str, config: ConnectorConfig, offsets: bytes | None, timeout_ms: int
    ) -> bool:
        self.prepared[connector] = offsets
        return True

    async def commit(self, connector: str) -> None:
        self.changed.append((connector, self.prepared.pop(connector)))

    def abandon(self, connector: str) -> None:
        self.prepared.pop(connector, None)

    async def validate(self, config: Mapping[str, str | None], timeout_ms: int) -> ConfigInfos:
        name = str(config.get("connector.class"))
        return ConfigInfos(name=name, error_count=0, groups=(), configs=())

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[dict[str, Any], ...]:
        return ()
