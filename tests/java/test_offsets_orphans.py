"""`pyconnect offsets orphans` beside real workers: what a deleted connector left, and back."""

import json
from pathlib import Path

import pytest

from tests.support.commands.pyconnect_command import Command
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedAgentWorker, SharedBroker, SharedJavaWorker

pytestmark = pytest.mark.java
STRING = "org.apache.kafka.connect.storage.StringConverter"


class OrphansCommand(Command):
    def __init__(
        self, worker: SharedJavaWorker | SharedAgentWorker, broker: SharedBroker, home: Path
    ) -> None:
        super().__init__(home, worker.url, broker.bootstrap_servers)
        is_agent = isinstance(worker, SharedAgentWorker)
        # An agent tells its topic.
        topic = f"{worker.group_id}-offsets"
        self.topic = () if is_agent else ("--topic", topic)
        self.confirmed = () if is_agent else (*self.topic, "--confirm-topic", topic)

    def create(self, name: str, config: dict[str, str]) -> None:
        keys = [word for key, value in config.items() for word in ("--set", f"{key}={value}")]
        assert self("connectors", "create", name, *keys, "--wait", "RUNNING") == 0, self.err

    def delete(self, name: str) -> None:
        assert self("connectors", "delete", name, "--yes") == 0, self.err

    def orphans(self, *names: str) -> dict[str, dict[str, object]]:
        """Those of the names that `list` shows, by name."""
        assert self("offsets", "orphans", "list", *self.topic, "-o", "json") == 0, self.err
        return {found["name"]: found for found in json.loads(self.out) if found["name"] in names}


@pytest.fixture(params=["java", pytest.param("agent", marks=pytest.mark.long(only=True))])
def command(
    request: pytest.FixtureRequest, kafka_broker: SharedBroker, tmp_path: Path
) -> OrphansCommand:
    worker = request.getfixturevalue(f"{request.param}_worker")
    return OrphansCommand(worker, kafka_broker, tmp_path / "home")


def test_a_deleted_sources_offsets_are_purged_and_come_back(
    command: OrphansCommand, tmp_path: Path
) -> None:
    """A worker that reads the topic takes both for its own: the raw keys are the same."""
    name = unique_name("orphan-source")
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    config = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": unique_name("lines"),
        "value.converter": STRING,
    }
    stored = [{"partition": {"filename": str(file)}, "offset": {"position": 8}}]

    def offsets() -> object:
        assert command("offsets", "get", name, "-o", "json") == 0, command.err
        return json.loads(command.out)["offsets"]

    command.create(name, config)
    eventually(lambda: offsets() == stored, timeout_s=150)
    assert command("offsets", "orphans", "purge", name, *command.confirmed, "--yes") == 9
    assert f"connector {name} exists" in command.err
    command.delete(name)
    eventually(lambda: name in command.orphans(name), timeout_s=150)
    assert command.orphans(name)[name]["offsets"] == stored
    assert command("offsets", "orphans", "purge", name, *command.confirmed, "--dry-run") == 0
    assert "position" in command.out
    assert command("offsets", "orphans", "purge", name, *command.confirmed, "--yes") == 0, (
        command.err
    )
    assert command.orphans(name) == {}
    assert command("offsets", "undo", "--yes") == 0, command.err
    assert command.orphans(name)[name]["offsets"] == stored
    assert command("offsets", "undo", "--yes") == 0, command.err
    assert command.orphans(name) == {}
    assert command("offsets", "undo", "--yes") == 0, command.err
    command.create(name, {**config, "topic": unique_name("lines")})
    eventually(lambda: offsets() == stored, timeout_s=150)
    assert command("offsets", "undo", "--yes") == 9
    assert f"connector {name} exists" in command.err
    command.delete(name)


def test_a_deleted_sinks_group_is_purged_only_when_asked_and_comes_back(
    command: OrphansCommand, tmp_path: Path
) -> None:
    """Another cluster on the same Kafka may own a group, so groups need a word of their own."""
    topic, source, name = (unique_name(word) for word in ("lines", "feed", "orphan-sink"))
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    lines = {"value.converter": STRING}
    command.create(
        source, {"connector.class": "FileStreamSource", "file": str(file), "topic": topic, **lines}
    )
    out = tmp_path / "out.txt"
    command.create(
        name, {"connector.class": "FileStreamSink", "file": str(out), "topics": topic, **lines}
    )
    eventually(lambda: out.exists() and out.read_text() == "one\ntwo\n", timeout_s=150)
    assert command("connectors", "stop", name, "--wait", "STOPPED") == 0, command.err
    command.delete(name)
    command.delete(source)
    stored = [
        {
            "partition": {"kafka_topic": topic, "kafka_partition": 0},
            "offset": {"kafka_offset": 2},
        }
    ]
    assert command.orphans(name)[name]["offsets"] == stored
    purge = ("offsets", "orphans", "purge", name, *command.confirmed, "--yes")
    assert command(*purge) == 9
    assert "--sink-groups" in command.err
    assert command.orphans(name)[name]["offsets"] == stored
    assert command(*purge, "--sink-groups") == 0, command.err
    assert command.orphans(name) == {}
    assert command("offsets", "undo", "--yes") == 0, command.err
    assert command.orphans(name)[name]["offsets"] == stored
    exported = tmp_path / "exported.json"
    arguments = ("--sink", *command.topic, "-f", str(exported))
    assert command("offsets", "orphans", "export", name, *arguments) == 0, command.err
    assert json.loads(exported.read_text())["offsets"] == stored
