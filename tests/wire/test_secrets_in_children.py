"""Values of config providers stay out of refusals and traces."""

from pathlib import Path

import pytest

from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.fakes.children_world import children_world
from tests.support.plugins.bad_plugins import BAD_SOURCE

pytestmark = pytest.mark.wire

T0 = ConnectorTaskId("c", 0)
SECRET = "sesame-open"
PROVIDERS = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
SOURCE = {"name": "c", "connector.class": BAD_SOURCE, "tasks.max": "1"}


@pytest.fixture
def reference(tmp_path: Path) -> str:
    """Of a secret in a file."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"password={SECRET}\n")
    return f"${{file:{secrets}:password}}"


async def test_a_refused_configuration_does_not_reveal_a_secret(reference: str) -> None:
    """Also where validation itself gives up."""
    async with children_world(PROVIDERS) as w:
        config = {**SOURCE, "producer.override.batch.size": reference}
        with pytest.raises(InternalError) as raised:
            await w.children.jobs.validate(config, 60_000)
        assert SECRET not in raised.value.message
        assert f"Invalid value {reference} for" in raised.value.message


async def test_a_failing_task_does_not_reveal_a_part_of_its_setting(reference: str) -> None:
    """A plugin quotes what it cut out of a longer value."""
    config = {**SOURCE, "login": f"alice:{reference}", "task.start": "quote"}

    async with children_world(PROVIDERS) as w:
        w.children.tasks.start(T0, config, config, TargetState.STARTED)
        await w.task_is(T0, State.FAILED)
        trace = w.listener.task_trace(T0)
        assert f"no entry for {reference}" in trace
        assert SECRET not in trace
