"""A herder in memory, for the tests of the REST layer.

It keeps Apache's order of checks and texts where no group is needed, holds requests back on
demand, and fails as told. It does not model the real herder's timing: changes are visible at once.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyconnect_agent.core.config.config_infos import ConfigInfo, ConfigInfos, ConfigValueInfo
from pyconnect_agent.core.errors import (
    AlreadyExistsError,
    BadRequestError,
    NotFoundError,
    RequestTimedOutError,
)
from pyconnect_agent.core.herder import requests
from pyconnect_agent.core.herder.session_keys import signature_headers, verify_request
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig, SessionKey
from pyconnect_agent.core.log_lines import initial_loggers, set_level
from pyconnect_agent.core.offsets.connector_offsets import ConnectorOffset, success_text
from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION
from pyconnect_agent.core.reporting import (
    ConnectorInfo,
    ConnectorStateInfo,
    LoggerLevel,
    PluginInfo,
    ServerInfo,
    Stage,
    Status,
    TaskInfo,
    timed_out_text,
)
from pyconnect_agent.worker.lifecycle import server_info

WORKER_ID = "127.0.0.1:8083"
SOURCE_CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK_CLASS = "org.apache.kafka.connect.file.FileStreamSinkConnector"
PLUGINS = (
    PluginInfo(class_name=SINK_CLASS, type="sink", version="4.3.1"),
    PluginInfo(class_name=SOURCE_CLASS, type="source", version="4.3.1"),
    PluginInfo(
        class_name="org.apache.kafka.connect.storage.StringConverter",
        type="converter",
        version=None,
    ),
)
_CLASSES = {
    name: (kind, full_name)
    for full_name, kind in ((SOURCE_CLASS, "source"), (SINK_CLASS, "sink"))
    for name in (
        full_name,
        full_name.rpartition(".")[2],
        full_name.rpartition(".")[2].removesuffix("Connector"),
    )
}


class FakeHerder:
    """A `pyconnect_agent.herder.port.Herder` in memory.

    `failures`: the error for a kind of request. `held`: kinds that are never answered.
    `submitted`: every request, in order.
    """

    def __init__(self, *, standalone: bool = False) -> None:
        self.standalone = standalone
        self.ready = True
        self.stage: Stage | None = None
        self.configs: dict[str, ConnectorConfig] = {}
        self.target_states: dict[str, TargetState] = {}
        self.task_counts: dict[str, int] = {}
        self.without_status: set[str] = set()
        self.task_failures: dict[ConnectorTaskId, str] = {}
        self.topics: dict[str, tuple[str, ...]] = {}
        self.offsets: tuple[ConnectorOffset, ...] = (
            ConnectorOffset(partition={"filename": "a"}, offset={"position": 30}),
        )
        self.plugin_keys = {"topic": "STRING"}
        self.failures: dict[type, Exception] = {}
        self.held: set[type] = set()
        self.submitted: list[requests.Request] = []
        self.timeouts_ms: list[int] = []
        self.cluster_levels: list[tuple[str, str]] = []
        self.session_key: SessionKey | None = None
        self.signed_requests = True
        self.now_ms = 1_700_000_000_000
        self._loggers: Mapping[str, LoggerLevel] = initial_loggers({})

    async def submit(self, request: requests.Request, *, timeout_ms: int) -> Any:
        self.submitted.append(request)
        self.timeouts_ms.append(timeout_ms)
        if type(request) in self.held:
            raise RequestTimedOutError(timed_out_text(self.stage))
        # A real answer never comes within the same step of the loop.
        await asyncio.sleep(0)
        if failure := self.failures.get(type(request)):
            raise failure
        return self._answer(request)

    async def validate(self, config: Mapping[str, str | None], *, timeout_ms: int) -> ConfigInfos:
        self.timeouts_ms.append(timeout_ms)
        if ConfigInfos in self.held:
            raise RequestTimedOutError(timed_out_text(self.stage))
        return self._validated(config)

    def _validated(self, config: Mapping[str, str | None]) -> ConfigInfos:
        connector_class = config.get("connector.class")
        if connector_class is None:
            members = ", ".join(
                f"{key}={'null' if value is None else value}" for key, value in config.items()
            )
            raise BadRequestError(f"Connector config {{{members}}} contains no connector type")
        if connector_class not in _CLASSES:
            raise BadRequestError(
                "Failed to find any class that implements Connector and which name matches "
                f"{connector_class}, available connectors are: {SINK_CLASS}, {SOURCE_CLASS}"
            )
        required = {"source": "topic", "sink": "topics"}[_CLASSES[connector_class][0]]
        return _infos(connector_class, config, ("name", required))

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[dict[str, Any], ...]:
        if plugin not in _CLASSES:
            raise NotFoundError(f"Unknown plugin {plugin}.")
        if version not in (None, "4.3.1"):
            raise BadRequestError(
                f"Plugin {_CLASSES[plugin][1]} not found that matches the version range "
                f"[{version},{version}], available versions: [4.3.1]"
            )
        return tuple({"name": name, "type": kind} for name, kind in self.plugin_keys.items())

    def server_info(self) -> ServerInfo:
        return server_info(CONNECT_VERSION, "cluster")

    def connectors(self) -> tuple[str, ...]:
        return tuple(self.configs)

    def connector_configs(self) -> Mapping[str, ConnectorConfig]:
        return dict(self.configs)

    def connector_status(self, connector: str) -> ConnectorStateInfo | None:
        if connector not in self.configs or connector in self.without_status:
            return None
        return ConnectorStateInfo(
            name=connector,
            connector=_running(),
            tasks=tuple(
                (number, self._task_status(ConnectorTaskId(connector, number)))
                for number in range(self._task_count(connector))
            ),
            type=self._type(connector),
        )

    def task_status(self, connector: str, task: int) -> Status | None:
        info = self.connector_status(connector)
        return dict(info.tasks).get(task) if info else None

    async def connector_info(self, connector: str) -> dict[str, Any] | None:
        return self._info(connector).to_json() if connector in self.configs else None

    def target_state(self, connector: str) -> TargetState | None:
        return self.target_states.get(connector)

    async def connector_offsets(
        self, connector: str, *, timeout_ms: int
    ) -> tuple[ConnectorOffset, ...]:
        await self.submit(requests.GetConnectorConfig(connector=connector), timeout_ms=timeout_ms)
        if ConnectorOffset in self.failures:
            raise self.failures[ConnectorOffset]
        return self.offsets

    def active_topics(self, connector: str) -> tuple[str, ...]:
        return self.topics.get(connector, ())

    async def reset_active_topics(self, connector: str) -> None:
        self.topics.pop(connector, None)

    def plugins(self, *, connectors_only: bool) -> tuple[PluginInfo, ...]:
        return tuple(
            plugin for plugin in PLUGINS if not connectors_only or plugin.type in ("source", "sink")
        )

    def loggers(self) -> Mapping[str, LoggerLevel]:
        return self._loggers

    async def set_logger_level(self, namespace: str, level: str) -> tuple[str, ...]:
        change = set_level(self._loggers, namespace, level, self.now_ms)
        self._loggers = change.loggers
        return change.changed

    async def set_cluster_logger_level(self, namespace: str, level: str) -> None:
        self.cluster_levels.append((namespace, level))

    def verify_internal_request(self, body: bytes, headers: Mapping[str, str]) -> None:
        if self.signed_requests:
            self.verify_signature(body, headers)

    def sign(self, content: bytes) -> dict[str, str]:
        if self.session_key is None:
            return {}
        key, algorithm = self.session_key, "HmacSHA256"
        return signature_headers(content, session_key=key, algorithm=algorithm)

    def verify_signature(self, content: bytes, headers: Mapping[str, str]) -> None:
        verify_request(
            content, headers, session_key=self.session_key, permitted_algorithms=("HmacSHA256",)
        )

    def _answer(self, request: requests.Request) -> Any:
        match request:
            case requests.Probe():
                return None
            case requests.GetConnectorInfo(connector=connector):
                self._require(connector, "Connector {} not found")
                return self._info(connector)
            case requests.GetConnectorConfig(connector=connector):
                self._require(connector, "Connector {} not found")
                return self.configs[connector]
            case requests.GetTaskConfigs(connector=connector):
                self._require(connector, "Connector {} not found")
                return tuple(
                    TaskInfo(id=task_id, config={**self.configs[connector], "task.class": "T"})
                    for task_id in self._info(connector).tasks
                )
            case requests.PutConnectorConfig():
                return self._put(request)
            case requests.PatchConnectorConfig(connector=connector, patch=patch):
                self._require(connector, "Connector {} not found")
                merged = {**self.configs[connector], **patch}
                config = {key: value for key, value in merged.items() if value is not None}
                return self._put(requests.PutConnectorConfig(connector=connector, config=config))
            case requests.DeleteConnector(connector=connector):
                self._require(connector, "Connector {} not found")
                del self.configs[connector]
                return None
            case _:
                return self._change(request)

    def _change(self, request: requests.Request) -> Any:
        match request:
            case requests.SetTargetState(connector=connector, target_state=state):
                self._require(connector, "Unknown connector {}")
                self.target_states[connector] = state
                return None
            case requests.StopConnector(connector=connector):
                self._require(connector, "Unknown connector {}")
                self.target_states[connector] = TargetState.STOPPED
                self.task_counts[connector] = 0
                return None
            case requests.RestartConnector(connector=connector):
                self._require(connector, "Unknown connector: {}")
                return None
            case requests.RestartConnectorAndTasks(connector=connector):
                self._require(connector, "Unknown connector: {}")
                return self.connector_status(connector)
            case requests.RestartTask(task_id=task_id):
                self._require(task_id.connector, "Unknown connector: {}")
                if task_id.task >= self._task_count(task_id.connector):
                    raise NotFoundError(f"Unknown task: {task_id}")
                return None
            case requests.SubmitTaskConfigs(connector=connector, configs=configs):
                self._require(connector, "Connector {} not found")
                self.task_counts[connector] = len(configs)
                return None
            case requests.FenceZombies(connector=connector):
                self._require(connector, "Connector {} not found")
                return None
            case requests.ChangeOffsets(connector=connector, offsets=offsets):
                self._require(connector, "Connector {} not found")
                return success_text(is_reset=offsets is None, complete=True)

    def _put(self, request: requests.PutConnectorConfig) -> requests.PutResult:
        if text := self._validated(request.config).error_text():
            raise BadRequestError(text)
        exists = request.connector in self.configs
        if exists and not request.allow_replace:
            raise AlreadyExistsError(f"Connector {request.connector} already exists")
        self.configs[request.connector] = dict(request.config)
        if request.initial_state is not None:
            self.target_states[request.connector] = request.initial_state
        return requests.PutResult(created=not exists, info=self._info(request.connector))

    def _require(self, connector: str, message: str) -> None:
        if connector not in self.configs:
            raise NotFoundError(message.format(connector))

    def _info(self, connector: str) -> ConnectorInfo:
        return ConnectorInfo(
            name=connector,
            config=self.configs[connector],
            tasks=tuple(
                ConnectorTaskId(connector, number) for number in range(self._task_count(connector))
            ),
            type=self._type(connector),
        )

    def _task_status(self, task_id: ConnectorTaskId) -> Status:
        trace = self.task_failures.get(task_id)
        if trace is None:
            return _running()
        return replace(_running(), state=State.FAILED, trace=trace)

    def _task_count(self, connector: str) -> int:
        return self.task_counts.get(connector, 0)

    def _type(self, connector: str) -> str:
        kind, _ = _CLASSES.get(
            self.configs[connector].get("connector.class") or "", ("unknown", "")
        )
        return kind


def _running() -> Status:
    return Status(state=State.RUNNING, worker_id=WORKER_ID, generation=1, version="4.3.1")


def _infos(name: str, config: Mapping[str, str | None], required: tuple[str, ...]) -> ConfigInfos:
    infos = []
    for key in required:
        value = config.get(key)
        errors = (
            ()
            if value
            else (f'Missing required configuration "{key}" which has no default value.',)
        )
        infos.append(
            ConfigInfo(definition=None, value=ConfigValueInfo(name=key, value=value, errors=errors))
        )
    count = sum(len(info.value.errors) for info in infos if info.value)
    return ConfigInfos(name=name, error_count=count, groups=("Common",), configs=tuple(infos))
