"""Questions to children: configs to validate, plugins to describe; none harms the worker."""

import pytest

from pyconnect_agent.core.errors import (
    BadRequestError,
    InternalError,
    NotFoundError,
    RequestTimedOutError,
)
from tests.support.fakes.children_world import children_world
from tests.support.plugins.bad_plugins import OddKeySource, bad_source

pytestmark = pytest.mark.wire


async def test_validation_runs_plugin_code_in_a_child() -> None:
    """An answer, an error of the plugin, a death and a hang: none harms the worker process."""
    async with children_world() as w:
        infos = await w.children.jobs.validate({**bad_source(), "tasks.max": "x"}, 60_000)
        errors = {c.value.name: c.value.errors for c in infos.configs if c.value is not None}
        assert any("Not a number of type INT" in text for text in errors["tasks.max"])
        with pytest.raises(InternalError, match="ValueError: no good"):
            await w.children.jobs.validate(bad_source(validate="raise"), 60_000)
        overridden = {**bad_source(), "producer.override.batch.size": "x"}
        with pytest.raises(InternalError, match=r"^Invalid value x for") as raised:
            await w.children.jobs.validate(overridden, 60_000)
        assert raised.value.cause_class == "org.apache.kafka.common.config.ConfigException"
        with pytest.raises(BadRequestError, match=r"returned a OSError as .* 'start'"):
            await w.children.jobs.validate(bad_source(validate="odd"), 60_000)
        with pytest.raises(InternalError, match="exited with code 7"):
            await w.children.jobs.validate(bad_source(validate="exit"), 60_000)
        with pytest.raises(RequestTimedOutError, match="did not answer within 500 ms"):
            await w.children.jobs.validate(bad_source(validate="hang"), 500)
        with pytest.raises(BadRequestError, match="contains no connector type"):
            await w.children.jobs.validate({"name": "c"}, 60_000)


async def test_an_answer_that_cannot_be_sent_is_refused_with_the_reason() -> None:
    """Of the plugin's key definitions, one has a value that is out of range."""
    async with children_world() as w:
        name = f"{OddKeySource.__module__}.{OddKeySource.__qualname__}"
        text = "The plugin's ConfigValidated cannot be sent: can't serialize ints"
        with pytest.raises(InternalError, match=text):
            await w.children.jobs.validate({**bad_source(), "connector.class": name}, 60_000)


async def test_plugins_are_described_by_name() -> None:
    """Own keys come first; unknown names are not found."""
    async with children_world() as w:
        keys = await w.children.jobs.plugin_config("FileStreamSource", None)
        assert [key["name"] for key in keys][:3] == ["file", "topic", "batch.size"]
        with pytest.raises(NotFoundError, match=r"Unknown plugin Nothing\."):
            await w.children.jobs.plugin_config("Nothing", None)
