"""Levels of loggers that are set while children run."""

from pathlib import Path

import pytest

from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.wire.level_source import LEVEL_SOURCE, LOGGER

pytestmark = pytest.mark.wire

WAIT_S = 30


async def test_levels_reach_children_that_run_and_those_that_come(tmp_path: Path) -> None:
    """In the order in which they were set, as at the worker."""
    first, second = tmp_path / "first", tmp_path / "second"

    def config(file: Path) -> dict[str, str]:
        return {"name": file.name, "connector.class": LEVEL_SOURCE, "file": str(file)}

    async with children_world() as w:

        async def has_level(file: Path, level: str) -> None:
            await eventually_async(lambda: file.exists() and file.read_text() == level, WAIT_S)

        await w.run_task(config(first))
        await has_level(first, "INFO")
        w.children.set_logger_level(LOGGER, "ERROR")
        w.children.set_logger_level("tests", "DEBUG")
        await has_level(first, "DEBUG")
        await w.run_task(config(second))
        await has_level(second, "DEBUG")
        w.children.set_logger_level(LOGGER, "WARN")
        for file in (first, second):
            await has_level(file, "WARNING")
