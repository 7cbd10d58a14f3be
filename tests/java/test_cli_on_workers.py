"""The command line on Apache's worker and on our agent, dead letters and backups included."""

import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.agents.agent import append_lines, sink_config, source_config
from tests.support.commands.pyconnect_command import Command
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker, SharedJavaWorker
from tests.support.servers.topics import create_topics, produce, read_topic

pytestmark = pytest.mark.java


@pytest.fixture(params=["java_worker", "agent_worker"])
def worker_url(request: pytest.FixtureRequest) -> str:
    """The address of Apache's worker, then of our agent, on the same broker."""
    return str(request.getfixturevalue(request.param).url)


@pytest.fixture
def command(worker_url: str, tmp_path: Path) -> Command:
    return Command(tmp_path / "home", worker_url)


def test_the_life_of_a_connector(command: Command, tmp_path: Path) -> None:
    """Every verb from create to delete works on a Java worker and on an agent."""
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
    # A Java worker shows a change after it has read it back from the config topic.
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
    """Status shows a failure's root cause, a sink's lag and its commit rate on both kinds."""
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
    # Stopping a sink commits its offsets before the next regular commit.
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
    """The worker's field errors are printed one a line; validate exits with 1 and create with 2."""
    name = unique_name("cli")
    file = tmp_path / "c.json"
    file.write_text(json.dumps({"connector.class": "FileStreamSource", "tasks.max": "none"}))
    assert command("connectors", "validate", name, "-f", str(file)) == 1
    assert f"{name}: tasks.max: Invalid value none" in command.out
    assert f'{name}: topic: Missing required configuration "topic"' in command.out
    assert command("connectors", "create", name, "-f", str(file)) == 2
    assert "tasks.max" in command.err


def test_a_worker_reports_health_info_plugins_and_loggers(command: Command) -> None:
    """A Java worker and an agent answer health, info, plugins and loggers."""
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


BAD_JSON = (b"{bad 1", b"{bad 22")
BAD_PRICE = (b'{"price": "12 EUR"}', b'{"price": "7 EUR"}')


def test_letters_of_a_java_worker_are_grouped_and_replayed(
    java_worker: SharedJavaWorker, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Records that fail are grouped by two causes, and mended records pass the same sink."""
    command = Command(tmp_path / "home", java_worker.url, kafka_broker.bootstrap_servers)
    topic, dead, sink = (unique_name(each) for each in ("orders", "dead", "sink"))
    create_topics(kafka_broker.bootstrap_servers, [topic, dead])
    headers = [("h", b"\xff"), ("none", None)]
    produce(kafka_broker.bootstrap_servers, topic, *BAD_JSON, *BAD_PRICE, key=b"k", headers=headers)
    out = tmp_path / "out"
    config = {
        "connector.class": "FileStreamSink",
        "topics": topic,
        "file": str(out),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "cast",
        "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.cast.spec": "price:int32",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    settings = [word for key, value in config.items() for word in ("-s", f"{key}={value}")]
    assert command("connectors", "create", sink, *settings, "--wait", "RUNNING") == 0, command.err

    def groups() -> dict[str, Any]:
        assert command("connectors", "dlq", sink, "-o", "json") == 0, command.err
        return {group["stage"]: group for group in json.loads(command.out)}

    eventually(lambda: sum(group["count"] for group in groups().values()) == 4, describe=groups)
    found = groups()
    assert {stage: group["count"] for stage, group in found.items()} == {
        "VALUE_CONVERTER": 2,
        "TRANSFORMATION": 2,
    }
    failed = found["TRANSFORMATION"]
    assert failed["processor"] == "org.apache.kafka.connect.transforms.Cast$Value"
    assert failed["exception"] == "org.apache.kafka.connect.errors.DataException"
    assert failed["topic"] == topic
    assert found["VALUE_CONVERTER"]["root"].startswith("com.fasterxml.jackson.core.")
    assert failed["example"]["error"]["connector.name"] == sink

    mend = '.price |= (rtrimstr(" EUR") | tonumber)'
    replay = ("dlq", "replay", sink, "--group", failed["group"], "--mend", mend, "--yes")
    assert command(*replay) == 0, command.err
    eventually(lambda: out.read_text().splitlines() == ["{price=12}", "{price=7}"])
    records = read_topic(kafka_broker.bootstrap_servers, topic, committed=True)
    replayed = records[4:]
    assert [record.value() for record in replayed] == [b'{"price":12}', b'{"price":7}']
    assert [record.headers() for record in replayed] == [headers, headers]
    assert [record.timestamp() for record in replayed] == [r.timestamp() for r in records[2:4]]
    assert {stage: group["left"] for stage, group in groups().items()} == {
        "VALUE_CONVERTER": 2,
        "TRANSFORMATION": 0,
    }
    assert command("connectors", "delete", sink, "--yes") == 0, command.err


WAIT_S = 150


@pytest.mark.timeout(850)
def test_connectors_of_a_java_worker_come_back(
    java_worker: SharedJavaWorker, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A restored source has its offsets and repeats no line; undo deletes the connectors again."""
    command = Command(tmp_path / "home", java_worker.url, kafka_broker.bootstrap_servers)
    lines, copied = tmp_path / "lines", tmp_path / "copied"
    topic = unique_name("lines")
    create_topics(kafka_broker.bootstrap_servers, [topic])
    append_lines(lines, 1, 10)
    names = [unique_name(name) for name in ("source", "a sink é", "paused", "stopped")]
    source, sink, paused, stopped = names
    configs = {
        source: source_config(lines, topic),
        sink: sink_config(copied, topic),
        paused: source_config(lines, unique_name("never")),
        stopped: source_config(lines, unique_name("never")),
    }
    states = {source: "RUNNING", sink: "RUNNING", paused: "PAUSED", stopped: "STOPPED"}
    with httpx.Client(base_url=f"{java_worker.url}/connectors", timeout=WAIT_S) as client:

        def ask(method: str, name: str, member: str = "", body: Any = None) -> Any:
            url = f"/{quote(name)}{member}"
            answer = eventually(
                lambda: (got := client.request(method, url, json=body)).status_code != 409 and got,
                WAIT_S,
            )
            assert answer.is_success, answer.text
            return answer.json() if answer.content else None

        def found() -> dict[str, str]:
            return {
                name: ask("GET", name, "/status")["connector"]["state"]
                for name in client.get("").json()
                if name in configs
            }

        def offsets() -> list[Any]:
            return [ask("GET", name, "/offsets")["offsets"] for name in names]

        for name, config in configs.items():
            client.post(
                "", json={"name": name, "config": config, "initial_state": states[name]}
            ).raise_for_status()
        whole = lines.read_text()
        eventually(lambda: copied.exists() and copied.read_text() == whole, WAIT_S)
        eventually(lambda: found() == states and all(offsets()[:2]), WAIT_S, offsets)
        before = offsets()

        backup = str(tmp_path / "backup")
        assert command("backup", backup, *names) == 0, command.err
        for name in names:
            ask("PUT", name, "/stop")
            eventually(lambda name=name: not ask("GET", name, "/status")["tasks"], WAIT_S)  # type: ignore[misc]
            ask("DELETE", name, "/offsets")
            ask("DELETE", name)
        eventually(lambda: not found(), WAIT_S)

        append_lines(lines, 11, 20)
        assert command("restore", backup, *names, "--yes") == 0, command.err
        undo = next(line for line in command.err.splitlines() if line.startswith("undo: "))
        eventually(lambda: found() == states, WAIT_S, found)
        whole = lines.read_text()
        eventually(lambda: copied.read_text() == whole, WAIT_S, copied.read_text)
        assert offsets()[2:] == before[2:]
        for name, config in configs.items():
            assert ask("GET", name, "/config") == {**config, "name": name}
        assert command("restore", backup, *names, "--yes", "--no-offsets") == 0, command.err
        assert found() == states

        words = shlex.split(undo.removeprefix("undo: pyconnect "))
        assert command(*words, "--yes") == 0, command.err
        eventually(lambda: not found(), WAIT_S, found)
