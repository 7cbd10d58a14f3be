"""The connector children: life cycle, task configs, and the handling of their end.

Kafka: the connector half of `Worker`. A connector keeps its entry from `start` to `stop`, with or
without a process. A connector without a process is STOPPED from the start, asleep until its next
call (RUNNING or PAUSED), or FAILED because its process died, until it is stopped or started again.
"""

import asyncio
import itertools
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import (
    ConfigTtlExpired,
    ConnectorIdle,
    ReadOffsetsRequest,
    RequestFailed,
    StateReported,
    TaskConfigs,
    TaskReconfigurationRequested,
)
from pyconnect_agent.channel.requests import (
    GenerateTaskConfigsRequest,
    RunConnectorJob,
    SetTargetStateRequest,
)
from pyconnect_agent.children.child import Child, ChildEnd, stop_children
from pyconnect_agent.children.offsets import OffsetService
from pyconnect_agent.children.ports import (
    CONNECTOR_GRACEFUL_MS,
    REQUEST_TIMEOUT_MS,
    ChildFactory,
    ChildListener,
    ChildSettings,
    TaskConfigsGenerated,
)
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.ids import State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.metric_values import Startups
from pyconnect_agent.core.plugin_catalog import Catalog
from pyconnect_agent.core.reporting import Reported

LOG = logging.getLogger(__name__)


_AT_REST = {TargetState.STARTED: State.RUNNING, TargetState.PAUSED: State.PAUSED}
"""The state in which a connector may sleep, for each target state."""


@dataclass(slots=True)
class ConnectorChild:
    """A started connector; `child` is None without a process.

    `launch` numbers its processes: messages of an earlier one are ignored. `since_ms`: the time of
    its start or of its change to `state`, epoch ms. `came_up`: whether its start has succeeded or
    failed.
    """

    config: ConnectorConfig
    since_ms: int
    target_state: TargetState
    child: Child | None = None
    launch: int = 0
    state: State | None = None
    version: str | None = None
    came_up: bool = False
    requests: dict[int, asyncio.Future[TaskConfigsGenerated]] = field(default_factory=dict)

    @property
    def is_asleep(self) -> bool:
        """Whether the process has ended because it was idle; the next call starts another."""
        return self.child is None and self.state in (State.RUNNING, State.PAUSED)


class ConnectorChildren:
    """Owns the processes of the connectors; called on the event loop only."""

    def __init__(
        self,
        settings: ChildSettings,
        factory: ChildFactory,
        listener: Callable[[], ChildListener],
        offsets: OffsetService,
    ) -> None:
        self._settings = settings
        self._factory = factory
        self._listener = listener
        self._offsets = offsets
        self._connectors: dict[str, ConnectorChild] = {}
        self._request_ids = itertools.count(1)
        self._digest_key = secrets.token_bytes(32)
        self._digests: dict[str, tuple[ConnectorConfig, bytes]] = {}
        self.startups = Startups("connector", settings.sampling)
        self._catalog = Catalog(settings.worker.plugins)
        self._retired: dict[Child, asyncio.Task[None]] = {}

    def start(self, connector: str, config: ConnectorConfig, target_state: TargetState) -> None:
        """Start a connector; with target state STOPPED only report the state, without a process."""
        if connector in self._connectors:
            raise AgentError(f"Connector with name {connector} already exists")
        entry = ConnectorChild(config=dict(config), since_ms=_now_ms(), target_state=target_state)
        self._connectors[connector] = entry
        if target_state is TargetState.STOPPED:
            # Without a process the plugin's code does not run.
            entry.version = self._catalog.connector_version(config)
            self._report(connector, entry, _state(entry, State.STOPPED))
        else:
            self._launch(connector, entry, target_state)

    def _launch(self, connector: str, entry: ConnectorChild, target_state: TargetState) -> None:
        job = RunConnectorJob(
            connector=connector,
            worker=self._settings.worker,
            config=entry.config,
            target_state=target_state,
            lease_ms=self._settings.lease_ms,
            may_sleep=self._settings.agent_keys.of_connector(entry.config).sleep,
        )
        entry.launch += 1
        launch = entry.launch

        def on_message(message: Message) -> None:
            if launch == entry.launch:
                self._message(connector, entry, message)

        def on_exit(end: ChildEnd) -> None:
            if launch == entry.launch:
                self._exit(connector, entry, end)

        entry.child = self._factory(f"connector {connector}", job, on_message, on_exit)

    async def stop(self, connectors: Sequence[str]) -> None:
        """Stop connectors within 5 s for all together, then kill; return when all are gone."""
        entries = {name: self._connectors[name] for name in connectors if name in self._connectors}
        for name, entry in entries.items():
            if entry.is_asleep or (entry.child is None and entry.state is State.STOPPED):
                self._report(name, entry, _state(entry, State.UNASSIGNED))
        children = {entry.child: name for name, entry in entries.items() if entry.child is not None}

        def abandon(child: Child) -> None:
            # Kafka also reports UNASSIGNED at once for an abandoned connector, and reports no later
            # state.
            entry = entries[children[child]]
            LOG.warning(
                "connector process is given up",
                extra={
                    "connector": children[child],
                    "last_state": entry.state.value if entry.state else "starting",
                },
            )
            self._report(children[child], entry, _state(entry, State.UNASSIGNED))

        graceful_s = CONNECTOR_GRACEFUL_MS / 1000
        await stop_children(tuple(children), graceful_s=graceful_s, on_cancel=abandon)
        for name, entry in entries.items():
            if self._connectors.get(name) is entry:
                del self._connectors[name]

    def set_target_state(self, connector: str, target_state: TargetState) -> None:
        entry = self._connectors.get(connector)
        if entry is None:
            return
        entry.target_state = target_state
        if entry.child is not None:
            entry.child.send(SetTargetStateRequest(target_state=target_state))
        elif target_state is TargetState.STOPPED:
            self._report(connector, entry, _state(entry, State.STOPPED))
        elif entry.is_asleep and target_state is TargetState.PAUSED:
            if entry.state is not State.PAUSED:
                self._report(connector, entry, _state(entry, State.PAUSED))
        elif entry.state in (State.STOPPED, State.PAUSED):
            self._launch(connector, entry, target_state)

    async def generate_task_configs(
        self, connector: str, config: ConnectorConfig, applied_config: ConnectorConfig | None
    ) -> TaskConfigsGenerated:
        """Return the task configs. Raises AgentError with the text of the plugin's exception.

        Too many tasks, when the limit is enforced, also make the connector FAILED.
        """
        entry = self._connectors.get(connector)
        if entry is not None and entry.is_asleep and entry.state is State.RUNNING:
            self._launch(connector, entry, TargetState.STARTED)
        if entry is None or entry.child is None:
            raise AgentError(f"Connector {connector} not found in this worker.")
        request_id = next(self._request_ids)
        future: asyncio.Future[TaskConfigsGenerated] = asyncio.get_running_loop().create_future()
        entry.requests[request_id] = future
        entry.child.send(
            GenerateTaskConfigsRequest(
                request_id=request_id,
                digest_key=self._digest_key,
                config=dict(config),
                applied_config=None if applied_config is None else dict(applied_config),
            )
        )
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_MS / 1000):
                return await future
        except TimeoutError:
            raise AgentError(
                f"Connector {connector} did not return its task configs within "
                f"{REQUEST_TIMEOUT_MS} ms; it may hang in start() or taskConfigs()."
            ) from None
        finally:
            entry.requests.pop(request_id, None)

    def running(self) -> frozenset[str]:
        return frozenset(self._connectors)

    def details(self) -> dict[str, ConnectorChild]:
        """Return the connectors for the admin interface, which must not change them."""
        return dict(self._connectors)

    def children(self) -> tuple[Child, ...]:
        live = (e.child for e in self._connectors.values() if e.child is not None)
        return (*live, *self._retired)

    def _message(self, connector: str, entry: ConnectorChild, message: Message) -> None:
        assert entry.child is not None
        if entry.child.cancelled:
            return
        match message:
            case StateReported(state=State.RUNNING) if entry.state is State.RUNNING:
                pass  # a request woke it up
            case StateReported():
                entry.version = message.version or entry.version
                self._report(connector, entry, message.reported(entry.version))
                # Kept asleep, unless the connector was resumed meanwhile.
                if message.state is State.STOPPED and entry.target_state is TargetState.STOPPED:
                    self._retire(entry)
            case ConnectorIdle():
                if not entry.requests and entry.state is _AT_REST.get(entry.target_state):
                    LOG.debug("connector sleeps", extra={"connector": connector})
                    self._retire(entry)
            case TaskConfigs():
                future = entry.requests.get(message.request_id)
                if future is not None and not future.done():
                    # Kafka's AppliedConnectorConfig keeps the resolved config itself.
                    config, digest = self._digests.get(connector, (None, None))
                    self._digests[connector] = (entry.config, message.values_digest)
                    is_new = config == entry.config and digest != message.values_digest
                    future.set_result(
                        TaskConfigsGenerated(
                            configs=message.configs,
                            connector_config_changed=message.connector_config_changed,
                            values_changed=is_new,
                        )
                    )
            case RequestFailed():
                future = entry.requests.get(message.request_id)
                if future is not None and not future.done():
                    future.set_exception(AgentError(message.message))
            case TaskReconfigurationRequested():
                self._listener().task_reconfiguration_requested(connector)
            case ConfigTtlExpired():
                self._listener().config_ttl_expired(connector)
            case ReadOffsetsRequest():
                self._offsets.serve(entry.child, message)
            case _:
                LOG.error(
                    "connector process sent a message that is not for a connector",
                    extra={"connector": connector, "kind": type(message).__name__},
                )

    def _retire(self, entry: ConnectorChild) -> None:
        """End the process of a connector that has stopped or has nothing to do."""
        child, entry.child = entry.child, None
        assert child is not None
        entry.launch += 1
        self._fail_requests(entry, "The connector is stopped.")
        graceful_s = CONNECTOR_GRACEFUL_MS / 1000
        ending = asyncio.create_task(stop_children((child,), graceful_s=graceful_s))
        self._retired[child] = ending
        ending.add_done_callback(lambda _: self._retired.pop(child, None))

    @staticmethod
    def _fail_requests(entry: ConnectorChild, text: str) -> None:
        for future in entry.requests.values():
            if not future.done():
                future.set_exception(AgentError(text))

    def _exit(self, connector: str, entry: ConnectorChild, end: ChildEnd) -> None:
        child, entry.child = entry.child, None
        text = end.describe("connector process", f"(connector {connector})")
        self._fail_requests(entry, text)
        if child is None or child.cancelled or entry.state is State.UNASSIGNED:
            return
        if child.stopping:
            # A stop() that raised is reported by the child as FAILED; the end of the process was
            # requested.
            if entry.state is not State.FAILED:
                LOG.warning("connector process died while it was stopped", extra={"how": text})
                self._report(connector, entry, _state(entry, State.UNASSIGNED))
            return
        if end.lease_expired:
            LOG.warning("connector ended because its lease ran out", extra={"connector": connector})
            self._listener().lease_expired()
            self._report(connector, entry, _state(entry, State.UNASSIGNED))
            return
        LOG.error("connector process ended by itself", extra={"connector": connector, "how": text})
        # The process's own report is more exact.
        if entry.state is not State.FAILED:
            self._report(connector, entry, _state(entry, State.FAILED, text))

    def _report(self, connector: str, entry: ConnectorChild, report: Reported) -> None:
        if entry.state is not report.state:
            entry.since_ms = _now_ms()
        entry.state = report.state
        if not entry.came_up:
            entry.came_up = self.startups.reported(report.state, time.monotonic() * 1000)
        self._listener().reported(connector, report)


def _state(entry: ConnectorChild, state: State, trace: str | None = None) -> Reported:
    return Reported(state=state, trace=trace, version=entry.version)


def _now_ms() -> int:
    return int(time.time() * 1000)
