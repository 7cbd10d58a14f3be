"""The herder's shell over memory stores and children without processes, and its parts."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pyconnect_agent.core.errors import InternalError, KafkaError, RequestTimedOutError
from pyconnect_agent.core.group_protocol import Work
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.state import HerderSettings
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, ConnectorConfig
from pyconnect_agent.core.plugin_catalog import Catalog
from pyconnect_agent.core.reporting import Reported, ServerInfo, Status
from pyconnect_agent.herder.connect_group import GroupPorts, LocalGroup
from pyconnect_agent.herder.loop import ChildEvents, HerderAbortedError
from pyconnect_agent.herder.performer import StatusView
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.herder.service import HerderOptions, HerderService, Stores
from pyconnect_agent.process.logging import RuntimeLevels
from pyconnect_agent.stores import MemoryLog
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.status import StatusStore
from tests.agent.herder.fake_children import FakeChildren
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import MemoryOffsetStore

CONFIG = {"name": "c", "tasks": "2"}
TIMEOUT_MS = 5_000


@pytest.fixture(autouse=True)
def _restored_level() -> Iterator[None]:
    """Restore the root logger's level, which a herder sets."""
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


class GatedConfigStore(ConfigStore):
    """A store whose writes wait until the gate is open, or fail."""

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
    """A client that must not be called, because a group of one forwards no request."""

    async def send(self, method: str, url: str, **_: Any) -> Any:
        raise AssertionError(f"{method} {url} was sent")


class Shell:
    """A running herder with its stores and children."""

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

    async def created(self) -> Any:
        """Create the connector `c`, and wait for its tasks."""
        result = await self.create()
        await eventually_async(lambda: len(self.children.tasks) == 2)
        return result

    async def create(self, name: str = "c", **changes: str) -> Any:
        request = ask.PutConnectorConfig(connector=name, config={**CONFIG, "name": name, **changes})
        return await self.herder.submit(request, timeout_ms=TIMEOUT_MS)


@asynccontextmanager
async def running(*, standalone: bool = False, announced: bool = True) -> AsyncIterator[Shell]:
    shell = Shell(standalone=standalone)
    herding = asyncio.create_task(shell.herder.run())
    try:
        await shell.herder.start()
        if announced:
            shell.herder.announce_ready()
        yield shell
    finally:
        shell.store.gate.set()
        await shell.herder.drain(hurry=shell.hurry)
        herding.cancel()
        await asyncio.gather(herding, return_exceptions=True)
        await shell.herder.close()


async def test_the_table_of_the_performer_has_every_effect() -> None:
    """Only `Abort` has no entry, because it ends the loop."""
    kinds = {kind for kind in vars(do).values() if isinstance(kind, type)}
    effects = {kind for kind in kinds if issubclass(kind, do.Effect)}
    performed = effects - {do.Effect, do.Awaited, do.Abort}
    assert Shell().herder.performer.table.keys() == performed


async def test_a_created_connector_runs_with_its_tasks() -> None:
    """A creation goes from the request through stores, group and children to the status."""
    async with running() as shell:
        assert (await shell.created()).created
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
    """Reads, health and pauses of other connectors are served during a slow write."""
    async with running() as shell:
        await shell.created()
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
    """The write of a timed-out request takes effect afterwards."""
    async with running() as shell:
        shell.store.gate.clear()
        request = ask.PutConnectorConfig(connector="c", config=CONFIG)
        with pytest.raises(RequestTimedOutError, match="writing a config for connector c"):
            await shell.herder.submit(request, timeout_ms=50)
        shell.store.gate.set()
        await eventually_async(lambda: shell.herder.connectors() == ("c",))


async def test_failures_of_writes_and_starts_have_their_texts() -> None:
    """A failed write creates nothing, and a refused start has its reason in the status."""
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
    """A stop answers all requests before its tasks have ended; a hurried stop kills them."""
    async with running() as shell:
        await shell.created()
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
    """A standalone worker is ready only when it has created its connectors."""
    async with running(announced=False) as shell:
        with pytest.raises(RequestTimedOutError):
            await shell.herder.submit(ask.Probe(), timeout_ms=50)
        assert not shell.herder.ready
        shell.herder.announce_ready()
        await shell.herder.submit(ask.Probe(), timeout_ms=TIMEOUT_MS)
        assert shell.herder.ready


async def test_a_topic_is_recorded_once() -> None:
    """A known topic is not recorded again, and a reset removes it."""
    async with running() as shell:
        for task in (0, 1):
            shell.herder.child_listener.topic_used(ConnectorTaskId("c", task), "t")
        assert shell.herder.active_topics("c") == ("t",)
        await shell.herder.reset_active_topics("c")
        assert shell.herder.active_topics("c") == ()


async def test_a_cluster_wide_level_takes_the_way_of_the_config_store() -> None:
    """A cluster-wide level is applied when it is read from the config topic."""
    async with running() as shell:
        await shell.herder.set_cluster_logger_level("some.logger", "DEBUG")
        await eventually_async(lambda: "some.logger" in shell.herder.loggers())


@cases(
    "error, reason",
    (KafkaError("denied"), "denied"),
    (RuntimeError("unforeseen"), "RuntimeError: unforeseen"),
)
async def test_a_membership_that_has_failed_ends_the_herder(error: Exception, reason: str) -> None:
    """Every failure of the membership ends the herder, and so the worker."""
    shell = Shell()
    herding = asyncio.create_task(shell.herder.run())
    await shell.herder.start()
    assert shell.group_failed is not None
    shell.group_failed(error)
    with pytest.raises(HerderAbortedError, match=reason):
        await herding
    await shell.herder.close()


PYTHON = """\
pyconnect_api.errors.ConnectException: Exiting WorkerSinkTask
  File "loop.py", line 1, in _deliver
    self._task.put(batch)
Caused by: builtins.OSError: disk is full
  File "task.py", line 2, in put
    write(values)
"""
KILLED = "The task was killed through the admin interface (SIGKILL). It is not restarted by itself."
JAVA = """\
java.lang.IllegalStateException: boom
\tat io.example.Task.poll(Task.java:1)
\t... 3 more
"""


@cases(
    "trace, reason",
    (PYTHON, "Caused by: builtins.OSError: disk is full"),
    (JAVA, "java.lang.IllegalStateException: boom"),
    (None, ""),
    (f"{KILLED}\nIts stacks before that:\nThread 0x1 (most recent call first):\n  File", KILLED),
    (f"{KILLED}\nIts stacks before that: none within 5 s.", KILLED),
)
def test_reason_of_a_failure(
    trace: str | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason in the log is the innermost error, never a line of a stack."""
    events = ChildEvents(lambda _: None, StatusStore(MemoryLog()), WorkerClock(), track_topics=True)
    with caplog.at_level(logging.ERROR):
        events.reported(ConnectorTaskId("c", 0), Reported(state=State.FAILED, trace=trace))
    assert [record.reason for record in caplog.records] == [reason]  # type: ignore[attr-defined]  # an extra field


RUNNING = Status(state=State.RUNNING, worker_id="w:1", generation=3)
ONE_TASK = ConfigSnapshot(connector_configs={"kept": {}}, task_counts={"kept": 1})


class DeletionsStore(StatusStore):
    """A store that remembers all deletions, also of unknown items."""

    def __init__(self) -> None:
        super().__init__(MemoryLog())
        self.deleted: list[str] = []

    def delete(self, item: Instance) -> None:
        self.deleted.append(str(item))
        super().delete(item)


@pytest.fixture
def store() -> Iterator[DeletionsStore]:
    store = DeletionsStore()
    store.start()
    yield store
    store.stop()


def view(store: StatusStore) -> StatusView:
    return StatusView(store, lambda config: "unknown" if config is None else "source")


def test_statuses_of_vanished_work_are_tombstoned_tasks_first(store: DeletionsStore) -> None:
    """Statuses without a config, or beyond the task count, are removed; others stay."""
    for name in ("kept", "gone"):
        store.put(name, RUNNING)
        for number in (0, 1):
            store.put(ConnectorTaskId(name, number), RUNNING)
    view(store).clean(ONE_TASK, Work())
    assert store.deleted == ["gone-0", "gone-1", "kept-1", "gone"]
    assert store.connectors() == {"kept"}
    assert list(store.tasks("kept")) == [0]


def test_revoked_work_is_tombstoned_before_its_status_is_read(store: DeletionsStore) -> None:
    """The last status of revoked work may not be read yet, and its tombstone must follow it."""
    revoked = Work.of(["gone", "kept"], [ConnectorTaskId("kept", n) for n in (0, 1)])
    view(store).clean(ONE_TASK, revoked)
    assert store.deleted == ["kept-1", "gone"]


def test_a_state_info_lists_tasks_by_number(store: DeletionsStore) -> None:
    """The type is that of the config, and `unknown` without a config."""
    store.put("kept", RUNNING)
    for number in (10, 2):
        store.put(ConnectorTaskId("kept", number), RUNNING)
    info = view(store).state_info("kept", ONE_TASK)
    assert info is not None
    assert [number for number, _ in info.tasks] == [2, 10]
    assert info.type == "source"
    gone = view(store).state_info("kept", ConfigSnapshot())
    assert gone is not None
    assert gone.type == "unknown"
    assert view(store).state_info("none", ONE_TASK) is None
