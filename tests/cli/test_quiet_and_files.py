"""`-q`, exported directories, stored options, and the version of agents."""

import json
from pathlib import Path

import pytest

from pyconnect_cli.agents.readiness import readiness
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.answers import Plugin
from pyconnect_cli.rest.model import ConnectorInfo
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect


@cases(
    "command",
    ("health",),
    ("connectors", "validate", "orders"),
    ("connectors", "export", "--show-secrets", "--dir", "d"),
    ("offsets", "export", "orders", "-f", "o.json"),
    ("context", "set", "c", "--url", "http://one:8083"),
)
def test_quiet_commands_print_nothing_on_success(run: Run, command: tuple[str, ...]) -> None:
    """A successful command with -q prints nothing, because cron mails every line."""
    ended = run(*command, "-q")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_quiet_check_prints_what_it_found_wrong(run: Run, connect: FakeConnect) -> None:
    """A check with -q prints its findings, because the exit code does not name the object."""
    connect.failures["GET /health"] = [(500, "no")]
    assert "unhealthy" in run("health", "-q", code=1).out
    connect.invalid_keys = ("team",)
    ended = run("connectors", "validate", "orders", "-q")
    assert (ended.code, "team" in ended.out) == (1, True)
    assert run("status", "-q").out  # a task is FAILED


def test_a_stored_output_format_is_reported(run: Run) -> None:
    """A stored option is reported, because it changes every later command."""
    ended = run("context", "set", "c", "--url", "http://one:8083", "-o", "json", "--timeout", "5m")
    assert ended.code == 0
    assert "--output json is stored" in ended.err
    assert "--timeout 5m is stored" in ended.err


def test_an_export_prunes_files_of_deleted_connectors(run: Run, connect: FakeConnect) -> None:
    """--prune removes files of deleted connectors; without it they are only named."""
    export = ("connectors", "export", "--show-secrets", "--dir", "d")
    assert run(*export).code == 0
    Path("d/own.json").write_text('{"name": "own", "config": {}, "initial_state": "STOPPED"}')
    Path("d/note.json").write_text('{"name": "other", "config": {}}')
    Path("d/broken text.json").write_text("{")
    del connect.connectors["orders"]
    assert "files of connectors that do not exist: d/orders.json;" in run(*export).err
    assert Path("d/orders.json").exists()
    assert "removed d/orders.json" in run(*export, "--prune").err
    names = sorted(path.name for path in Path("d").iterdir())
    assert names == ["broken text.json", "broken.json", "note.json", "own.json"]
    assert run("connectors", "export", "--prune").code == 2


def test_a_selected_export_prunes_no_connector_that_exists(run: Run) -> None:
    """--prune keeps files of existing connectors outside the selection."""
    export = ("connectors", "export", "--show-secrets", "--dir", "d")
    run(*export)
    run(*export, "-l", "team=a", "--prune")
    assert sorted(path.name for path in Path("d").iterdir()) == ["broken.json", "orders.json"]


def test_an_agent_always_shows_its_version(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables show an agent's own version, and JSON has Kafka's version too."""
    monkeypatch.setattr(
        "pyconnect_cli.rest.model.WorkerInfo.agent_version", property(lambda _: "0.9.7")
    )
    for command in ("health", "status"):
        lines = run(command).out.splitlines()
        at = next(n for n, line in enumerate(lines) if "VERSION" in line)
        assert "0.9.7" in lines[at + 1]
        assert "4.3.1" not in lines[at + 1]
    (health,) = json.loads(run("health", "-o", "json").out)
    assert (health["version"], health["agent_version"]) == ("4.3.1", "0.9.7")


def test_readiness_does_not_call_an_agents_own_classes_java() -> None:
    """`readiness` does not call an agent's plugins Java, because the agent runs all of them."""
    plugins = [Plugin(class_name="shop.orders.OrdersSource", type="source")]
    config = {"connector.class": "shop.orders.OrdersSource", "value.converter": "shop.Converter"}
    findings = readiness(plugins, [ConnectorInfo(name="c", config=config)], None, agent=True)
    assert {finding.status for finding in findings} == {"ok"}
    assert not [finding for finding in findings if "Java" in finding.detail]


def test_one_is_singular() -> None:
    """A count of one has its noun in the singular."""
    expected = ("1 partition", "0 partitions", "2 workers")
    assert (counted(1, "partition"), counted(0, "partition"), counted(2, "worker")) == expected
