"""The logs of real child processes, and the levels of their loggers."""

from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.children.logs import LogSettings
from pyconnect_agent.core.ids import State, TargetState
from pyconnect_agent.core.log_lines import LogQuestion
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.plugins.bad_plugins import LEVEL_SOURCE, LOGGER, bad_source

pytestmark = pytest.mark.wire

SECRET = "sesame-open"
PROVIDERS = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}


def lines(world: ChildrenWorld, **question: Any) -> list[dict[str, Any]]:
    """Return the lines without those of the clients, which have no brokers."""
    found = world.children.logs(LogQuestion(connector="c", **question))["lines"]
    return [line for line in found if "kafka" not in line["logger"]]


async def test_the_lines_before_a_crash_are_there_after_it_and_after_the_restart() -> None:
    """After a restart the log still has the lines, the death and the last words of the process."""
    async with children_world() as w:
        task_id = w.start_task(bad_source(poll="log-and-abort"))
        await w.task_is(task_id, State.FAILED)
        died = lines(w, task=0, level="WARN")
        assert died[0]["text"] == "the last line before the end"
        assert died[0]["pid"] is not None
        assert (died[-1]["level"], died[-1]["pid"]) == ("ERROR", None)
        assert "task process ended by itself" in died[-1]["text"]
        assert "Fatal Python error: Aborted" in died[-1]["text"]
        config = bad_source(log="hello")
        w.children.tasks.start(task_id, config, config, TargetState.STARTED)
        await w.task_is(task_id, State.RUNNING)
        texts = [line["text"] for line in lines(w, task=0, level="WARN")]
        assert texts[: len(died)] == [line["text"] for line in died]
        assert texts[-1] == "as the config says said=hello"
        numbers = [line["number"] for line in lines(w)]
        assert numbers == sorted(numbers)


@cases("plain", False, True)
async def test_secrets_do_not_reach_the_logs(tmp_path: Path, *, plain: bool) -> None:
    """Neither a provider's value nor a plain password of a config is in the log."""
    (tmp_path / "secrets").write_text(f"p={SECRET}\n")
    written = SECRET if plain else f"${{file:{tmp_path / 'secrets'}:p}}"
    config = {**bad_source(log=f"it is {SECRET}"), "db.password": written}

    logs = LogSettings(directory=tmp_path / "logs")
    async with children_world(PROVIDERS, logs=logs) as w:
        await w.running_task(config)
        texts = [line["text"] for line in lines(w, task=0)]
        shown = "[hidden]" if plain else written
        assert f'as the config says said="it is {shown}"' in texts
        assert SECRET not in str(texts)
    file = (tmp_path / "logs" / "c.log").read_text()
    assert "as the config says" in file
    assert SECRET not in file


async def test_a_file_of_each_connector_is_rotated(tmp_path: Path) -> None:
    """Log files of a connector are rotated, and the first one has the newest lines."""
    logs = LogSettings(directory=tmp_path, file_bytes=1, files=2)
    async with children_world(logs=logs) as w:
        for text in ("one", "two", "three"):
            task_id = await w.running_task(bad_source(log=text))
            await w.children.tasks.stop([task_id])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.log", "c.log.1"]
    assert "task-0" in (tmp_path / "c.log").read_text() + (tmp_path / "c.log.1").read_text()


async def test_a_directory_that_cannot_be_written_costs_only_its_files(tmp_path: Path) -> None:
    """A directory that cannot be written does not stop a task, whose lines stay in memory."""
    (tmp_path / "file").write_text("")

    async with children_world(logs=LogSettings(directory=tmp_path / "file")) as w:
        await w.running_task(bad_source(log="hello"))
        assert any("said=hello" in line["text"] for line in lines(w))


WAIT_S = 30


async def test_levels_reach_children_that_run_and_those_that_come(tmp_path: Path) -> None:
    """Running and later children have the levels in the order in which the worker set them."""
    first, second = tmp_path / "first", tmp_path / "second"

    def config(file: Path) -> dict[str, str]:
        return {"name": file.name, "connector.class": LEVEL_SOURCE, "file": str(file)}

    async with children_world() as w:

        async def has_level(file: Path, level: str) -> None:
            await eventually_async(lambda: file.exists() and file.read_text() == level, WAIT_S)

        w.start_task(config(first))
        await has_level(first, "INFO")
        w.children.set_logger_level(LOGGER, "ERROR")
        w.children.set_logger_level("tests", "DEBUG")
        await has_level(first, "DEBUG")
        w.start_task(config(second))
        await has_level(second, "DEBUG")
        w.children.set_logger_level(LOGGER, "WARN")
        for file in (first, second):
            await has_level(file, "WARNING")
