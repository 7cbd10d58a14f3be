"""Java processes that the worker keeps for further validations."""

import shutil
import time
from collections.abc import Mapping

import psutil
import pytest

from pyconnect_agent.children import jobs
from pyconnect_agent.core.plugin_catalog import PluginDesc, PluginKind
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled, connector
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world

pytestmark = pytest.mark.java

TIMEOUT_MS = 120_000
REMEMBERS = """
    private String last;
    @Override public org.apache.kafka.common.config.Config validate(Map<String, String> config) {
        var found = super.validate(config);
        var value = new org.apache.kafka.common.config.ConfigValue("secret");
        if (last != null) {
            value.addErrorMessage("An earlier validation had " + last);
        }
        last = config.get("secret");
        found.configValues().add(value);
        return found;
    }
"""


@pytest.fixture(scope="module")
def plugins(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PluginDesc, ...]:
    """Connectors of three locations that would reveal the secret of an earlier validation."""
    root = tmp_path_factory.mktemp("kept")
    names = [f"{package}.Remembers" for package in ("a", "b", "c")]
    sources = {name: connector(name, body=REMEMBERS) for name in names}
    compiled(kafka_runtime, sources, root / "classes")
    for package in "abc":
        shutil.move(root / "classes" / package, root / f"location-{package}" / package)
    return tuple(
        PluginDesc(
            class_name=name,
            python_path="",
            kind=PluginKind.SOURCE,
            version="1.0",
            search_path=str(root / f"location-{name[0]}"),
            is_java=True,
        )
        for name in names
    )


async def validate(world: ChildrenWorld, package: str, **more: str) -> tuple[int, ...]:
    """Validate a config without errors; return the pids of the Java processes that are kept."""
    config: Mapping[str, str] = {
        "name": "c",
        "connector.class": f"{package}.Remembers",
        "secret": "s3cret",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    infos = await world.children.jobs.validate(config, TIMEOUT_MS)
    assert infos.error_count == 0, infos.error_text()
    return kept(world)


def kept(world: ChildrenWorld) -> tuple[int, ...]:
    """Return the pids of the Java processes below the waiting ones."""
    pids = [process.child.pid for process in world.children.jobs._idle._idle]
    return tuple(
        sorted(
            java.pid
            for pid in pids
            for java in psutil.Process(pid).children(recursive=True)
            if java.name() == "java"
        )
    )


async def test_a_process_is_used_again_for_its_location(plugins: tuple[PluginDesc, ...]) -> None:
    """A plugin never sees an earlier validation's config; a process with own options ends."""
    async with children_world(plugins=plugins) as world:
        began_s = time.monotonic()
        first = await validate(world, "a")
        cold_s = time.monotonic() - began_s
        assert len(first) == 1
        began_s = time.monotonic()
        assert await validate(world, "a") == first
        assert time.monotonic() - began_s < cold_s / 2
        assert await validate(world, "a", agent_java_heap="128m") == first
        psutil.Process(first[0]).kill()
        assert await validate(world, "a") != first
        world.children.set_logger_level("a", "DEBUG")
        await eventually_async(lambda: kept(world) == ())


async def test_few_processes_wait_and_not_for_long(
    plugins: tuple[PluginDesc, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that has waited longest ends first, and all end with the worker."""
    async with children_world(plugins=plugins) as world:
        a = await validate(world, "a")
        b = await validate(world, "b")
        c = await validate(world, "c")
        assert set(a) < set(b)
        assert len(c) == jobs.MOST_IDLE
        assert not set(a) & set(c)
        monkeypatch.setattr(jobs, "IDLE_S", 0.2)
        assert len(await validate(world, "c")) == 2
        await eventually_async(lambda: len(kept(world)) == 1)
        (last,) = kept(world)
    await eventually_async(lambda: not _runs(last))


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
