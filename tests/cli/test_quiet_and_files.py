"""`-q`, exported directories, stored options, and views that name the same thing alike."""

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
    """A cron job sends mail for every line."""
    ended = run(*command, "-q")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_quiet_check_prints_what_it_found_wrong(run: Run, connect: FakeConnect) -> None:
    """The exit code alone would not say which worker."""
    connect.failures["GET /health"] = [(500, "no")]
    assert "unhealthy" in run("health", "-q", code=1).out
    connect.invalid_keys = ("team",)
    ended = run("connectors", "validate", "orders", "-q")
    assert (ended.code, "team" in ended.out) == (1, True)
    assert run("status", "-q").out  # a task is FAILED


def test_a_stored_output_format_is_reported(run: Run) -> None:
    """It would change every later command in silence."""
    ended = run("context", "set", "c", "--url", "http://one:8083", "-o", "json", "--timeout", "5m")
    assert ended.code == 0
    assert "--output json is stored" in ended.err
    assert "--timeout 5m is stored" in ended.err


def test_an_export_prunes_files_of_deleted_connectors(run: Run, connect: FakeConnect) -> None:
    """Without the option it names them: `apply` would create the connectors again."""
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
    """Files of connectors outside the selection stay."""
    export = ("connectors", "export", "--show-secrets", "--dir", "d")
    run(*export)
    run(*export, "-l", "team=a", "--prune")
    assert sorted(path.name for path in Path("d").iterdir()) == ["broken.json", "orders.json"]


def test_an_agent_always_shows_its_version(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`agent status` shows that one; Kafka's version stays in the documents."""
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
    """Everything that an agent has runs on agents."""
    plugins = [Plugin(class_name="shop.orders.OrdersSource", type="source")]
    config = {"connector.class": "shop.orders.OrdersSource", "value.converter": "shop.Converter"}
    findings = readiness(plugins, [ConnectorInfo(name="c", config=config)], None, agent=True)
    assert {finding.status for finding in findings} == {"ok"}
    assert not [finding for finding in findings if "Java" in finding.detail]


def test_one_is_singular() -> None:
    """`1 partitions` is no number of partitions."""
    expected = ("1 partition", "0 partitions", "2 workers")
    assert (counted(1, "partition"), counted(0, "partition"), counted(2, "worker")) == expected
