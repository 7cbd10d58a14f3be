"""A plugin location is a class path of its own, and one that is broken costs itself only."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_agent.java_processes.launch import JavaClass, JavaInstallation, JavaOptions
from pyconnect_agent.java_processes.link import JavaFailure
from pyconnect_agent.java_processes.questions import JavaQuestions
from pyconnect_agent.worker.plugins import find_plugins
from pyconnect_api import ConnectException
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled, connector

pytestmark = pytest.mark.java

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
LIBRARY = "package lib; public class Library {{ public static String text() {{ return {}; }} }}"


@pytest.fixture(scope="module")
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Locations that contradict each other, and locations that cannot be used."""
    root, built = (tmp_path_factory.mktemp(name) for name in ("plugins", "built"))
    second = {
        "two.Two": connector("two.Two", version="lib.Library.text()"),
        "lib.Library": LIBRARY.format('"2.2"'),
    }
    compiled(kafka_runtime, second, root / "two")
    first = {
        "one.One": connector("one.One", version="lib.Library.text()"),
        "lib.Library": LIBRARY.format('"1.1"'),
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
    """Contradicting libraries, System.exit, output, a failing initializer, a newer class file."""
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
    """And one about a class that is not there, and about one that hangs."""
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
