"""The herder's shell over memory stores and children without processes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pyconnect_agent.core.errors import InternalError, KafkaError, RequestTimedOutError
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.state import HerderSettings
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.plugin_catalog import Catalog
from pyconnect_agent.core.reporting import ServerInfo
from pyconnect_agent.herder.connect_group import GroupPorts, LocalGroup
from pyconnect_agent.herder.loop import HerderAbortedError
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.herder.service import HerderOptions, HerderService, Stores
from pyconnect_agent.process.logging import RuntimeLevels
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.memory import MemoryLog
from pyconnect_agent.stores.status import StatusStore
from tests.agent.herder.fake_children import FakeChildren
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import MemoryOffsetStore

CONFIG = {"name": "c", "tasks": "2"}
TIMEOUT_MS = 5_000


class GatedConfigStore(ConfigStore):
    """Writes wait until the gate is open, or fail."""

    def __init__(self) -> None:
        super().__init__(MemoryLog())
        self.gate = threading.Event()
        self.gate.set()
        self.failure: Exception | None = None

    def put_connector_config(
        self, connector: str, config: ConnectorConfig, target_state: TargetState | None
    ) -> None:
        self.gate.wait()
        if self.failure is not None:
            raise self.failure
        super().put_connector_config(connector, config, target_state)


class NoOtherWorkers:
    """In a group of one, no request is forwarded."""

    async def send(self, method: str, url: str, **_: Any) -> Any:
        raise AssertionError(f"{method} {url} was sent")


class Shell:
    """A running herder and what it works with."""

    def __init__(self, *, standalone: bool = False) -> None:
        self.group_failed: Callable[[BaseException], None] | None = None
        self.store = GatedConfigStore()
        self.statuses = StatusStore(MemoryLog())
        self.children = FakeChildren()
        self.hurry = asyncio.Event()
        self.herder = HerderService(
            HerderOptions(
                settings=HerderSettings(
                    worker_id="w:1", connector_type=lambda _: "source", standalone=standalone
                ),
                worker_url="http://w:1/",
                server=ServerInfo(version="1", commit="2", kafka_cluster_id="3"),
                track_topics=True,
                permitted_algorithms=None,
                make_group=self._make_group,
            ),
            stores=Stores(config=self.store, status=self.statuses, offset=MemoryOffsetStore()),
            children=self.children,
            catalog=Catalog(()),
            levels=RuntimeLevels({}),
            clock=WorkerClock(),
            client=NoOtherWorkers(),
        )
        self.children.listener = self.herder.child_listener

    def _make_group(self, ports: GroupPorts, clock: WorkerClock) -> LocalGroup:
        self.group_failed = ports.failed
        return LocalGroup("http://w:1/", ports.post)

    async def create(self, name: str = "c", **changes: str) -> Any:
        request = ask.PutConnectorConfig(connector=name, config={**CONFIG, "name": name, **changes})
        return await self.herder.submit(request, timeout_ms=TIMEOUT_MS)


@asynccontextmanager
async def running(*, standalone: bool = False) -> AsyncIterator[Shell]:
    shell = Shell(standalone=standalone)
    herding = asyncio.create_task(shell.herder.run())
    try:
        await shell.herder.start()
        shell.herder.announce_ready()
        yield shell
    finally:
        shell.store.gate.set()
        await shell.herder.drain(hurry=shell.hurry)
        herding.cancel()
        await asyncio.gather(herding, return_exceptions=True)
        await shell.herder.close()


async def test_the_table_of_the_performer_has_every_effect() -> None:
    """`Abort` alone is not performed: it ends the loop."""
    kinds = {kind for kind in vars(do).values() if isinstance(kind, type)}
    effects = {kind for kind in kinds if issubclass(kind, do.Effect)}
    performed = effects - {do.Effect, do.Awaited, do.Abort}
    assert Shell().herder.performer.table.keys() == performed


async def test_a_created_connector_runs_with_its_tasks() -> None:
    """From request to status, through stores, group and children."""
    async with running() as shell:
        result = await shell.create()
        assert result.created
        await eventually_async(lambda: len(shell.children.tasks) == 2)
        info = shell.herder.connector_status("c")
        assert info is not None
        assert info.connector.worker_id == "w:1"
        assert await shell.herder.connector_info("c") == {
            "name": "c",
            "config": CONFIG,
            "tasks": [{"connector": "c", "task": 0}, {"connector": "c", "task": 1}],
            "type": "source",
        }


async def test_a_slow_write_does_not_delay_other_requests() -> None:
    """Reads, health and other connectors' states are served while the broker takes its time."""
    async with running() as shell:
        await shell.create()
        await eventually_async(lambda: len(shell.children.tasks) == 2)
        shell.store.gate.clear()
        slow = asyncio.create_task(shell.create("slow"))
        await eventually_async(lambda: "slow" in str(shell.herder.stage))
        await shell.herder.submit(ask.Probe(), timeout_ms=TIMEOUT_MS)
        await shell.herder.submit(ask.GetConnectorInfo(connector="c"), timeout_ms=TIMEOUT_MS)
        pause = ask.SetTargetState(connector="c", target_state=TargetState.PAUSED)
        await shell.herder.submit(pause, timeout_ms=TIMEOUT_MS)
        assert not slow.done()
        shell.store.gate.set()
        assert (await slow).created


async def test_a_timed_out_request_names_what_it_waits_for() -> None:
    """Its write takes effect afterwards."""
    async with running() as shell:
        shell.store.gate.clear()
        request = ask.PutConnectorConfig(connector="c", config=CONFIG)
        with pytest.raises(RequestTimedOutError, match="writing a config for connector c"):
            await shell.herder.submit(request, timeout_ms=50)
        shell.store.gate.set()
        await eventually_async(lambda: shell.herder.connectors() == ("c",))


async def test_failures_of_writes_and_starts_have_their_texts() -> None:
    """Nothing is created; a refusal of the worker process is like one of the connector."""
    async with running() as shell:
        shell.store.failure = KafkaError("Error writing connector configuration to Kafka")
        with pytest.raises(InternalError, match="Error writing connector configuration"):
            await shell.create()
        assert shell.herder.connectors() == ()
    async with running(standalone=True) as shell:
        with pytest.raises(InternalError, match="Failed to start connector: c"):
            await shell.create(refuse="yes")
        info = shell.herder.connector_status("c")
        assert info is not None
        assert info.connector.trace == "refused on purpose"


async def test_draining_answers_requests_before_work_has_stopped() -> None:
    """Clients are not held up by a task that takes its time; a second signal kills it."""
    async with running() as shell:
        await shell.create()
        await eventually_async(lambda: len(shell.children.tasks) == 2)
        shell.children.may_stop.clear()
        shell.store.gate.clear()
        waiting = asyncio.create_task(shell.create("later"))
        await eventually_async(lambda: "later" in str(shell.herder.stage))
        draining = asyncio.create_task(shell.herder.drain(hurry=shell.hurry))
        with pytest.raises(InternalError, match="Worker is shutting down"):
            await waiting
        with pytest.raises(InternalError, match="Worker is shutting down"):
            await shell.herder.submit(ask.Probe(), timeout_ms=TIMEOUT_MS)
        assert not draining.done()
        shell.hurry.set()
        await draining
        assert shell.children.stopped[:2] == [False, True]
        assert shell.children.tasks == {}


async def test_health_waits_until_the_worker_is_announced() -> None:
    """A standalone worker creates its connectors first."""
    shell = Shell()
    herding = asyncio.create_task(shell.herder.run())
    await shell.herder.start()
    with pytest.raises(RequestTimedOutError):
        await shell.herder.submit(ask.Probe(), timeout_ms=50)
    assert not shell.herder.ready
    shell.herder.announce_ready()
    await shell.herder.submit(ask.Probe(), timeout_ms=TIMEOUT_MS)
    assert shell.herder.ready
    await shell.herder.drain(hurry=shell.hurry)
    herding.cancel()
    await asyncio.gather(herding, return_exceptions=True)
    await shell.herder.close()


async def test_a_topic_is_recorded_once() -> None:
    """The status store is asked first; resetting forgets it."""
    async with running() as shell:
        for task in (0, 1):
            shell.herder.child_listener.topic_used(ConnectorTaskId("c", task), "t")
        assert shell.herder.active_topics("c") == ("t",)
        await shell.herder.reset_active_topics("c")
        assert shell.herder.active_topics("c") == ()


async def test_a_cluster_wide_level_takes_the_way_of_the_config_store() -> None:
    """It is applied when it is read."""
    async with running() as shell:
        await shell.herder.set_cluster_logger_level("some.logger", "DEBUG")
        await eventually_async(lambda: "some.logger" in shell.herder.loggers())


@cases(
    "error, reason",
    (KafkaError("denied"), "denied"),
    (RuntimeError("unforeseen"), "RuntimeError: unforeseen"),
)
async def test_a_membership_that_has_failed_ends_the_herder(error: Exception, reason: str) -> None:
    """With the membership, for every kind of failure; the worker ends with the herder."""
    shell = Shell()
    herding = asyncio.create_task(shell.herder.run())
    await shell.herder.start()
    assert shell.group_failed is not None
    shell.group_failed(error)
    with pytest.raises(HerderAbortedError, match=reason):
        await herding
    await shell.herder.close()
