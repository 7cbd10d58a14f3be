"""Plugins in a running agent: isolation, the author's guide, transformations with predicates.

Further tests have config providers whose values expire (`config.action.reload`).
"""

import json
import shutil
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.agents.agent import Agent, Agents, append_lines, sink_config, source_config
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.plugin_directories import (
    EXPIRING_PROVIDER,
    VAULT_PROVIDER,
    make_plugins,
    make_provider_plugin,
)
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "directory-plugin"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
WAIT_S = 150


def text_of(file: Path) -> str:
    return file.read_text() if file.exists() else ""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the agent's plugin path and of the file `imports`, to which libraries write."""
    directory = tmp_path_factory.mktemp("with-plugins")
    plugins = directory / "plugins"
    make_plugins(plugins)
    make_provider_plugin(plugins)
    example = plugins / "directory-plugin" / "directory_plugin"
    shutil.copytree(EXAMPLE / "directory_plugin", example)
    (directory / "interval").write_text("500")
    return directory


@pytest.fixture(scope="module")
def agent(module_agents: Agents, directory: Path) -> Agent:
    """An agent whose own properties need both providers: its interval is a reference."""
    interval = directory / "interval"
    return module_agents.start(
        properties={
            "consumer.metadata.max.age.ms": "1000",
            "plugin.path": str(directory / "plugins"),
            "config.providers": "vault, path",
            "config.providers.vault.class": VAULT_PROVIDER,
            "config.providers.vault.param.ttl.ms": "1000",
            "config.providers.path.class": EXPIRING_PROVIDER,
            "config.providers.path.param.ttl.ms": "1000",
            # A slow task must not be killed: no record may be lost or repeated.
            "task.shutdown.graceful.timeout.ms": "60000",
            "offset.flush.interval.ms": f"${{vault:{interval}:value}}",
            "offset.flush.timeout.ms": f"${{path:{interval}:value}}",
        }
    )


def test_plugins_with_contradicting_libraries_run_side_by_side(
    agent: Agent, directory: Path, tmp_path: Path
) -> None:
    """Each plugin finds its own version, and the worker process imports neither library."""
    listed = {plugin["class"]: plugin for plugin in agent.get("/connector-plugins")}
    for name, version in (("first", "1.0"), ("second", "2.0")):
        plugin = listed[f"{name}_plugin.LibrarySource"]
        assert (plugin["type"], plugin["version"]) == ("source", version)
    topic, out = unique_name("libraries"), tmp_path / "out"
    for name in ("First", "Second"):
        agent.create(name, {"connector.class": f"{name}LibrarySource", "topic": topic})
        agent.wait_for_states(name, "RUNNING", "RUNNING")
    agent.create(unique_name("sink"), sink_config(out, topic))
    eventually(lambda: sorted(text_of(out).split()) == ["one", "two"], WAIT_S, lambda: text_of(out))
    importers = {int(line) for line in (directory / "imports").read_text().split()}
    assert len(importers) >= 4
    assert agent.process.pid not in importers


def test_the_guides_source_and_sink_run_as_the_guide_says(agent: Agent, tmp_path: Path) -> None:
    """Files go to a topic and the topic to files; a stop writes what the sink has buffered."""
    letters, out, topic = tmp_path / "in", tmp_path / "out", unique_name("letters")
    letters.mkdir()
    source = json.loads((EXAMPLE / "source.json").read_text())
    sink = json.loads((EXAMPLE / "sink.json").read_text())
    # The modules have no entry points, so the connectors have the names of their classes.
    agent.create("letters", source | {"directory": str(letters), "topic": topic})
    sink_name = unique_name("letters-out")
    agent.create(
        sink_name,
        sink | {"name": sink_name, "directory": str(out), "topics": topic, "records.per.file": "2"},
    )
    for number, text in enumerate(("hello", "world", "again"), 1):
        (letters / f"00{number}").write_text(text)

    def written() -> str:
        return "".join(path.read_text() for path in sorted(out.glob("*.txt")))

    eventually(lambda: written() == "hello\nworld\n", WAIT_S, written)

    def finished_by_a_stop() -> bool:
        # The third line may be delivered only after another start.
        agent.call("PUT", f"/connectors/{sink_name}/stop")
        agent.wait_for_states(sink_name, "STOPPED")
        if written() == "hello\nworld\nagain\n":
            return True
        agent.call("PUT", f"/connectors/{sink_name}/resume")
        agent.wait_for_states(sink_name, "RUNNING", "RUNNING")
        return False

    eventually(finished_by_a_stop, WAIT_S, written)
    offsets = agent.get(f"/connectors/{sink_name}/offsets")["offsets"]
    assert [part["offset"] for part in offsets] == [{"kafka_offset": 3}]


def test_transformations_with_predicates_work_on_both_sides_of_a_topic(
    agent: Agent, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """The source wraps, labels and routes records; the sink filters and unwraps them.

    A filtered record counts as delivered: its offset is committed.
    """
    lines, out, topic = tmp_path / "lines", tmp_path / "out", unique_name("events")
    append_lines(lines, 1, 3)
    json_values = {"value.converter": JSON_CONVERTER, "value.converter.schemas.enable": "false"}
    source = source_config(lines, f"{topic}-raw") | json_values | {
        "transforms": "hoist,label,origin,clean,never",
        "transforms.hoist.type": "HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.label.type": "InsertField$Value",
        "transforms.label.static.field": "label",
        "transforms.label.static.value": "x",
        "transforms.origin.type": "InsertHeader",
        "transforms.origin.header": "origin",
        "transforms.origin.value.literal": "file",
        "transforms.clean.type": "RegexRouter",
        "transforms.clean.regex": "(.*)-raw",
        "transforms.clean.replacement": "$1-clean",
        "transforms.clean.predicate": "raw",
        "transforms.never.type": "Filter",
        "transforms.never.predicate": "raw",
        "predicates": "raw",
        "predicates.raw.type": "TopicNameMatches",
        "predicates.raw.pattern": ".*-raw",
    }  # fmt: skip
    sink = sink_config(out, f"{topic}-clean") | json_values | {
        "transforms": "tombstones,strangers,unwrap",
        "transforms.tombstones.type": "Filter",
        "transforms.tombstones.predicate": "tombstone",
        "transforms.strangers.type": "Filter",
        "transforms.strangers.predicate": "known",
        "transforms.strangers.negate": "true",
        "transforms.unwrap.type": "ExtractField$Value",
        "transforms.unwrap.field": "line",
        "predicates": "tombstone,known",
        "predicates.tombstone.type": "RecordIsTombstone",
        "predicates.known.type": "HasHeaderKey",
        "predicates.known.name": "origin",
    }  # fmt: skip
    sink_name = unique_name("sink")
    agent.create("source", source)
    agent.create(sink_name, sink)
    eventually(lambda: text_of(out).count("\n") == 3, WAIT_S, lambda: text_of(out))
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce(f"{topic}-clean", b'{"line":"a stranger"}')
    producer.produce(f"{topic}-clean", None, headers={"origin": b"file"})
    assert producer.flush(30) == 0
    append_lines(lines, 4, 4)

    def committed() -> list[object]:
        return [part["offset"] for part in agent.get(f"/connectors/{sink_name}/offsets")["offsets"]]

    eventually(lambda: committed() == [{"kafka_offset": 6}], WAIT_S, committed)
    assert text_of(out) == "".join(f"line {number}\n" for number in range(1, 5))


def wait_for_end(file: Path, line: str) -> None:
    eventually(lambda: text_of(file).endswith(line), WAIT_S, lambda: text_of(file))


def test_a_new_value_restarts_connector_and_tasks_unless_the_config_says_none(
    agent: Agent, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """One sink of two changes to the new directory; the stored config keeps the reference."""
    topic, secret = unique_name("reload"), tmp_path / "secret"
    first, *others = directories = [tmp_path / name for name in ("a", "b", "c")]
    for directory in directories:
        directory.mkdir()
    secret.write_text(str(first))
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    numbers = count()

    def produce() -> str:
        line = f"{next(numbers)}\n"
        producer.produce(topic, line.rstrip().encode())
        assert producer.flush(30) == 0
        return line

    def wait_until_delivered_to(file: Path) -> None:
        def delivered() -> bool:
            produce()
            return bool(text_of(file))

        eventually(delivered, WAIT_S)

    line = produce()
    names = {action: unique_name(action) for action in ("restart", "none")}
    for action, name in names.items():
        reference = Path(f"${{vault:{secret}:value}}/{action}")
        agent.create(name, sink_config(reference, topic, config_action_reload=action))
        wait_for_end(first / action, line)
    # Two changes are enough for the other sink's time to be over.
    for directory in others:
        secret.write_text(str(directory))
        wait_until_delivered_to(directory / "restart")
    line = produce()
    for file in (others[-1] / "restart", first / "none"):
        wait_for_end(file, line)
    assert not any((directory / "none").exists() for directory in others)
    for action, name in names.items():
        agent.wait_for_states(name, "RUNNING", "RUNNING")
        (task,) = agent.get(f"/connectors/{name}/tasks")
        assert task["config"]["file"] == f"${{vault:{secret}:value}}/{action}"
    # The restarts neither lose nor repeat a record.
    restarted = "".join(text_of(directory / "restart") for directory in directories)
    assert restarted == text_of(first / "none")
