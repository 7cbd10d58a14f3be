"""The command line's own verbs, with the same expectations of Apache's worker and of our agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands.pyconnect_command import Command
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.java


@pytest.fixture(params=["java_worker", "agent_worker"])
def worker_url(request: pytest.FixtureRequest) -> str:
    """First Apache's worker, then our agent, on the same broker."""
    return str(request.getfixturevalue(request.param).url)


@pytest.fixture
def command(worker_url: str, tmp_path: Path) -> Command:
    return Command(tmp_path / "home", worker_url)


def test_the_life_of_a_connector(command: Command, tmp_path: Path) -> None:
    """Create, look, patch, pause, resume, stop, restart, apply, delete: the same on both kinds."""
    name = unique_name("cli")
    source = tmp_path / "in.txt"
    source.write_text("one\n")
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(source),
        "topic": unique_name("lines"),
    }
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps({"name": name, "config": config}))

    assert command("connectors", "validate", "-f", str(file)) == 0, command.err
    assert command("connectors", "create", "-f", str(file), "--wait", "RUNNING") == 0, command.err
    assert command("connectors", "create", "-f", str(file)) == 6, command.err
    assert command("connectors", "list", name, "-o", "json") == 0
    view = json.loads(command.out)[name]
    assert view["info"]["config"] == {"name": name, **config}
    assert view["status"]["tasks"][0]["state"] == "RUNNING"

    assert command("connectors", "patch", name, "--set", "batch.size=100") == 0, command.err
    # A Java worker shows what it has read back, a moment after it answered.
    eventually(lambda: command("connectors", "diff", "-f", str(file)) == 1)
    assert "batch.size=100" in command.out
    assert command("connectors", "apply", "-f", str(file), "--wait", "RUNNING") == 0, command.err
    eventually(lambda: command("connectors", "diff", "-f", str(file)) == 0)

    for verb, state in (("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPED")):
        assert command("connectors", verb, name, "--wait", state) == 0, command.err
    assert command("tasks", "list", name, "-o", "json") == 0
    assert json.loads(command.out) == []
    assert command("connectors", "resume", name, "--wait", "RUNNING") == 0, command.err
    assert command("connectors", "restart", name, "--wait") == 0
    assert command("tasks", "restart", f"{name}/0") == 0, command.err
    assert command("tasks", "describe", f"{name}/7") == 3
    assert command("connectors", "delete", name, "--yes", "--wait", "DELETED") == 0, command.err
    assert command("connectors", "get", name) == 3


def test_status_names_failures_and_lag(
    worker_url: str, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """The root cause of the failure, the lag of a sink, the rate of its commits: of both kinds."""
    command = Command(tmp_path / "home", worker_url, kafka_broker.bootstrap_servers)
    topic, source, sink, broken = (unique_name(each) for each in ("t", "source", "sink", "broken"))
    lines = tmp_path / "in.txt"
    lines.write_text("line\n" * 100)
    create = ("connectors", "create")
    file_source = ("-s", "connector.class=FileStreamSource", "-s", f"topic={topic}")
    file_sink = ("-s", "connector.class=FileStreamSink", "-s", f"topics={topic}")
    assert command(*create, source, *file_source, "-s", f"file={lines}", "--wait", "RUNNING") == 0
    assert command(*create, sink, *file_sink, "-s", f"file={tmp_path / 'out.txt'}") == 0
    assert command(*create, broken, *file_sink, "-s", f"file={tmp_path / 'no' / 'out.txt'}") == 0

    def status() -> Any:
        assert command("status", "-o", "json") == 1, command.err
        return json.loads(command.out)

    def cause() -> str:
        return str({each["name"]: each for each in status()["failed"]}[f"{broken}/0"]["cause"])

    eventually(lambda: f"{broken}/0" in [each["name"] for each in status()["failed"]])
    assert any(word in cause() for word in ("FileNotFound", "NoSuchFile")), cause()
    # Committed every minute, and when the sink is stopped.
    assert command("connectors", "stop", sink, "--wait", "STOPPED") == 0, command.err
    eventually(lambda: status()["lag"].get(sink) == 0, describe=lambda: status()["lag"])
    with lines.open("a") as more:
        more.write("line\n" * 7)
    eventually(lambda: status()["lag"].get(sink) == 7, describe=lambda: status()["lag"])
    for name in (source, sink, broken):
        assert command("connectors", "delete", name, "--yes") == 0, command.err


def test_wrong_configurations_are_reported_before_they_are_stored(
    command: Command, tmp_path: Path
) -> None:
    """Field errors come from the worker, one line each; exit 1 of validate, 2 of create."""
    name = unique_name("cli")
    file = tmp_path / "c.json"
    file.write_text(json.dumps({"connector.class": "FileStreamSource", "tasks.max": "none"}))
    assert command("connectors", "validate", name, "-f", str(file)) == 1
    assert f"{name}: tasks.max: Invalid value none" in command.out
    assert f'{name}: topic: Missing required configuration "topic"' in command.out
    assert command("connectors", "create", name, "-f", str(file)) == 2
    assert "tasks.max" in command.err


def test_a_worker_reports_health_info_plugins_and_loggers(command: Command) -> None:
    """Health, info, plugins and loggers are answered by both kinds."""
    assert command("health") == 0, command.err
    assert command("info", "-o", "json") == 0
    assert json.loads(command.out)["version"].startswith("4.")
    assert command("plugins", "list", "-o", "name") == 0
    assert "org.apache.kafka.connect.file.FileStreamSourceConnector" in command.out.split()
    assert command("plugins", "describe", "FileStreamSource", "-o", "json") == 0
    keys = {key["name"]: key for key in json.loads(command.out)}
    assert keys["topic"]["required"] is True
    assert command("plugins", "describe", "FileStreamSorce") == 3
    assert "FileStreamSource" in command.err
    logger = f"org.example.{unique_name('x').replace('-', '')}"
    assert command("loggers", "set", logger, "DEBUG") == 0, command.err
    assert command("loggers", "get", logger) == 0
    assert command.out.strip() == "DEBUG"
    assert command("loggers", "set", logger, "LOUD") == 2
