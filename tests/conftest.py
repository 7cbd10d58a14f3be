"""Fixtures of every tier. A tier that cannot start raises: it never skips."""

import asyncio
import functools
import inspect
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import ParamSpec

import pytest
from hypothesis import settings

from pyconnect_agent.process import long_lived
from pyconnect_sandbox.broker import BrokerConfig
from pyconnect_sandbox.connect_worker import (
    AgentProcess,
    JavaConnectWorker,
    WorkerLaunch,
    worker_properties,
)
from pyconnect_sandbox.jars import find_runtime
from pyconnect_sandbox.runtime import KafkaRuntime
from pyconnect_sandbox.server import Server
from tests.support.agents.agent import Agents, closing
from tests.support.names import unique_name as make_unique_name
from tests.support.seeds import LONG
from tests.support.servers.kafka import (
    BOOTSTRAP_VARIABLE,
    Servers,
    SharedAgentWorker,
    SharedBroker,
    SharedJavaWorker,
    shared_broker,
    shared_server,
)
from tests.support.servers.schema_registry_server import SchemaRegistryServer, find_registry
from tests.support.servers.secured import SecuredBroker, secured_config

Arguments = ParamSpec("Arguments")
LIMIT_S = 240.0


def on_event_loop(
    test: Callable[Arguments, Awaitable[None]], limit_s: float = LIMIT_S
) -> Callable[Arguments, None]:
    """Run a test on an event loop of its own; TimeoutError after `limit_s` seconds."""

    async def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        async with asyncio.timeout(limit_s):
            await test(*args, **kwargs)

    @functools.wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        asyncio.run(limited(*args, **kwargs))

    return run


# Without the extra `reconcile` the tier of Spark is empty, which pytest's exit code says.
collect_ignore = [] if find_spec("pyspark") else ["spark"]

TIERS = ("simulation", "wire", "kafka", "java", "spark")

# A shell has what it starts in the background ignore SIGINT, nohup SIGHUP, and its children after
# it. What is handled here means again to them what it does to any process.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

# How long one example takes says nothing on a machine that runs brokers beside the tests. The same
# examples each time: a change is judged by what it changes; `scripts/test --long` looks further.
settings.register_profile("shared machine", deadline=None, derandomize=not LONG)
settings.load_profile("shared machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files whose tests may take longest, then with those of many tests.

    pytest-xdist gives files away in this order: none of its processes ends with a long file while
    the others have nothing left to do.
    """
    _check_files_of_tiers(items)
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            limit = item.get_closest_marker("timeout")
            item.obj = on_event_loop(item.obj, limit.args[0] if limit else LIMIT_S)
    if not LONG:
        items[:] = [item for item in items if not _is_only_long(item)]
    longest: defaultdict[Path, float] = defaultdict(float)
    sizes = Counter(item.path for item in items)
    for item in items:
        if limit := item.get_closest_marker("timeout"):
            longest[item.path] = max(longest[item.path], limit.args[0])
    items.sort(key=lambda item: (-longest[item.path], -sizes[item.path], item.path))


def _is_only_long(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("long")
    return mark is not None and mark.kwargs.get("only", False)


def _check_files_of_tiers(items: list[pytest.Item]) -> None:
    """Refuse a test whose file does not name its tier: scripts/test would not find it."""
    tiers = {
        (item.path, mark.name)
        for item in items
        for mark in item.iter_markers()
        if mark.name in TIERS
    }
    for path, tier in sorted(tiers):
        if f"pytest.mark.{tier}" not in path.read_text():
            raise pytest.UsageError(
                f"{path} has tests of the tier {tier}: write pytest.mark.{tier}"
            )


@pytest.fixture(scope="session")
def kafka_runtime() -> KafkaRuntime:
    """A Java and Kafka's jars, fetched into the user's cache on first use."""
    return find_runtime()


@pytest.fixture(scope="session")
def session_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for the whole test session, common to pytest-xdist's workers."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest, session_directory: Path) -> Iterator[SharedBroker]:
    """The session's broker."""
    if bootstrap_servers := os.environ.get(BOOTSTRAP_VARIABLE):
        yield SharedBroker(bootstrap_servers=bootstrap_servers)
        return
    runtime: KafkaRuntime = request.getfixturevalue("kafka_runtime")
    # The broker compacts soon after a topic allows it: a look at thousands of partitions takes
    # 20 ms. It keeps records whose timestamps are years old, as those of some tests are.
    properties = {"log.cleaner.backoff.ms": "500", "log.retention.ms": "-1"}
    config = BrokerConfig(runtime=runtime, directory=session_directory, properties=properties)
    with shared_broker(session_directory, "broker", config) as broker:
        yield broker


@pytest.fixture
def agents(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Agents]:
    """Makes agents of the test's own on the session's broker, and ends them with it."""
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path))


@pytest.fixture(scope="module")
def module_agents(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agents]:
    """Makes agents that the tests of a module share."""
    directory = tmp_path_factory.mktemp("agents")
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, directory))


@pytest.fixture(scope="session")
def other_broker(session_directory: Path, kafka_runtime: KafkaRuntime) -> Iterator[SharedBroker]:
    """The broker of another cluster."""
    config = BrokerConfig(runtime=kafka_runtime, directory=session_directory)
    with shared_broker(session_directory, "other-broker", config) as broker:
        yield broker


@pytest.fixture(scope="session")
def secured(session_directory: Path, kafka_runtime: KafkaRuntime) -> Iterator[SecuredBroker]:
    """The session's broker with ACLs and users: what a test grants, it grants to its own users."""
    config = secured_config(kafka_runtime, session_directory)
    with shared_broker(session_directory, "secured-broker", config) as broker:
        yield SecuredBroker(broker.bootstrap_servers, broker.sasl_bootstrap_servers)


@pytest.fixture(scope="session")
def java_worker(
    kafka_broker: SharedBroker,
    kafka_runtime: KafkaRuntime,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SharedJavaWorker]:
    """A Java distributed worker on the session's broker.

    Each of pytest-xdist's workers has its own: during a rebalance, which any test's connector
    causes, a Java worker refuses the requests of all.
    """
    group_id = make_unique_name("java-workers")
    directory = tmp_path_factory.mktemp("java-worker")
    launch = WorkerLaunch(
        directory=directory,
        properties=worker_properties(kafka_broker.bootstrap_servers, group_id),
        hold_file=directory / "hold",
    )
    with JavaConnectWorker(kafka_runtime, launch) as worker:
        yield SharedJavaWorker(url=worker.url, group_id=group_id)


@pytest.fixture(scope="session")
def schema_registry_url(session_directory: Path) -> Iterator[str]:
    """The session's schema registry: the address that `schema.registry.url` takes."""

    def start(hold_file: Path) -> tuple[Server, Mapping[str, str]]:
        server = SchemaRegistryServer(
            find_registry(),
            directory=session_directory / "shared-schema-registry",
            hold_file=hold_file,
        ).start()
        return server, {"url": server.url}

    with shared_server(session_directory, "schema-registry", start) as addresses:
        yield addresses["url"]


@pytest.fixture(scope="session")
def agent_worker(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedAgentWorker]:
    """A distributed agent on the session's broker, in a group of its own.

    Each of pytest-xdist's workers has its own, as with the Java worker.
    """
    group_id = make_unique_name("agents")
    directory = tmp_path_factory.mktemp("agent")
    launch = WorkerLaunch(
        directory=directory,
        properties={
            **worker_properties(kafka_broker.bootstrap_servers, group_id),
            # As the Java worker that it is compared with.
            "agent.restart.policy": "never",
        },
        hold_file=directory / "hold",
    )
    with AgentProcess(launch) as agent:
        yield SharedAgentWorker(url=agent.url, group_id=group_id)


@pytest.fixture
def servers(kafka_runtime: KafkaRuntime, tmp_path: Path) -> Iterator[Servers]:
    """Starts brokers, clusters and Java workers of the test's own, and ends them with it."""
    started = Servers(kafka_runtime, tmp_path)
    yield started
    started.close()


@pytest.fixture(scope="module")
def module_servers(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    """Starts servers for the tests of one module, and ends them with it."""
    started = Servers(kafka_runtime, tmp_path_factory.mktemp("servers"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def unique_name() -> Callable[[str], str]:
    """Makes names that no other test uses."""
    return make_unique_name


@pytest.fixture
def deaths(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Return the deaths of this process that were requested; none takes place."""
    found: list[BaseException] = []
    monkeypatch.setattr(long_lived, "end_process", found.append)
    return found
