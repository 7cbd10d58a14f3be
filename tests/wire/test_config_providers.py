"""Values of config providers in real children: they expire, and stay out of errors and traces."""

from pathlib import Path

import pytest

from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.plugins.bad_plugins import BAD_SOURCE
from tests.support.plugins.plugin_directories import EXPIRING_PROVIDER

pytestmark = pytest.mark.wire

WAIT_S = 30
PROVIDER = {
    "config.providers": "expiring",
    "config.providers.expiring.class": EXPIRING_PROVIDER,
    "config.providers.expiring.param.ttl.ms": "100",
}


def source(secret: Path, **settings: str) -> dict[str, str]:
    return {
        "name": "c",
        "connector.class": "FileStreamSource",
        "topic": "t",
        "file": f"${{expiring:{secret}:value}}",
        **settings,
    }


async def restarted(w: ChildrenWorld, config: dict[str, str]) -> bool:
    """Start the connector again, as the herder does; return whether it finds other values."""
    await w.children.connectors.stop(["c"])
    w.start_connector(config)
    await w.connector_is("c", State.RUNNING)
    generated = await w.children.connectors.generate_task_configs("c", config, config)
    return generated.values_changed


async def test_a_restart_is_asked_for_once_values_expire(tmp_path: Path) -> None:
    """A restart is requested once values expire, unless config.action.reload=none."""
    secret = tmp_path / "secret"
    secret.write_text("value")
    unwilling = source(secret, name="d", **{"config.action.reload": "none"})

    async with children_world(PROVIDER) as w:
        w.start_connector(unwilling)
        await w.connector_is("d", State.RUNNING)
        w.start_connector(source(secret))
        await eventually_async(lambda: bool(w.listener.expired), WAIT_S)
        # The other connector's values expired first.
        assert set(w.listener.expired) == {"c"}


async def test_only_other_values_are_reported_as_changed(tmp_path: Path) -> None:
    """A restarted connector reports only values that have changed, so that tasks restart."""
    secret = tmp_path / "secret"
    secret.write_text("old")
    config = source(secret)

    async with children_world(PROVIDER) as w:
        assert await restarted(w, config) is False
        assert await restarted(w, config) is False
        secret.write_text("new")
        assert await restarted(w, config) is True
        assert await restarted(w, config) is False
        # A change of the config itself is reported elsewhere.
        assert await restarted(w, {**config, "topic": "u"}) is False


T0 = ConnectorTaskId("c", 0)
SECRET = "sesame-open"
PROVIDERS = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
SOURCE = {"name": "c", "connector.class": BAD_SOURCE, "tasks.max": "1"}


@pytest.fixture
def reference(tmp_path: Path) -> str:
    """A reference to a secret in a file."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"password={SECRET}\n")
    return f"${{file:{secrets}:password}}"


async def test_a_refused_configuration_does_not_reveal_a_secret(reference: str) -> None:
    """A refused config shows references instead of secrets, also if the validation fails."""
    async with children_world(PROVIDERS) as w:
        config = {**SOURCE, "producer.override.batch.size": reference}
        with pytest.raises(InternalError) as raised:
            await w.children.jobs.validate(config, 60_000)
        assert SECRET not in raised.value.message
        assert f"Invalid value {reference} for" in raised.value.message


async def test_a_failing_task_does_not_reveal_a_part_of_its_setting(reference: str) -> None:
    """A trace shows the reference even if a plugin quotes a part of a longer value."""
    config = {**SOURCE, "login": f"alice:{reference}", "task.start": "quote"}

    async with children_world(PROVIDERS) as w:
        w.children.tasks.start(T0, config, config, TargetState.STARTED)
        await w.task_is(T0, State.FAILED)
        trace = w.listener.task_trace(T0)
        assert f"no entry for {reference}" in trace
        assert SECRET not in trace
