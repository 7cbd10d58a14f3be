"""Plugins in a running agent: isolation, the author's guide, transformations with predicates."""

import json
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.agents.agent import Agents, append_lines, sink_config, source_config
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.plugin_directories import make_plugins
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "directory-plugin"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
QUICK = {"offset.flush.interval.ms": "500", "consumer.metadata.max.age.ms": "1000"}
WAIT_S = 150


def text_of(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def test_plugins_with_contradicting_libraries_run_side_by_side(
    agents: Agents, tmp_path: Path
) -> None:
    """Each finds its own version; the worker process imports neither, also to list them."""
    plugins = tmp_path / "plugins"
    imports = make_plugins(plugins)
    agent = agents.start(properties={**QUICK, "plugin.path": str(plugins)})
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
    importers = {int(line) for line in imports.read_text().split()}
    assert len(importers) >= 4
    assert agent.process.pid not in importers


def test_the_guides_source_and_sink_run_as_the_guide_says(agents: Agents, tmp_path: Path) -> None:
    """Files to a topic and the topic to files; a stop finishes what the sink has buffered."""
    directory = tmp_path / "plugins" / "directory-plugin"
    shutil.copytree(EXAMPLE / "directory_plugin", directory / "directory_plugin")
    agent = agents.start(properties={**QUICK, "plugin.path": str(directory.parent)})
    letters, out, topic = tmp_path / "in", tmp_path / "out", unique_name("letters")
    letters.mkdir()
    source = json.loads((EXAMPLE / "source.json").read_text())
    sink = json.loads((EXAMPLE / "sink.json").read_text())
    # Found in modules without entry points, so under the names of their classes.
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
        # The third may not have been delivered yet: then it is so after another start.
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
    agents: Agents, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Wrapped, labelled and routed by the source; filtered and unwrapped by the sink.

    What the sink filters counts as delivered: its offset is committed.
    """
    agent = agents.start(properties=QUICK)
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
