"""Plugin locations with conflicting libraries, broken jars, or Kafka jars of their own."""

import logging
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.java_processes.frames import FrameKind, decode_source
from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_agent.java_processes.launch import JavaClass, JavaInstallation, JavaOptions
from pyconnect_agent.java_processes.link import JavaFailure, JavaLink
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.java_processes.questions import JavaQuestions
from pyconnect_agent.worker.plugins import find_plugins
from pyconnect_api import ConnectException
from pyconnect_clients.plugin_jars.kafka_links import kafka_api, read_links
from pyconnect_sandbox.jars import KAFKA_VERSION, fetched, known_checksums
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled, connector
from tests.support.agents.agent import STRING_CONVERTER, Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import RELOAD4J, location_of
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, read_topic

pytestmark = pytest.mark.java

WAIT_S = 150
LOGGER = "plugin.Source.Polled"
SMALL = JavaOptions(heap="96m", quick=True)
SOURCE = """
package plugin;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.*;
import org.apache.logging.log4j.*;
public class Source extends SourceConnector {
    @Override public String version() { return lib.Library.text(); }
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public void start(Map<String, String> config) {}
    @Override public void stop() {}
    @Override public Class<? extends Task> taskClass() { return Polled.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(); }

    public static class Polled extends SourceTask {
        private static final Logger LOG = LogManager.getLogger();
        @Override public String version() { return lib.Library.text(); }
        @Override public void start(Map<String, String> config) {}
        @Override public void stop() {}
        @Override public List<SourceRecord> poll() {
            java.util.logging.Logger.getLogger("plugin.old").warning("polled");
            java.util.logging.Logger.getLogger("plugin.old").fine("polled in detail");
            LOG.debug("polled {}", lib.Library.text());
            LOG.warn("polled {}", lib.Library.text(), new IllegalStateException("why"));
            return List.of(new SourceRecord(null, null, "t", null, null, lib.Library.text()));
        }
    }
}
"""
CHANGE = """
package plugin;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;
public class Change implements Transformation<SourceRecord> {
    @Override public void configure(Map<String, ?> config) {}
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public void close() {}
    @Override public SourceRecord apply(SourceRecord r) {
        return r.newRecord(r.topic(), null, null, null, null,
            r.value() + " seen by " + lib.Library.text(), null);
    }
}
"""
LIBRARY = """
package lib;
public class Library {{ public static String text() {{ return "{}"; }} }}
"""


@pytest.fixture(scope="module")
def locations(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], list[str]]:
    """Two class paths with the same class names; only the first one has Log4j."""
    root = tmp_path_factory.mktemp("locations")
    found = []
    for version in ("one", "two"):
        library = LIBRARY.format(version)
        sources = {"plugin.Source": SOURCE, "plugin.Change": CHANGE, "lib.Library": library}
        found.append([f"{compiled(kafka_runtime, sources, root / version)}/"])
    for name in ("log4j-api", "log4j-core"):
        (jar,) = kafka_runtime.libs.glob(f"{name}-2.*.jar")
        found[0].append(shutil.copy(jar, root))
    return found[0], found[1]


@pytest.fixture
def links() -> Iterator[tuple[JavaLink, JavaLink]]:
    installation = find_installation({})
    made = JavaLink(JavaProcess(installation, SMALL)), JavaLink(JavaProcess(installation, SMALL))
    yield made
    for link in made:
        link.close()


def job(jars: list[str], *changes: list[str]) -> dict[str, Any]:
    def plugin(name: str, jars: list[str]) -> dict[str, Any]:
        return {"class": name, "jars": jars, "config": {}}

    storage = "org.apache.kafka.connect.storage"
    text = plugin(f"{storage}.StringConverter", [])
    return {
        "mode": "task",
        "connector": plugin("plugin.Source", jars),
        "converters": {
            "key": text,
            "value": text,
            "header": plugin(f"{storage}.SimpleHeaderConverter", []),
        },
        "transforms": [plugin("plugin.Change", each) for each in changes],
    }


def polled(link: JavaLink) -> list[bytes | None]:
    link.tell(FrameKind.CREDIT)
    payload = link.batches.get(timeout=WAIT_S)
    assert payload is not None, link.ended()
    return list(decode_source(payload).values)


@pytest.mark.long(only=True)
def test_each_location_has_its_own_libraries_and_logs_to_the_worker(
    locations: tuple[list[str], list[str]],
    links: tuple[JavaLink, JavaLink],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A task may have a transformation of another location, with libraries of its own.

    Log4j 2 has the worker's levels, whether the plugin or Kafka brings it. java.util.logging has
    them too, and each of its lines comes once.
    """
    one, two = locations
    caplog.set_level(logging.DEBUG, "plugin")
    for link, found in zip(links, (job(one, two), job(two)), strict=True):
        link.begin(found)
        link.call("start", config={})
    assert polled(links[0]) == [b"one seen by two"]
    assert polled(links[1]) == [b"two"]
    links[0].set_levels({"root": "INFO", "plugin": "DEBUG"})
    assert polled(links[0]) == [b"one seen by two"]
    lines = [(each.name, each.levelname, each.getMessage()) for each in caplog.records]
    own = [(level, text.partition("\n")[0]) for name, level, text in lines if name == LOGGER]
    assert own == [
        ("WARNING", "polled one"),
        ("WARNING", "polled two"),
        ("DEBUG", "polled one"),
        ("WARNING", "polled one"),
    ]
    old = [(level, text) for name, level, text in lines if name == "plugin.old"]
    assert old == [("WARNING", "polled")] * 3 + [("DEBUG", "polled in detail")]
    assert "java.lang.IllegalStateException: why\n\tat plugin.Source" in caplog.text
    assert [line for line in lines if line[0] == "java.output"] == []


OLD_BODY = """
    static final org.apache.log4j.Logger LOG = org.apache.log4j.Logger.getLogger(Old.class);
    static String logged() {
        LOG.debug("in detail");
        LOG.warn("seen", new IllegalStateException("why"));
        LOG.fatal("lost");
        org.apache.commons.logging.LogFactory.getLog("old.commons").info("by commons");
        return "1";
    }
"""


def test_lines_of_log4j_1(
    kafka_runtime: KafkaRuntime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The Log4j 1 of a plugin has only the worker's appender, and the worker's levels."""
    (jar,) = sorted(location_of(RELOAD4J).glob("*.jar"))
    source = {"old.Old": connector("old.Old", version="logged()", body=OLD_BODY)}
    classes = compiled(kafka_runtime, source, tmp_path / "old", jar)
    plugin = {"class": "old.Old", "jars": [f"{classes}/", str(jar)]}
    caplog.set_level(logging.DEBUG, "old")
    link = JavaLink(JavaProcess(find_installation({}), SMALL))
    link.begin({"mode": "questions"})
    link.call("describe", plugins=[plugin], bases=[])
    link.set_levels({"root": "INFO", "old": "DEBUG", "old.commons": "ERROR"})
    link.call("describe", plugins=[plugin], bases=[])
    link.close()
    lines = [(each.name, each.levelname, each.getMessage()) for each in caplog.records]
    loud = [("old.Old", "WARNING", "seen"), ("old.Old", "CRITICAL", "lost")]
    assert [line for line in lines if line[0].startswith("old")] == [
        *loud,
        ("old.commons", "INFO", "by commons"),
        ("old.Old", "DEBUG", "in detail"),
        *loud,
    ]
    assert "java.lang.IllegalStateException: why\n\tat old.Old" in caplog.text
    assert [line for line in lines if line[0] == "java.output"] == []


PLAIN = """
package one;
import java.util.Map;
import org.apache.kafka.connect.data.*;
public class Plain implements org.apache.kafka.connect.storage.Converter {
    @Override public void configure(Map<String, ?> config, boolean isKey) {}
    @Override public byte[] fromConnectData(String t, Schema s, Object v) { return null; }
    @Override public SchemaAndValue toConnectData(String t, byte[] v) { return null; }
}
"""
LIBRARY_OF = "package lib; public class Library {{ public static String text() {{ return {}; }} }}"


@pytest.fixture(scope="module")
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Locations with conflicting libraries, and locations that cannot be used."""
    root, built = (tmp_path_factory.mktemp(name) for name in ("plugins", "built"))
    second = {
        "two.Two": connector("two.Two", version="lib.Library.text()"),
        "lib.Library": LIBRARY_OF.format('"2.2"'),
    }
    compiled(kafka_runtime, second, root / "two")
    first = {
        "one.One": connector("one.One", version="lib.Library.text()"),
        "lib.Library": LIBRARY_OF.format('"1.1"'),
        "one.Plain": PLAIN,
        "exits.Exits": connector("exits.Exits", body="public Exits() { System.exit(7); }"),
        "prints.Prints": connector(
            "prints.Prints", body="static { for (int i = 0; i < 9999; i++) System.out.print(i); }"
        ),
        "fails.Fails": connector(
            "fails.Fails", body="static final int BAD = Integer.parseInt(null);"
        ),
        "fails.Good": connector("fails.Good", version='"5"'),
        "fails.Silent": connector("fails.Silent", version='"" + 1 / Integer.parseInt("0")'),
        "newer.Newer": connector("newer.Newer"),
        "hangs.Hangs": connector(
            "hangs.Hangs", body="public Hangs() throws Exception { Thread.sleep(Long.MAX_VALUE); }"
        ),
    }
    compiled(kafka_runtime, first, built / "classes")
    for package in ("one", "exits", "prints", "fails", "newer"):
        shutil.move(built / "classes" / package, root / package / package)
    shutil.move(built / "classes" / "hangs", root.parent / "hanging" / "hangs")
    shutil.move(built / "classes" / "lib", root / "one" / "lib")
    shutil.rmtree(root / "two.src")
    newer = root / "newer" / "newer" / "Newer.class"
    content = bytearray(newer.read_bytes())
    content[6:8] = (99).to_bytes(2, "big")
    newer.write_bytes(content)
    return root


@pytest.fixture(scope="module")
def installation(kafka_runtime: KafkaRuntime) -> JavaInstallation:
    return find_installation({"agent.java.kafka.home": str(kafka_runtime.libs)})


@pytest.fixture
def questions(installation: JavaInstallation) -> Iterator[JavaQuestions]:
    with JavaQuestions(lambda: installation, JavaOptions()) as asked:
        yield asked


def test_locations_have_libraries_of_their_own_and_fail_for_themselves(
    plugin_path: Path,
    kafka_runtime: KafkaRuntime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A location that exits, prints, fails or needs a newer Java does not harm the others."""
    monkeypatch.setattr("pyconnect_agent.worker.plugins.java_cache", lambda: tmp_path)
    properties = {
        "plugin.path": str(plugin_path),
        "plugin.discovery": "only_scan",
        "agent.java.kafka.home": str(kafka_runtime.libs),
    }
    catalog = find_plugins(properties)
    found = {
        plugin.class_name: plugin.version
        for plugin in catalog.java.plugins
        if plugin.location.startswith(f"file:{plugin_path}")
    }
    assert found == {
        "one.One": "1.1",
        "one.Plain": None,
        "two.Two": "2.2",
        "prints.Prints": "1.0",
        "fails.Good": "5",
        "fails.Silent": None,
    }
    assert catalog.find("FileStreamSource")
    reasons = "\n".join(str(vars(record).get("reason")) for record in caplog.records)
    for text in (
        "exits could not be described: The Java process ended by itself with exit code 7",
        "fails.Fails cannot be used: java.lang.ExceptionInInitializerError: java.lang.Number",
        "Java plugin newer.Newer cannot be used: newer.Newer needs a newer Java than",
        "class file version 99",
    ):
        assert text in reasons


def test_a_question_about_a_plugin_that_ends_its_process_is_answered_with_the_reason(
    plugin_path: Path, questions: JavaQuestions, installation: JavaInstallation
) -> None:
    """A class that is missing, hangs or ends the process gives an error with the reason."""
    hanging = JavaClass("hangs.Hangs", (str(plugin_path.parent / "hanging"),))
    with (
        JavaQuestions(lambda: installation, JavaOptions()) as asked,
        pytest.raises(ConnectException, match="a plugin took longer than 1 s"),
    ):
        asked.describe([hanging], timeout_s=1)
    gone = {"class": "one.Gone", "jars": [str(plugin_path / "one")]}
    assert questions.ask("load", plugin=gone, bases=[]) is None
    with pytest.raises(JavaFailure, match=r"Failed to find the class one\.Gone"):
        questions.ask("construct", plugin=gone)
    with pytest.raises(Exception, match="exit code 7"):
        questions.ask(
            "construct", plugin={"class": "exits.Exits", "jars": [str(plugin_path / "exits")]}
        )


ONCE = """
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
    # Each expression works in its release alone: 4.0 removed the method, 4.4 moved the class.
    "3.9": (
        'org.apache.kafka.common.utils.Utils.mkSet("") == null ? "" :'
        " org.apache.kafka.common.utils.AppInfoParser.getVersion()"
    ),
    "4.4": "org.apache.kafka.common.utils.internals.AppInfoParser.getVersion()",
}


def values(broker: SharedBroker, topic: str) -> list[bytes | None]:
    return [record.value() for record in read_topic(broker.bootstrap_servers, topic)]


def test_each_location_runs_with_the_kafka_that_its_classes_need(
    agents: Agents, kafka_broker: SharedBroker, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """Two releases of Kafka run on one agent, which a Java worker cannot do."""
    names = {}
    for release, version in VERSIONS.items():
        name = f"On{release.replace('.', '')}"
        libs = fetched(kafka_api().version(release))
        source = {f"t.{name}": ONCE % {"name": name, "version": version}}
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
    """The host is compiled once; the one class that needs Kafka 4.1 is kept apart."""
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
