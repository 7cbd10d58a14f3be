"""The herder as a part of the worker: state, loop, effects, and the interface for its clients.

Kafka: DistributedHerder and StandaloneHerder as `Herder`s. Order of calls: `start` (stores, first
join), `run` (until it fails or is cancelled), `drain` (answer all requests, stop the children,
flush the statuses), `close`. All methods run on the event loop and do not block it.

Requests to the leader are signed if the group's protocol says so (KIP-507; Kafka: the follower's
half of DistributedHerder.publishConnectorTaskConfigs).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.children.ports import ChildListener
from pyconnect_agent.core.config.config_infos import ConfigInfos
from pyconnect_agent.core.errors import AgentError, RequestTimedOutError, ServiceUnavailableError
from pyconnect_agent.core.group_protocol import ProtocolVersion
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.requests import FenceZombies, GetConnectorConfig, Probe, Request
from pyconnect_agent.core.herder.requests.configs import connector_info
from pyconnect_agent.core.herder.requests.fencing import FENCING_TIMEOUT_MS
from pyconnect_agent.core.herder.session_keys import signature_headers, verify_request
from pyconnect_agent.core.herder.state import HerderSettings, HerderState
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, ConnectorConfig
from pyconnect_agent.core.internal_topics.configlog import ConfigChange
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.metric_values import DEFAULT_SAMPLING, Rebalances, Sampling
from pyconnect_agent.core.offsets.connector_offsets import ConnectorOffset
from pyconnect_agent.core.plugin_catalog import Catalog
from pyconnect_agent.core.reporting import (
    ConnectorStateInfo,
    LoggerLevel,
    PluginInfo,
    ServerInfo,
    Stage,
    Status,
    timed_out_text,
)
from pyconnect_agent.herder.connect_group import GroupPorts, LocalGroup
from pyconnect_agent.herder.connector_offsets import ConnectorOffsetReader
from pyconnect_agent.herder.loop import ChildEvents, HerderLoop, UnansweredRequests
from pyconnect_agent.herder.performer import (
    FLUSH_TIMEOUT_MS,
    Collaborators,
    EffectPerformer,
    Group,
    StatusView,
)
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.process.logging import RuntimeLevels
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.offset import OffsetStore
from pyconnect_agent.stores.status import StatusStore
from pyconnect_api.configdef import KeyInfo


class RequestSender(Protocol):
    """A client that sends a request, and raises a RequestError unless it succeeds."""

    async def send(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any: ...


LOG = logging.getLogger(__name__)

LEAVE_TIMEOUT_MS = 5_000
ALIVE_WITHIN_MS = 3_000
"""The herder counts as hanging after this time without a turn; an idle one turns once a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    config: ConfigStore
    status: StatusStore
    offset: OffsetStore


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderOptions:
    """The worker's settings for the herder.

    `worker_url` ends with a slash. `permitted_algorithms`: None if internal requests need no
    signature in any protocol of the group. `track_topics`: `topic.tracking.enable`. `make_group`
    None: a group of one. `sampling`: of the herder's metrics. `may_have_own_offsets_topic`: called
    with a source's raw config.
    """

    settings: HerderSettings
    worker_url: str
    server: ServerInfo
    track_topics: bool
    permitted_algorithms: tuple[str, ...] | None
    signature_algorithm: str = "HmacSHA256"
    make_group: Callable[[GroupPorts, WorkerClock], Group] | None = None
    sampling: Sampling = DEFAULT_SAMPLING
    may_have_own_offsets_topic: Callable[[ConnectorConfig], bool] = lambda _: False


class HerderService:
    """The `port.Herder` of a worker."""

    def __init__(
        self,
        options: HerderOptions,
        *,
        stores: Stores,
        children: ChildProcesses,
        catalog: Catalog,
        levels: RuntimeLevels,
        clock: WorkerClock,
        client: RequestSender,
    ) -> None:
        self._options = options
        self._stores = stores
        self._children = children
        self._catalog = catalog
        self._levels = levels
        self._clock = clock
        self._loop = HerderLoop(HerderState(settings=options.settings), clock, options.sampling)
        self._statuses = StatusView(stores.status, options.settings.connector_type)
        self._offset_reader = ConnectorOffsetReader(
            stores.offset, children, catalog, options.may_have_own_offsets_topic
        )
        self._unanswered = UnansweredRequests(self._loop.post, clock)
        self._open = asyncio.Event()
        self.child_listener: ChildListener = ChildEvents(
            self._loop.post, stores.status, clock, track_topics=options.track_topics
        )
        self._group = self._make_group()
        self._client = client
        self.performer = EffectPerformer(
            Collaborators(
                config_store=stores.config,
                status_store=stores.status,
                statuses=self._statuses,
                children=children,
                group=self._group,
                apply_logger_level=self._set_level,
                send_task_configs=self._send_task_configs,
                request_fencing=self._request_fencing,
            ),
            post=self._loop.post,
            reply=self._unanswered.replied,
            clock=clock,
            snapshot=lambda: self._loop.state.snapshot,
        )

    # The worker's side

    async def start(self) -> None:
        """Open the stores and read them to their ends.

        Raises WorkerConfigError, WorkerStartError or KafkaError.
        """
        self._loop.post(on.Initializing())

        def changed(snapshot: ConfigSnapshot, changes: tuple[ConfigChange, ...]) -> None:
            self._loop.post_threadsafe(on.ConfigAdvanced(snapshot=snapshot, changes=changes))

        await asyncio.gather(
            *(
                self.performer.in_thread(start)
                for start in (
                    self._stores.status.start,
                    self._stores.offset.start,
                    partial(self._stores.config.start, changed),
                )
            )
        )
        self._group.begin_after(self._statuses.latest_generation())
        await self.performer.in_thread(self._group.start)
        self._loop.post(on.Started(snapshot=self._stores.config.snapshot()))

    def announce_ready(self) -> None:
        """Answer health probes from now on; a standalone worker creates its connectors first."""
        self._open.set()

    def confirmed_s(self) -> float | None:
        """Return the group's last confirmation: children may work for one session from then."""
        return self._group.confirmed_s()

    async def run(self) -> None:
        """Handle events until cancelled; HerderAbortedError when the worker cannot go on."""
        await self._loop.run(self.performer.perform)

    async def drain(self, *, hurry: asyncio.Event) -> None:
        """Answer every request and stop all work, within its limits or, with `hurry`, at once."""
        self._loop.post(on.Stopping())
        # This also answers probes that wait for a ready worker.
        self._open.set()
        stopping = asyncio.ensure_future(self._children.stop())
        hurried = asyncio.ensure_future(hurry.wait())
        await asyncio.wait({stopping, hurried}, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            await self._children.stop(hurry=True)
        hurried.cancel()
        await stopping
        try:
            flush = partial(self._stores.status.flush, 0 if hurry.is_set() else FLUSH_TIMEOUT_MS)
            await self.performer.in_thread(flush)
        except AgentError as error:
            LOG.warning("last statuses were not written", extra={"reason": error.message})

    async def close(self) -> None:
        """Leave the group and stop the stores; no request may follow."""
        self._unanswered.refuse()
        await self.performer.in_thread(partial(self._group.stop, LEAVE_TIMEOUT_MS))
        stops = (self._stores.status.stop, self._stores.config.stop, self._stores.offset.stop)
        results = await asyncio.gather(
            *(self.performer.in_thread(stop) for stop in stops), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                LOG.warning("store did not stop in order", extra={"reason": str(result)})
        await self.performer.close()
        self._unanswered.fail()

    # The clients' side: see port.Herder

    async def submit(self, request: Request, *, timeout_ms: int) -> Any:
        self._unanswered.require_open()
        if isinstance(request, Probe):
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._open.wait()
            except TimeoutError:
                raise RequestTimedOutError(timed_out_text(self.stage)) from None
        return await self._unanswered.submit(request, timeout_ms)

    async def validate(self, config: Mapping[str, str | None], *, timeout_ms: int) -> ConfigInfos:
        try:
            return await self._children.jobs.validate(config, timeout_ms)
        except RequestTimedOutError as error:
            raise RequestTimedOutError(timed_out_text(self.stage)) from error

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[KeyInfo, ...]:
        return await self._children.jobs.plugin_config(plugin, version)

    @property
    def ready(self) -> bool:
        return self._loop.state.ready and self._open.is_set()

    @property
    def stage(self) -> Stage | None:
        return self._loop.state.stage

    @property
    def standalone(self) -> bool:
        return self._options.settings.standalone

    @property
    def snapshot(self) -> ConfigSnapshot:
        """The herder's latest view of the config topic."""
        return self._loop.state.snapshot

    @property
    def state(self) -> HerderState:
        """The herder's state, for the admin interface."""
        return self._loop.state

    @property
    def rebalances(self) -> Rebalances:
        return self._loop.rebalances

    def request_drain(self, *, undrain: bool) -> None:
        """Release all work and leave the group, or join again; takes effect later."""
        self._loop.post(on.Undrain() if undrain else on.Drain())

    def server_info(self) -> ServerInfo:
        return self._options.server

    def connectors(self) -> tuple[str, ...]:
        return self.snapshot.connectors()

    def connector_configs(self) -> Mapping[str, ConnectorConfig]:
        return self.snapshot.connector_configs

    def connector_status(self, connector: str) -> ConnectorStateInfo | None:
        return self._statuses.state_info(connector, self.snapshot)

    def task_status(self, connector: str, task: int) -> Status | None:
        return self._stores.status.tasks(connector).get(task)

    async def connector_info(self, connector: str) -> dict[str, Any] | None:
        info = connector_info(self._loop.state, connector)
        return None if info is None else info.to_json()

    def target_state(self, connector: str) -> TargetState | None:
        return self.snapshot.target_state(connector)

    async def connector_offsets(
        self, connector: str, *, timeout_ms: int
    ) -> Iterable[ConnectorOffset]:
        config = await self.submit(GetConnectorConfig(connector=connector), timeout_ms=timeout_ms)
        return await self._offset_reader.read(connector, config, timeout_ms)

    def active_topics(self, connector: str) -> tuple[str, ...]:
        return self._stores.status.topics(connector)

    async def reset_active_topics(self, connector: str) -> None:
        await self.performer.in_thread(partial(self._statuses.forget_topics, connector))

    def plugins(self, *, connectors_only: bool) -> tuple[PluginInfo, ...]:
        return tuple(
            PluginInfo(class_name=plugin.class_name, type=plugin.kind.value, version=plugin.version)
            for plugin in self._catalog.listed(connectors_only=connectors_only)
        )

    def loggers(self) -> Mapping[str, LoggerLevel]:
        return self._levels.loggers()

    async def set_logger_level(self, namespace: str, level: str) -> tuple[str, ...]:
        return self._set_level(namespace, level)

    def _set_level(self, namespace: str, level: str) -> tuple[str, ...]:
        self._children.set_logger_level(namespace, level)
        return self._levels.set_level(namespace, level)

    async def set_cluster_logger_level(self, namespace: str, level: str) -> None:
        """Write a level to the config topic; all workers, including this one, read and apply it."""
        write = partial(self._stores.config.put_logger_level, namespace, level)
        await self.performer.in_thread(write)

    def verify_internal_request(self, body: bytes, headers: Mapping[str, str]) -> None:
        if self._options.permitted_algorithms is not None and self._group_signs():
            self.verify_signature(body, headers)

    def sign(self, content: bytes) -> dict[str, str]:
        session_key = self.snapshot.session_key
        if session_key is None or not self._group_signs():
            return {}
        algorithm = self._options.signature_algorithm
        return signature_headers(content, session_key=session_key, algorithm=algorithm)

    def verify_signature(self, content: bytes, headers: Mapping[str, str]) -> None:
        verify_request(
            content,
            headers,
            session_key=self.snapshot.session_key,
            permitted_algorithms=self._options.permitted_algorithms or (),
        )

    async def _request_fencing(self, leader_url: str | None, connector: str) -> None:
        if leader_url is None:
            await self.submit(FenceZombies(connector=connector), timeout_ms=FENCING_TIMEOUT_MS)
        else:
            await self._ask_leader("PUT", leader_url, connector, "fence", None)

    async def _send_task_configs(
        self, leader_url: str, connector: str, configs: tuple[ConnectorConfig, ...]
    ) -> None:
        body = json_text.dumps([dict(config) for config in configs])
        await self._ask_leader("POST", leader_url, connector, "tasks", body)

    async def _ask_leader(
        self, method: str, leader_url: str, connector: str, endpoint: str, body: bytes | None
    ) -> None:
        """Send `/connectors/{connector}/{endpoint}` to the leader; the caller retries."""
        if self._group_signs() and self.snapshot.session_key is None:
            raise ServiceUnavailableError(
                "No session key has been read from the config topic yet; the leader writes one"
                " soon after it was elected"
            )
        place = f"connectors/{quote(connector, safe='')}/{endpoint}?forward=false"
        url, headers = f"{leader_url.rstrip('/')}/{place}", self.sign(body or b"")
        await self._client.send(method, url, body=body, headers=headers)

    def _group_signs(self) -> bool:
        """Return whether the last join's protocol signs requests; before a join, this worker's."""
        membership = self._loop.state.membership
        if membership is None:
            return self._options.permitted_algorithms is not None
        return membership.assignment.version >= ProtocolVersion.SESSIONED

    def _make_group(self) -> Group:
        loop = self._loop
        if self._options.make_group is None:
            return LocalGroup(self._options.worker_url, loop.post)

        def failed(error: BaseException) -> None:
            known = isinstance(error, AgentError)
            reason = str(error) if known else f"{type(error).__name__}: {error}"
            loop.post_threadsafe(on.GroupFailed(reason=reason))

        ports = GroupPorts(
            post=loop.post_threadsafe,
            config_snapshot=self._stores.config.snapshot,
            herder_alive=lambda: loop.alive(ALIVE_WITHIN_MS),
            failed=failed,
        )
        return self._options.make_group(ports, self._clock)
