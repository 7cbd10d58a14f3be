"""`pyconnect connectors logs` against the agent's own REST server."""

import json
from collections.abc import Iterator

import pytest

from pyconnect_agent.core.log_lines import LogLine
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.fake_admin import FakeAdmin
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import rest_config, serving

pytestmark = pytest.mark.wire

NOON_MS = 1_767_268_800_000


def line(number: int, text: str, *, task: int | None = 0, level: str = "INFO") -> LogLine:
    return LogLine(
        number=number,
        time_ms=NOON_MS + number * 1_000,
        level=level,
        logger="plugin",
        connector="c",
        task=task,
        pid=7,
        text=text,
    )


@pytest.fixture
def admin() -> FakeAdmin:
    found = FakeAdmin()
    found.lines = [
        line(1, "one", task=None),
        line(3, "three", level="WARN"),
        line(5, "five\n    ValueError: \x1b[2Jx", task=1, level="ERROR"),
    ]
    return found


@pytest.fixture
def agent(admin: FakeAdmin) -> Iterator[str]:
    """Serve an agent and yield its address."""
    with serving(rest_config(), FakeHerder(), admin) as server:
        yield f"http://{server.listeners[0].netloc}"


def texts(out: str) -> list[str]:
    """Return the last word of each line that begins with a time."""
    return [row.split()[-1] for row in out.splitlines() if row[:2] == "20"]


def test_lines_of_all_workers_come_in_order_of_time(run: Run, agent: str) -> None:
    """Lines of all workers are in order of time, with escaped traces below them."""
    other = FakeAdmin()
    other.lines = [line(2, "two", task=2), line(4, "four", task=2)]
    with serving(rest_config(), FakeHerder(), other) as server:
        second = f"http://{server.listeners[0].netloc}"
        outcome = run("connectors", "logs", "c", "--url", agent, "--url", second)
    assert outcome.code == 0
    assert texts(outcome.out) == ["one", "two", "three", "four", "five"]
    assert [row.split()[3] for row in outcome.out.splitlines()[:2]] == ["c", "c/2"]
    assert "    ValueError: \\x1b[2Jx" in outcome.out


@cases(
    "options, found",
    (("--task", "0"), ["three"]),
    (("--level", "warn"), ["three", "five"]),
    (("--tail", "1"), ["five"]),
    (("--tail", "0"), []),
    (("--since", "1m"), []),
)
def test_options_select(run: Run, agent: str, options: tuple[str, ...], found: list[str]) -> None:
    """--task, --level, --tail and --since select lines."""
    assert texts(run("connectors", "logs", "c", *options, address=agent).out) == found


def test_each_line_is_an_object_for_programs(run: Run, agent: str) -> None:
    """-o ndjson prints an object for each line, with its worker."""
    outcome = run("connectors", "logs", "c", "-o", "ndjson", address=agent)
    documents = [json.loads(row) for row in outcome.out.splitlines()]
    assert [document["text"][:4] for document in documents] == ["one", "thre", "five"]
    assert {document["url"] for document in documents} == {agent}


def test_following_prints_each_line_once(run: Run, agent: str, admin: FakeAdmin) -> None:
    """--follow prints each line once, also those of a worker that was restarted."""
    asked = admin.logs

    def grow(question: object) -> object:
        answer = asked(question)  # type: ignore[arg-type]
        if admin.epoch == 1:
            admin.epoch, admin.lines = 2, [line(1, "again")]
        return answer

    admin.logs = grow  # type: ignore[assignment, method-assign]
    outcome = run("connectors", "logs", "c", "--follow", "--timeout", "4s", address=agent, code=0)
    assert texts(outcome.out) == ["one", "three", "five", "again"]


def test_logs_need_an_agent_and_a_known_level(run: Run, agent: str) -> None:
    """A Java worker is exit 9 with the reason, and an unknown level is exit 2."""
    assert "it is a Java worker" in run("connectors", "logs", "orders", code=9).err
    assert "WARN" in run("connectors", "logs", "c", "--level", "LOUD", address=agent, code=2).err
