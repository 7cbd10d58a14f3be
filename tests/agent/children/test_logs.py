"""Files of connectors' logs, and the connectors to which the worker's records belong."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyconnect_agent.channel.reports import LineLogged
from pyconnect_agent.children.logs import ChildLogs, LogSettings
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.log_lines import LogQuestion
from tests.support.cases import cases

LOG = logging.getLogger("worker")


@contextmanager
def started(directory: Path | None = None) -> Iterator[ChildLogs]:
    logs = ChildLogs(LogSettings(directory=directory))
    logs.start()
    try:
        yield logs
    finally:
        logs.stop()


def line(text: str) -> LineLogged:
    return LineLogged(time_ms=1_000, level="INFO", logger="plugin", text=text)


@cases(
    "name, file", ("orders", "orders.log"), ("../orders", "%2E.%2Forders.log"), ("a b", "a b.log")
)
def test_no_name_leads_out_of_the_directory(tmp_path: Path, name: str, file: str) -> None:
    """A file's name is a quoted connector name, which may have any characters."""
    with started(tmp_path / "logs") as logs:
        logs.add((name, 3), line("one"), 7)
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [file]
    text = (tmp_path / "logs" / file).read_text()
    assert " INFO task-3 one (plugin)\n" in text


def test_only_the_workers_user_can_read_the_files(tmp_path: Path) -> None:
    """Other users cannot read an existing file either; its group keeps the right to read."""
    directory = tmp_path / "logs"
    for mode in (0o600, 0o640):
        with started(directory) as logs:
            logs.add(("orders", 0), line("one"), 7)
        file = directory / "orders.log"
        assert (file.stat().st_mode & 0o777, directory.stat().st_mode & 0o777) == (mode, 0o700)
        file.chmod(0o644)


@cases(
    "fields, task",
    ({"task": "a-b-1"}, 1),
    ({"task": ConnectorTaskId("a-b", 1)}, 1),
    ({"child": "task a-b-1"}, 1),
    ({"connector": "a-b"}, None),
    ({"child": "connector a-b"}, None),
)
def test_a_childs_log_has_the_workers_records(fields: dict[str, object], task: int | None) -> None:
    """The fields of a record decide to which connector or task it belongs."""
    with started() as logs:
        LOG.error("an event", extra=fields)
    (found,) = logs.lines(LogQuestion(connector="a-b"))["lines"]
    assert (found["task"], found["level"], found["pid"]) == (task, "ERROR", None)


def test_other_lines_of_the_worker_are_nobodys() -> None:
    """A record whose fields only look like a task's belongs to no connector."""
    with started() as logs:
        LOG.error("an event", extra={"task": "memory", "connector": ""})
    assert logs.lines(LogQuestion(connector="memory"))["lines"] == []


def test_numbers_go_on_and_belong_to_a_life_of_the_worker() -> None:
    """Numbers of another worker process have another epoch, so a reader starts again."""
    logs, later = ChildLogs(LogSettings()), ChildLogs(LogSettings())
    logs.add(("c", 0), line("one"), 1)
    first = logs.lines(LogQuestion(connector="c"))
    logs.add(("c", 0), line("two"), 1)
    second = logs.lines(LogQuestion(connector="c", after=first["next"]))
    assert [found["text"] for found in second["lines"]] == ["two"]
    assert first["epoch"] == second["epoch"] != later.lines(LogQuestion(connector="c"))["epoch"]
