"""An agent and Apache's worker with the same `plugin.path` have the same Java plugins.

The connectors are those of Apache, Debezium, MongoDB, and with `scripts/test --long` Snowflake,
whose jar has 160 MB. Types, versions, settings and validations are compared.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled, connector
from tests.java.plugin_answers import definitions, is_our_own, on_both, validation
from tests.support.commands.pyconnect_command import Command
from tests.support.names import unique_name
from tests.support.plugins.java_jars import make_jar
from tests.support.plugins.maven_plugins import (
    DEBEZIUM,
    MIRROR,
    MONGO,
    SNOWFLAKE,
    file_connectors,
    location_of,
)
from tests.support.seeds import chosen
from tests.support.servers.kafka import Servers, SharedBroker

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(850)]

DEBEZIUM_CLASS = "io.debezium.connector.postgresql.PostgresConnector"
MIRROR_CLASS = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
MONGO_CLASS = "com.mongodb.kafka.connect.MongoSinkConnector"
VERSIONED = "v.VersionedConnector"
SNOWFLAKE_CLASS = "com.snowflake.kafka.connector.SnowflakeSinkConnector"
AVRO_CLASS = "io.confluent.connect.avro.AvroConverter"
COPIED = "v.CopiedConnector"
NAMING = "naming.NamingConnector"
FIND = """
    static ConfigDef found() {
        var keys = new ConfigDef();
        for (String name : List.of("v.VersionedConnector", "v.Library")) {
            Object version = "not found";
            try {
                var found = Class.forName(name).getDeclaredConstructor().newInstance();
                version = found.getClass().getMethod("version").invoke(found);
            } catch (ReflectiveOperationException missing) {
                // A class of another location that is not a plugin.
            }
            keys.define(name, ConfigDef.Type.STRING, version, ConfigDef.Importance.LOW, "");
        }
        return keys;
    }
"""
FILE_CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
API = "org.apache.kafka.connect"
SERVICES = {
    MONGO.name: {
        f"{API}.source.SourceConnector": ["com.mongodb.kafka.connect.MongoSourceConnector"],
        f"{API}.sink.SinkConnector": [MONGO_CLASS],
    },
    SNOWFLAKE.name: {
        f"{API}.sink.SinkConnector": [SNOWFLAKE_CLASS],
        f"{API}.storage.Converter": [AVRO_CLASS],
    },
}
"""Service files that jars lack; scanning for classes takes a Java worker twenty seconds."""
PLUGINS = chosen((DEBEZIUM, MIRROR, MONGO), long=(SNOWFLAKE,))
CASES: tuple[dict[str, str | None], ...] = (
    {"connector.class": "PostgresConnector"},
    {"connector.class": DEBEZIUM_CLASS, "topic.prefix": "p", "snapshot.mode": "nope",
     "exactly.once.support": "required", "transaction.boundary": "connector"},
    {"connector.class": DEBEZIUM_CLASS, "transforms": "u, r",
     "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState",
     "transforms.u.delete.tombstone.handling.mode": "nope",
     "transforms.r.type": "org.apache.kafka.connect.transforms.HoistField$Value",
     "value.converter": "io.debezium.converters.CloudEventsConverter",
     "value.converter.serializer.type": "nope"},
    {"connector.class": MIRROR_CLASS, "source.cluster.alias": "a", "refresh.topics.enabled": "x",
     "topic.filter.class": "nope.Filter"},
    {"connector.class": MONGO_CLASS, "topics": "t", "connection.uri": "nope",
     "document.id.strategy": "nope"},
    {"connector.class": MONGO_CLASS, "topics": "t", "key.converter": "JsonConverter",
     "key.converter.schemas.enable": "x", "errors.deadletterqueue.topic.name": "t"},
    {"connector.class": FILE_CLASS, "topic": "t", "batch.size": "x"},
    {"connector.class": DEBEZIUM_CLASS, "topic.prefix": None, "connector.plugin.version": "[1,2]"},
    {"connector.class": FILE_CLASS, "topic": "t", "transforms": "t",
     "transforms.t.type": "org.apache.kafka.connect.transforms.Cast$Value",
     "transforms.t.spec": "a:nope", "transforms.t.predicate": "p", "predicates": "p",
     "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
     "predicates.p.pattern": "("},
    {"connector.class": FILE_CLASS, "topic": "t", "value.converter": "nope"},
    {"connector.class": VERSIONED},
    {"connector.class": VERSIONED, "connector.plugin.version": "1.0"},
    {"connector.class": "Versioned", "connector.plugin.version": "[1.0,1.9)"},
    {"connector.class": VERSIONED, "connector.plugin.version": "(2.0,3.0]"},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BothWorkers:
    java: str
    agent: str

    def ask(self, method: str, target: str, body: Any = None) -> Any:
        return on_both(self.java, self.agent, method, target, body)


@pytest.fixture(scope="module")
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A jar and directories of jars; some get the service files that they lack."""
    root = tmp_path_factory.mktemp("plugins")
    file_connectors(kafka_runtime, root)
    for plugin in PLUGINS:
        shutil.copytree(location_of(plugin), root / plugin.name)
        if plugin.name in SERVICES:
            make_jar(root / plugin.name / "services.jar", services=SERVICES[plugin.name])
    for name, version, place in (
        (VERSIONED, "1.0", "one"),
        (VERSIONED, "2.0", "two"),
        (VERSIONED, "1.5", "half"),
        (COPIED, "1.0", "copied-a"),
        (COPIED, "1.0", "copied-b"),
    ):
        source = connector(name, version=f'"{version}"')
        key = f'.define("key.{place}", ConfigDef.Type.INT, ConfigDef.Importance.LOW, "")'
        sources = {
            name: source.replace("new ConfigDef()", f"new ConfigDef(){key}"),
            "v.Library": "package v; public class Library {}",
        }
        classes_of_connector(kafka_runtime, root / place, sources)
    source = connector(NAMING, body=FIND).replace("return new ConfigDef()", "return found()")
    classes_of_connector(kafka_runtime, root / "naming", {NAMING: source})
    return root


def classes_of_connector(runtime: KafkaRuntime, location: Path, sources: Mapping[str, str]) -> None:
    """Make a location of class files, whose first class is a source connector."""
    compiled(runtime, sources, location)
    shutil.rmtree(location.with_name(f"{location.name}.src"))
    listing = location / "META-INF" / "services"
    listing.mkdir(parents=True)
    (listing / "org.apache.kafka.connect.source.SourceConnector").write_text(next(iter(sources)))


@pytest.fixture(scope="module")
def both(kafka_broker: SharedBroker, module_servers: Servers, plugin_path: Path) -> BothWorkers:
    properties = {"plugin.path": str(plugin_path), "plugin.discovery": "service_load"}
    bootstrap = kafka_broker.bootstrap_servers
    java = module_servers.java_worker(bootstrap, unique_name("java-plugins"), properties=properties)
    agent = module_servers.agent(bootstrap, unique_name("agent-plugins"), properties=properties)
    return BothWorkers(java.url, agent.url)


def test_both_workers_find_the_same_plugins(both: BothWorkers) -> None:
    """A Java worker and an agent list the same kinds and versions of plugins."""
    for target in ("/connector-plugins", "/connector-plugins?connectorsOnly=false"):
        on_java, on_agent = both.ask("GET", target)
        shared = [p for p in on_agent.json() if not is_our_own(p["class"])]
        assert shared == [p for p in on_java.json() if p["class"] != AVRO_CLASS]
    names = {plugin["class"] for plugin in on_java.json()}
    assert {DEBEZIUM_CLASS, MIRROR_CLASS, MONGO_CLASS, FILE_CLASS} < names
    # The agent has the class in Python too, with another version.
    assert [
        p for p in on_java.json() if p["class"] == AVRO_CLASS and p not in on_agent.json()
    ] == []


def test_every_java_plugin_has_the_settings_that_its_jar_says(both: BothWorkers) -> None:
    """Each plugin has the same settings on both, even with two kinds or in two locations."""
    listed = both.ask("GET", "/connector-plugins?connectorsOnly=false")[0].json()
    names = {p["class"] for p in listed if not p["class"].startswith("org.apache.kafka.connect.t")}
    different = []
    for name in sorted(names):
        on_java, on_agent = both.ask("GET", f"/connector-plugins/{quote(name)}/config")
        if definitions(on_java) != definitions(on_agent):
            different.append(name)
    assert different == []


@pytest.mark.parametrize("version", ["", "?version=1.0", "?version=2.0", "?version=3.0"])
def test_versions_of_a_plugin_have_settings_of_their_own(both: BothWorkers, version: str) -> None:
    """Without a version, a request shows the settings of the plugin's latest one (KIP-891)."""
    on_java, on_agent = both.ask("GET", f"/connector-plugins/{VERSIONED}/config{version}")
    assert on_agent.status == on_java.status
    if on_java.status == 200:
        assert definitions(on_agent) == definitions(on_java)
    else:
        assert on_agent.json() == on_java.json()


def test_a_plugin_finds_plugins_of_other_locations_by_name(both: BothWorkers) -> None:
    """A plugin gets other locations' plugins in their latest versions, but no other classes."""
    for answer in both.ask("GET", f"/connector-plugins/{NAMING}/config"):
        defaults = {key["name"]: key["default_value"] for key in answer.json()}
        assert (defaults["v.VersionedConnector"], defaults["v.Library"]) == ("2.0", "not found")


def test_a_java_cluster_with_these_jars_is_ready_for_agents(
    both: BothWorkers, tmp_path: Path
) -> None:
    """`pyconnect agent readiness` asks a Java worker and reads its properties file."""
    file = tmp_path / "worker.properties"
    file.write_text("plugin.path=/plugins\nconfig.providers=v\nconfig.providers.v.class=a.Vault\n")
    run = Command(tmp_path, both.java)
    assert run("agent", "readiness", "--worker-config", str(file), "-o", "json") == 1
    found = {each["name"]: each["status"] for each in json.loads(run.out)}
    assert found.pop("config.providers.v.class") == "failed"
    assert {DEBEZIUM_CLASS, MIRROR_CLASS, MONGO_CLASS, FILE_CLASS} < set(found)
    assert set(found.values()) == {"ok"}


CASES_OF_SNOWFLAKE: tuple[dict[str, str | None], ...] = (
    {"connector.class": SNOWFLAKE_CLASS, "topics": "t", "snowflake.url.name": "nope",
     "buffer.count.records": "x", "behavior.on.null.values": "nope"},
    {"connector.class": SNOWFLAKE_CLASS, "topics": "t", "value.converter": AVRO_CLASS,
     "value.converter.auto.register.schemas": "x",
     "snowflake.ingestion.method": "SNOWPIPE_STREAMING"},
)  # fmt: skip


@pytest.mark.parametrize(
    "case",
    chosen(CASES, long=CASES_OF_SNOWFLAKE),
    ids=lambda case: " ".join(map(str, case.values()))[:60],
)
def test_configs_of_java_connectors_are_validated_alike(
    both: BothWorkers, case: Mapping[str, str | None]
) -> None:
    """Both workers report the same errors of connector, converters and transformations."""
    target = f"/connector-plugins/{case['connector.class']}/config/validate"
    on_java, on_agent = both.ask("PUT", target, {"name": "case", **case})
    assert validation(on_agent) == validation(on_java)
