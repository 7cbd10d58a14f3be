"""Java workers of earlier versions, with the answers of Kafka Connect 2.8.2, and odd names."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_cli.errors import ExitCode
from pyconnect_cli.rest.client import kafka_version
from tests.cli.conftest import Run
from tests.support.connect_server import FakeConnect, FakeConnector


@pytest.fixture
def old(connect: FakeConnect) -> FakeConnect:
    connect.version = "2.8.2"
    return connect


def posts(connect: FakeConnect) -> list[str]:
    return [request for request in connect.requests if request.startswith("POST")]


def test_tasks_of_a_worker_before_3_0_are_restarted_one_by_one(run: Run, old: FakeConnect) -> None:
    """It ignores `includeTasks` and answers 204, as for a restart of the connector alone."""
    ended = run("connectors", "restart", "broken")
    assert (ended.code, ended.out) == (0, "broken: restarted (connector, task 0, task 1)\n")
    assert old.connectors["broken"].tasks == ["RUNNING", "RUNNING"]
    assert posts(old) == [
        "POST /connectors/broken/restart",
        "POST /connectors/broken/tasks/0/restart",
        "POST /connectors/broken/tasks/1/restart",
    ]


def test_only_failed_restarts_nothing_else_before_3_0(run: Run, old: FakeConnect) -> None:
    """The connector runs: the flag would be ignored, and it would be restarted."""
    ended = run("connectors", "restart", "--all", "--only-failed")
    assert ended.code == 0, ended.err
    assert "broken: restarted (task 1)\n" in ended.out
    assert "orders: restarted (nothing had failed)\n" in ended.out
    assert posts(old) == ["POST /connectors/broken/tasks/1/restart"]
    old.connectors["broken"].state = "FAILED"
    old.requests.clear()
    run("connectors", "restart", "broken", "--only-failed", "--connector-only")
    assert posts(old) == ["POST /connectors/broken/restart"]


def test_the_connector_alone_is_restarted_in_any_version(run: Run, old: FakeConnect) -> None:
    """This request has been there from the beginning."""
    assert run("connectors", "restart", "broken", "--connector-only").code == 0
    assert posts(old) == ["POST /connectors/broken/restart"]


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.8.2", (2, 8)), ("3.0.0-cp1", (3, 0)), ("4.4", (4, 4)), ("trunk", (10**9, 0))],
)
def test_versions_are_compared_as_numbers(text: str, version: tuple[int, int]) -> None:
    """An unknown text counts as the latest."""
    assert kafka_version(text) == version


@pytest.mark.parametrize("name", ["semi;colon", "pct%41"])
@pytest.mark.parametrize(
    "command",
    [
        ("connectors", "delete", "NAME", "--yes"),
        ("connectors", "restart", "NAME"),
        ("connectors", "patch", "NAME", "--set", "a=b"),
        ("tasks", "restart", "NAME/0"),
        ("offsets", "reset", "NAME", "--yes"),
    ],
)
def test_a_java_worker_gets_no_change_that_it_could_forward_to_another_connector(
    run: Run, connect: FakeConnect, name: str, command: tuple[str, ...]
) -> None:
    """A follower decodes the name: of `semi;colon` it would delete `semi`."""
    connect.connectors[name] = FakeConnector(config={"name": name}, state="STOPPED", tasks=[])
    ended = run(*(word.replace("NAME", name) for word in command))
    assert ended.code == ExitCode.PRECONDITION, ended.err
    assert "is not the leader forwards" in ended.err
    assert not [request for request in connect.requests if not request.startswith("GET")]


@pytest.mark.parametrize("verb", ["pause", "resume", "stop"])
def test_a_state_is_written_by_the_worker_that_is_asked(
    run: Run, connect: FakeConnect, verb: str
) -> None:
    """No name is refused for it."""
    connect.connectors["semi;colon"] = FakeConnector(config={"name": "semi;colon"})
    assert run("connectors", verb, "semi;colon").code == 0


def test_an_agent_forwards_every_name_as_it_is(
    run: Run, connect: FakeConnect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names are refused for Java workers only."""
    monkeypatch.setattr("pyconnect_cli.rest.model.WorkerInfo.agent", property(lambda _: True))
    connect.connectors["semi;colon"] = FakeConnector(config={"name": "semi;colon"})
    assert run("connectors", "delete", "semi;colon", "--yes").code == 0
    assert "semi;colon" not in connect.connectors


@pytest.mark.parametrize(
    ("name", "code"),
    [(".", ExitCode.USAGE), ("..", ExitCode.USAGE), ("a;b", ExitCode.PRECONDITION)],
)
@pytest.mark.parametrize("verb", [("create", "--set", "connector.class=C"), ("apply",)])
def test_a_name_that_no_path_carries_is_not_created(
    run: Run, connect: FakeConnect, tmp_path: Path, name: str, code: int, verb: tuple[str, ...]
) -> None:
    """The connector could be neither seen nor deleted."""
    file = tmp_path / "c.json"
    file.write_text(f'{{"name": "{name}", "connector.class": "C"}}')
    given = (name,) if verb[0] == "create" else ("-f", str(file), "--yes")
    ended = run("connectors", *verb, *given)
    assert ended.code == code, ended.err
    assert name not in connect.connectors


def test_a_deletion_is_read_back(run: Run, connect: FakeConnect) -> None:
    """A worker's 204 is not the proof."""
    connect.failures["DELETE /connectors/orders"] = [(200, "")]
    ended = run("connectors", "delete", "orders", "--yes", "--timeout", "2s")
    assert ended.code == ExitCode.SERVER_ERROR
    assert "orders still exists" in ended.err


@pytest.mark.parametrize("verb", [("kill", "--yes"), ("restart",), ("stacks",), ("describe",)])
def test_a_connectors_name_is_never_read_as_a_task(
    run: Run, connect: FakeConnect, verb: tuple[str, ...]
) -> None:
    """`t-1` is task 1 of `t` only if no connector is named so."""
    connect.connectors["t-1"] = FakeConnector(config={"name": "t-1"})
    connect.connectors["t"] = FakeConnector(config={"name": "t"}, tasks=["RUNNING"] * 2)
    ended = run("tasks", verb[0], "t-1", *verb[1:])
    assert ended.code == ExitCode.USAGE
    assert "`t-1` is the name of a connector" in ended.err
    assert "pyconnect tasks list t-1" in ended.err
    assert run("tasks", "describe", "t-0").code == 0
    assert run("tasks", "describe", "t/1").code == 0


@pytest.mark.parametrize("text", ["t/²", "t/" + "9" * 5000, "t/", "/1", "t"])
def test_a_number_of_a_task_has_decimal_digits(run: Run, text: str) -> None:
    """Other digits of Unicode are not numbers here, and a long number is no internal error."""
    ended = run("tasks", "describe", text)
    assert ended.code == ExitCode.USAGE
    assert "is not the name of a task" in ended.err
