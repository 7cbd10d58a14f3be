"""The same command on several contexts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_cli.app import combined
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve

pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("contexts")]


@pytest.fixture
def contexts(run: Run, url: str, us: FakeConnect, us_url: str) -> None:
    """Contexts `eu`, with orders and broken, and `us`, with orders only."""
    for name, address in (("eu", url), ("us", us_url), ("dead", "http://127.0.0.1:9")):
        assert run("context", "set", name, "--url", address, address=None).code == 0


@pytest.fixture
def us() -> FakeConnect:
    config: dict[str, str | None] = {"connector.class": "org.example.FileSource"}
    return FakeConnect(connectors={"orders": FakeConnector(config=config)})


@pytest.fixture
def us_url(us: FakeConnect) -> Iterator[str]:
    with serve(us) as address:
        yield address


def test_a_verb_runs_on_each_context(run: Run, us_url: str) -> None:
    """The contexts have the given order, each result below its name."""
    outcome = run("connectors", "list", "--context", "us,eu", address=None, code=0)
    lines = outcome.out.splitlines()
    assert (lines[0], lines[3]) == ("context us:", "context eu:")
    assert len(lines) == 7
    repeated = run("--context=us", "connectors", "list", "--context", "eu", address=None)
    assert repeated.out == outcome.out
    machine = run("connectors", "list", "-o", "name", "--context", "us,eu", address=None)
    assert machine.out.split() == ["orders", "broken", "orders"]
    assert machine.err.splitlines() == ["context us:", "context eu:"]
    hint = run("connectors", "stop", "nosuch", "--context", "us,eu", address=None).err
    assert "pyconnect --context us connectors list" in hint


def test_a_failed_change_ends_the_run(run: Run, connect: FakeConnect, us: FakeConnect) -> None:
    """A failed change is not tried on later contexts, which are named; reading verbs go on."""
    outcome = run("connectors", "stop", "broken", "--context", "us,eu", address=None)
    assert (outcome.code, connect.connectors["broken"].state) == (8, "RUNNING")
    assert outcome.err.splitlines()[-1] == "warning: not tried: eu"
    looked = run("connectors", "list", "--context", "dead,us", address=None)
    assert (looked.code, "orders" in looked.out) == (8, True)
    assert run("connectors", "stop", "orders", "--context", "eu,us", address=None).code == 0
    expected = ("STOPPED", "STOPPED")
    assert (connect.connectors["orders"].state, us.connectors["orders"].state) == expected


def test_an_unknown_context_stops_all(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """Nothing is changed on any context; a file for one result is refused for several contexts."""
    assert run("connectors", "stop", "orders", "--context", "eu,nosuch", address=None).code == 3
    textfile = ("--textfile", str(tmp_path / "x.prom"))
    words = ("connectors", "stop", "orders", "--context", "eu,us", *textfile)
    assert run(*words, address=None).code == 2
    assert connect.connectors["orders"].state == "RUNNING"


def test_documents_of_each_context_are_separated(run: Run) -> None:
    """YAML documents have a separator; each summary is one line."""
    text = run("connectors", "list", "-o", "yaml", "--context", "us,eu", address=None).out
    assert text.count("---\n") == 2
    words = ("connectors", "pause", "orders", "--summary-json", "--context", "us,eu")
    lines = run(*words, address=None).out.splitlines()
    assert [json.loads(line)["exit_code"] for line in lines] == [0, 0]


@cases("codes, expected", ([0, 0], 0), ([7, 7], 7), ([0, 7], 8), ([7], 8), ([0, 130], 130))
def test_the_exit_code_combines_all_runs(codes: list[int], expected: int) -> None:
    """A code is kept if all runs have it."""
    assert combined(codes, 2) == expected
