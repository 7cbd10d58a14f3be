"""Plugin locations with different releases of Kafka, in one agent."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_clients.plugin_jars.kafka_api import kafka_api
from pyconnect_clients.plugin_jars.kafka_links import read_links
from pyconnect_sandbox.jars import KAFKA_VERSION, fetched, known_checksums
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled
from tests.support.agents.agent import STRING_CONVERTER, Agents, closing
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, read_topic

pytestmark = pytest.mark.java

SOURCE = """
package t;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.*;
public class %(name)s extends SourceConnector {
    private Map<String, String> config;
    @Override public String version() { return %(version)s; }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public void start(Map<String, String> config) { this.config = config; }
    @Override public void stop() {}
    @Override public Class<? extends Task> taskClass() { return Once.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(config); }
    public static class Once extends SourceTask {
        private Map<String, String> config;
        private boolean done;
        @Override public String version() { return "1"; }
        @Override public void start(Map<String, String> config) { this.config = config; }
        @Override public void stop() {}
        @Override public List<SourceRecord> poll() throws InterruptedException {
            if (done) { Thread.sleep(100); return null; }
            done = true;
            return List.of(new SourceRecord(
                Map.of(), Map.of(), config.get("topic"), Schema.STRING_SCHEMA, %(version)s));
        }
    }
}
"""
VERSIONS = {
    # Both exist in this release alone: a method that 4.0 removed, a class that 4.4 has moved.
    "3.9": (
        'org.apache.kafka.common.utils.Utils.mkSet("") == null ? "" :'
        " org.apache.kafka.common.utils.AppInfoParser.getVersion()"
    ),
    "4.4": "org.apache.kafka.common.utils.internals.AppInfoParser.getVersion()",
}


@pytest.fixture
def agents(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Agents]:
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path))


def values(broker: SharedBroker, topic: str) -> list[bytes | None]:
    return [record.value() for record in read_topic(broker.bootstrap_servers, topic)]


def test_each_location_runs_with_the_kafka_that_its_classes_need(
    agents: Agents, kafka_broker: SharedBroker, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """Two releases beside each other, which no Java worker could run together."""
    names = {}
    for release, version in VERSIONS.items():
        name = f"On{release.replace('.', '')}"
        libs = fetched(kafka_api().version(release))
        source = {f"t.{name}": SOURCE % {"name": name, "version": version}}
        compiled(
            KafkaRuntime(java=kafka_runtime.java, libs=libs), source, tmp_path / "plugins" / name
        )
        names[release] = f"t.{name}"
    agent = agents.start(properties={"plugin.path": str(tmp_path / "plugins")})
    for release, class_name in names.items():
        topic = unique_name("release")
        create_topics(kafka_broker.bootstrap_servers, [topic])
        config = {
            "connector.class": class_name,
            "topic": topic,
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
        }
        agent.create(unique_name("of-release"), config)
        found = eventually(partial(values, kafka_broker, topic), timeout_s=150)
        assert found == [kafka_api().version(release).encode()]


def test_the_host_links_with_each_release() -> None:
    """It is compiled once. Kafka before 4.1 lacks what a class of the host keeps apart."""
    links = read_links([find_installation({}).host_jar], entry_points=["io.pyconnect.host.Host"])
    assert links.classes
    for release in kafka_api().releases:
        users = {missing.user for missing in links.missing(kafka_api(), release)}
        assert users <= {"io.pyconnect.host.PluginsMetrics$Kip877"}


def test_the_jars_of_each_release_are_known() -> None:
    """The table of classes and the lists of jars have the same versions."""
    assert KAFKA_VERSION in kafka_api().versions
    for version in kafka_api().versions:
        assert f"connect-runtime-{version}.jar" in known_checksums(version)
