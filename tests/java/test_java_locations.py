"""Tasks of plugins whose libraries contradict each other, and the log lines of plugins."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.java_processes.frames import FrameKind, decode_source
from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_agent.java_processes.launch import JavaOptions
from pyconnect_agent.java_processes.link import JavaLink
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled, connector
from tests.support.plugins.maven_plugins import RELOAD4J, location_of

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
    """Two class paths with the same names; the first brings Log4j, the second does not."""
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
    """Two tasks at once, one of them with a transformation of the other's location.

    Log4j 2 has the worker's levels, whether the plugin brings it or finds Kafka's, and so has
    java.util.logging, whose lines come once.
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
    """A plugin's own Log4j 1 has no appender but the worker's, and the worker's levels."""
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
