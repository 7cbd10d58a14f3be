"""`pyconnect offsets` on Apache's worker and on an agent: change, read, restore, orphans."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.agents.rest_client import call_url
from tests.support.commands.pyconnect_command import Command
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedAgentWorker, SharedBroker, SharedJavaWorker

pytestmark = pytest.mark.java


class OffsetsCommand(Command):
    """A command line that also has the broker's address."""

    def offsets(self, name: str) -> list[dict[str, dict[str, object]]]:
        """Return the list that `offsets get -o json` prints."""
        assert self("offsets", "get", name, "-o", "json") == 0, self.err
        found: list[dict[str, dict[str, object]]] = json.loads(self.out)["offsets"]
        return found


@pytest.fixture(params=["java_worker", "agent_worker"])
def command(
    request: pytest.FixtureRequest, kafka_broker: SharedBroker, tmp_path: Path
) -> OffsetsCommand:
    worker: SharedJavaWorker | SharedAgentWorker = request.getfixturevalue(request.param)
    return OffsetsCommand(tmp_path / "home", worker.url, kafka_broker.bootstrap_servers)


@pytest.fixture
def create(command: OffsetsCommand) -> Iterator[Callable[[str, dict[str, str]], None]]:
    """Create connectors, and delete them at the end."""
    created: list[str] = []

    def make(name: str, config: dict[str, str]) -> None:
        keys = [word for key, value in config.items() for word in ("--set", f"{key}={value}")]
        assert command("connectors", "create", name, *keys, "--wait", "RUNNING") == 0, command.err
        created.append(name)

    yield make
    for name in created:
        assert command("connectors", "delete", name, "--yes") == 0, command.err


@pytest.fixture
def source(
    command: OffsetsCommand, create: Callable[[str, dict[str, str]], None], tmp_path: Path
) -> tuple[str, dict[str, str], Path]:
    """The name, partition and file of a source that has read eight bytes."""
    name = unique_name("offsets-source")
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(file),
        "topic": unique_name("lines"),
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    create(name, config)
    eventually(
        lambda: [entry["offset"] for entry in command.offsets(name)] == [{"position": 8}],
        timeout_s=150,
    )
    return name, {"filename": str(file)}, file


def test_a_source_is_reset_undone_and_altered(
    command: OffsetsCommand, source: tuple[str, dict[str, str], Path]
) -> None:
    """Each change is read back from the worker, and undo restores the offsets before it."""
    name, partition, _ = source
    stored = [{"partition": partition, "offset": {"position": 8}}]
    assert command("offsets", "reset", name, "--yes") == 9
    assert f"{name} is RUNNING" in command.err
    assert command("offsets", "reset", name, "--yes", "--stop") == 0, command.err
    assert command.offsets(name) == []
    assert command("offsets", "reset", name, "--yes") == 0, command.err
    assert command("offsets", "undo", "--yes") == 0, command.err
    assert command.offsets(name) == stored
    text = f'{json.dumps(partition)}={{"position": 4}}'
    assert command("offsets", "alter", name, "--yes", "--set", text) == 0, command.err
    assert command.offsets(name) == [{"partition": partition, "offset": {"position": 4}}]
    assert command("offsets", "undo", "--yes", "--resume", "--wait") == 0, command.err
    assert command.offsets(name) == stored
    assert command("offsets", "history", name, "-o", "name") == 0
    assert len(command.out.split()) == 4


def test_an_undo_notices_changes_over_rest(
    command: OffsetsCommand, source: tuple[str, dict[str, str], Path]
) -> None:
    """Undo is refused if the worker's offsets are not those that the undone change left."""
    name, partition, _ = source
    text = f'{json.dumps(partition)}={{"position": 4}}'
    assert command("offsets", "alter", name, "--yes", "--stop", "--set", text) == 0, command.err
    body = json.dumps({"offsets": [{"partition": partition, "offset": {"position": 2}}]})
    changed = call_url(
        command.url,
        "PATCH",
        f"/connectors/{name}/offsets",
        body,
        {"Content-Type": "application/json"},
    )
    assert changed.status == 200, changed.text
    # Apache's worker may list partitions before it has read its offsets topic to the end.
    eventually(lambda: command.offsets(name)[0]["offset"] == {"position": 2}, timeout_s=150)
    assert command("offsets", "undo", "--yes") == 9
    assert '{"position":4} and is at {"position":2}' in command.err
    assert command("offsets", "undo", "--yes", "--force") == 0, command.err
    assert command.offsets(name) == [{"partition": partition, "offset": {"position": 8}}]


def test_a_reset_source_reads_its_file_again(
    command: OffsetsCommand, source: tuple[str, dict[str, str], Path], kafka_broker: SharedBroker
) -> None:
    """One command stops, resets, resumes and waits; the source then reads to the same position."""
    name, partition, file = source
    with file.open("a") as lines:
        lines.write("three\n")
    arguments = ("--stop", "--resume", "--wait", "--yes")
    assert command("offsets", "reset", name, *arguments) == 0, command.err
    stored = [{"partition": partition, "offset": {"position": 14}}]
    eventually(lambda: command.offsets(name) == stored, timeout_s=150)


def test_a_connectors_refusal_is_reported_and_leaves_its_offsets(
    command: OffsetsCommand, source: tuple[str, dict[str, str], Path]
) -> None:
    """FileStreamSource refuses a position that is not a number; our command refuses it first."""
    name, partition, _ = source
    text = f'{json.dumps(partition)}={{"position": "far"}}'
    assert command("offsets", "alter", name, "--yes", "--stop", "--set", text) == 2
    assert command("offsets", "alter", name, "--yes", "--stop", "--set", text, "--force") == 10
    assert f"pyconnect connectors resume {name}" in command.err
    assert command.offsets(name) == [{"partition": partition, "offset": {"position": 8}}]


def test_a_sink_is_altered_exported_reset_and_imported(
    command: OffsetsCommand,
    create: Callable[[str, dict[str, str]], None],
    source: tuple[str, dict[str, str], Path],
    tmp_path: Path,
) -> None:
    """A change waits for the consumers of stopped tasks to leave, and is read back."""
    source_name, _, _ = source
    assert command("connectors", "get", source_name, "-o", "json") == 0
    topic = json.loads(command.out)["topic"]
    name = unique_name("offsets-sink")
    config = {
        "connector.class": "FileStreamSink",
        "tasks.max": "1",
        "file": str(tmp_path / "out.txt"),
        "topics": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    create(name, config)
    partition = {"kafka_topic": topic, "kafka_partition": 0}
    at_two = [{"partition": partition, "offset": {"kafka_offset": 2}}]
    eventually(lambda: (tmp_path / "out.txt").read_text() == "one\ntwo\n", timeout_s=150)
    assert command("connectors", "stop", name, "--wait", "STOPPED") == 0, command.err
    assert command.offsets(name) == at_two

    assert command("offsets", "alter", name, "--yes", "--set", f"{topic}:0=1") == 0, command.err
    assert command.offsets(name) == [{"partition": partition, "offset": {"kafka_offset": 1}}]
    file = tmp_path / "exported.json"
    assert command("offsets", "undo", "--yes") == 0, command.err
    assert command("offsets", "export", name, "-f", str(file)) == 0, command.err
    assert command("offsets", "reset", name, "--yes") == 0, command.err
    assert command.offsets(name) == []
    assert command("offsets", "import", name, "-f", str(file), "--yes") == 0, command.err
    assert command.offsets(name) == at_two
    assert command("offsets", "diff", name, "-f", str(file)) == 0


def test_a_sink_seeks_within_its_topic(
    command: OffsetsCommand,
    create: Callable[[str, dict[str, str]], None],
    source: tuple[str, dict[str, str], Path],
    tmp_path: Path,
) -> None:
    """Seek accepts earliest, latest, a shift and a time; it refuses a position past the end."""
    source_name, _, _ = source
    assert command("connectors", "get", source_name, "-o", "json") == 0
    topic = json.loads(command.out)["topic"]
    name = unique_name("seek-sink")
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out.txt"),
        "topics": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    create(name, config)
    eventually(lambda: (tmp_path / "out.txt").read_text() == "one\ntwo\n", timeout_s=150)
    assert command("offsets", "seek", name, "--to-earliest", "--yes") == 9
    steps = (
        (("--to-earliest", "--stop"), 0),
        (("--shift-by", "1"), 1),
        (("--shift-by", "100"), 2),
        (("--to-datetime", "2020-01-01T00:00:00Z"), 0),
        (("--to-latest",), 2),
        (("--shift-by", "-1", "--partition", f"{topic}:0"), 1),
    )
    for arguments, offset in steps:
        assert command("offsets", "seek", name, *arguments, "--yes") == 0, command.err
        assert [entry["offset"] for entry in command.offsets(name)] == [{"kafka_offset": offset}]
    assert command("offsets", "lag", name, "-o", "json") == 0, command.err
    assert json.loads(command.out) == [
        {"connector": name, "topic": topic, "partition": 0, "offset": 1, "end": 2, "lag": 1}
    ]
    assert command("offsets", "alter", name, "--set", f"{topic}:0=3", "--yes") == 2
    assert "3 is past the end, 2" in command.err
    assert command("offsets", "alter", name, "--set", f"{topic}:7=0", "--yes") == 2
    assert f"Kafka has no partition {topic}:7" in command.err
    assert [entry["offset"] for entry in command.offsets(name)] == [{"kafka_offset": 1}]
    assert command("offsets", "seek", source_name, "--to-earliest", "--stop", "--yes") == 9
    arguments = ("--to-earliest", "--resume", "--wait", "--yes")
    assert command("offsets", "seek", name, *arguments) == 0, command.err
    eventually(lambda: (tmp_path / "out.txt").read_text() == "one\ntwo\n" * 2, timeout_s=150)


def test_a_connector_begins_with_the_offsets_of_another(
    command: OffsetsCommand, source: tuple[str, dict[str, str], Path], tmp_path: Path
) -> None:
    """A connector created STOPPED reads only beyond the given offsets; `copy` gives them too."""
    name, partition, file = source
    exported = tmp_path / "exported.json"
    assert command("offsets", "export", name, "-f", str(exported)) == 0, command.err
    assert command("connectors", "get", name, "-o", "json") == 0
    config = {
        **json.loads(command.out),
        "topic": unique_name("later"),
        "name": unique_name("later"),
    }
    later = config["name"]
    description = tmp_path / "later.json"
    description.write_text(json.dumps(config))
    create = ("connectors", "create", later, "-f", str(description))
    assert command(*create, "--offsets-from", str(exported), "--wait", "RUNNING") == 0, command.err
    try:
        stored = [{"partition": partition, "offset": {"position": 8}}]
        assert command.offsets(later) == stored
        assert command("offsets", "reset", later, "--stop", "--yes") == 0, command.err
        assert command("offsets", "copy", name, later, "--yes") == 0, command.err
        assert command.offsets(later) == stored
        with file.open("a") as lines:
            lines.write("three\n")
        assert command("connectors", "resume", later, "--wait", "RUNNING") == 0, command.err
        at_end = [{"partition": partition, "offset": {"position": 14}}]
        eventually(lambda: command.offsets(later) == at_end, timeout_s=150)
    finally:
        assert command("connectors", "delete", later, "--yes") == 0, command.err


STRING = "org.apache.kafka.connect.storage.StringConverter"


class OrphansCommand(Command):
    def __init__(
        self, worker: SharedJavaWorker | SharedAgentWorker, broker: SharedBroker, home: Path
    ) -> None:
        super().__init__(home, worker.url, broker.bootstrap_servers)
        is_agent = isinstance(worker, SharedAgentWorker)
        # An agent reports the name of its offsets topic.
        topic = f"{worker.group_id}-offsets"
        self.topic = () if is_agent else ("--topic", topic)
        self.confirmed = () if is_agent else (*self.topic, "--confirm-topic", topic)

    def create(self, name: str, config: dict[str, str]) -> None:
        keys = [word for key, value in config.items() for word in ("--set", f"{key}={value}")]
        assert self("connectors", "create", name, *keys, "--wait", "RUNNING") == 0, self.err

    def delete(self, name: str) -> None:
        assert self("connectors", "delete", name, "--yes") == 0, self.err

    def orphans(self, *names: str) -> dict[str, dict[str, object]]:
        """Return the named connectors that `list` shows, by name."""
        assert self("offsets", "orphans", "list", *self.topic, "-o", "json") == 0, self.err
        return {found["name"]: found for found in json.loads(self.out) if found["name"] in names}


@pytest.fixture(params=["java", pytest.param("agent", marks=pytest.mark.long(only=True))])
def orphaned(
    request: pytest.FixtureRequest, kafka_broker: SharedBroker, tmp_path: Path
) -> OrphansCommand:
    worker = request.getfixturevalue(f"{request.param}_worker")
    return OrphansCommand(worker, kafka_broker, tmp_path / "home")


def test_a_deleted_sources_offsets_are_purged_and_come_back(
    orphaned: OrphansCommand, tmp_path: Path
) -> None:
    """A worker that reads the topic accepts the restored records: their raw keys are the same."""
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
        assert orphaned("offsets", "get", name, "-o", "json") == 0, orphaned.err
        return json.loads(orphaned.out)["offsets"]

    orphaned.create(name, config)
    eventually(lambda: offsets() == stored, timeout_s=150)
    assert orphaned("offsets", "orphans", "purge", name, *orphaned.confirmed, "--yes") == 9
    assert f"connector {name} exists" in orphaned.err
    orphaned.delete(name)
    eventually(lambda: name in orphaned.orphans(name), timeout_s=150)
    assert orphaned.orphans(name)[name]["offsets"] == stored
    assert orphaned("offsets", "orphans", "purge", name, *orphaned.confirmed, "--dry-run") == 0
    assert "position" in orphaned.out
    assert orphaned("offsets", "orphans", "purge", name, *orphaned.confirmed, "--yes") == 0, (
        orphaned.err
    )
    assert orphaned.orphans(name) == {}
    assert orphaned("offsets", "undo", "--yes") == 0, orphaned.err
    assert orphaned.orphans(name)[name]["offsets"] == stored
    assert orphaned("offsets", "undo", "--yes") == 0, orphaned.err
    assert orphaned.orphans(name) == {}
    assert orphaned("offsets", "undo", "--yes") == 0, orphaned.err
    orphaned.create(name, {**config, "topic": unique_name("lines")})
    eventually(lambda: offsets() == stored, timeout_s=150)
    assert orphaned("offsets", "undo", "--yes") == 9
    assert f"connector {name} exists" in orphaned.err
    orphaned.delete(name)


def test_a_deleted_sinks_group_is_purged_only_when_asked_and_comes_back(
    orphaned: OrphansCommand, tmp_path: Path
) -> None:
    """Groups are purged only on request, since another cluster on the same Kafka may own one."""
    topic, source, name = (unique_name(word) for word in ("lines", "feed", "orphan-sink"))
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    lines = {"value.converter": STRING}
    orphaned.create(
        source, {"connector.class": "FileStreamSource", "file": str(file), "topic": topic, **lines}
    )
    out = tmp_path / "out.txt"
    orphaned.create(
        name, {"connector.class": "FileStreamSink", "file": str(out), "topics": topic, **lines}
    )
    eventually(lambda: out.exists() and out.read_text() == "one\ntwo\n", timeout_s=150)
    assert orphaned("connectors", "stop", name, "--wait", "STOPPED") == 0, orphaned.err
    orphaned.delete(name)
    orphaned.delete(source)
    stored = [
        {"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 2}}
    ]
    assert orphaned.orphans(name)[name]["offsets"] == stored
    purge = ("offsets", "orphans", "purge", name, *orphaned.confirmed, "--yes")
    assert orphaned(*purge) == 9
    assert "--sink-groups" in orphaned.err
    assert orphaned.orphans(name)[name]["offsets"] == stored
    assert orphaned(*purge, "--sink-groups") == 0, orphaned.err
    assert orphaned.orphans(name) == {}
    assert orphaned("offsets", "undo", "--yes") == 0, orphaned.err
    assert orphaned.orphans(name)[name]["offsets"] == stored
    exported = tmp_path / "exported.json"
    arguments = ("--sink", *orphaned.topic, "-f", str(exported))
    assert orphaned("offsets", "orphans", "export", name, *arguments) == 0, orphaned.err
    assert json.loads(exported.read_text())["offsets"] == stored
