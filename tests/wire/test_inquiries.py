"""What children are asked: configs to validate, plugins to describe; none harms the supervisor."""

from __future__ import annotations

import pytest

from pyconnect_agent.core.errors import (
    BadRequestError,
    InternalError,
    NotFoundError,
    RequestTimedOutError,
)
from tests.support.bad_plugins import bad_source
from tests.support.children_world import children_world, run

pytestmark = pytest.mark.wire


def test_validation_runs_plugin_code_in_a_child() -> None:
    """An answer, an error of the plugin, a death and a hang: none harms the supervisor."""

    async def scenario() -> None:
        async with children_world() as w:
            infos = await w.children.validate({**bad_source(), "tasks.max": "x"}, 60_000)
            errors = {c.value.name: c.value.errors for c in infos.configs if c.value is not None}
            assert any("Not a number of type INT" in text for text in errors["tasks.max"])
            with pytest.raises(InternalError, match="ValueError: no good"):
                await w.children.validate(bad_source(validate="raise"), 60_000)
            overridden = {**bad_source(), "producer.override.batch.size": "x"}
            with pytest.raises(InternalError, match=r"^Invalid value x for") as raised:
                await w.children.validate(overridden, 60_000)
            assert raised.value.cause_class == "org.apache.kafka.common.config.ConfigException"
            with pytest.raises(InternalError, match="exited with code 7"):
                await w.children.validate(bad_source(validate="exit"), 60_000)
            with pytest.raises(RequestTimedOutError):
                await w.children.validate(bad_source(validate="hang"), 500)
            with pytest.raises(BadRequestError, match="contains no connector type"):
                await w.children.validate({"name": "c"}, 60_000)

    run(scenario)


def test_plugins_are_described_by_name() -> None:
    """Own keys come first; unknown names are not found."""

    async def scenario() -> None:
        async with children_world() as w:
            keys = await w.children.plugin_config("FileStreamSource", None)
            assert [key["name"] for key in keys][:3] == ["file", "topic", "batch.size"]
            with pytest.raises(NotFoundError, match=r"Unknown plugin Nothing\."):
                await w.children.plugin_config("Nothing", None)

    run(scenario)
