"""A plugin location is a class path of its own, and one that is broken costs itself only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pyconnect_agent.java.errors import JavaFailure
from pyconnect_agent.java.installation import find_installation
from pyconnect_agent.java.launch import JavaInstallation
from pyconnect_agent.java.questions import JavaQuestions
from pyconnect_agent.worker.plugins import find_plugins
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.java_sources import compiled, connector

pytestmark = pytest.mark.java

LIBRARY = "package lib; public class Library {{ public static String text() {{ return {}; }} }}"


@pytest.fixture(scope="module")
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Locations that contradict each other, and locations that cannot be used."""
    root = tmp_path_factory.mktemp("plugins")
    locations: Mapping[str, Mapping[str, str]] = {
        "one": {
            "a.One": connector("a.One", version="lib.Library.text()"),
            "lib.Library": LIBRARY.format('"1.1"'),
        },
        "two": {
            "b.Two": connector("b.Two", version="lib.Library.text()"),
            "lib.Library": LIBRARY.format('"2.2"'),
        },
        "exits": {"c.Exits": connector("c.Exits", body="public Exits() { System.exit(7); }")},
        "prints": {
            "d.Prints": connector(
                "d.Prints", body='static { for (int i = 0; i < 9999; i++) System.out.print("{}"); }'
            )
        },
        "fails": {
            "e.Fails": connector("e.Fails", body="static final int BAD = Integer.parseInt(null);"),
            "e.Good": connector("e.Good", version='"5"'),
        },
        "newer": {"f.Newer": connector("f.Newer")},
    }
    for name, sources in locations.items():
        compiled(kafka_runtime, sources, root / name)
        shutil.rmtree(root / f"{name}.src")
    newer = root / "newer" / "f" / "Newer.class"
    content = bytearray(newer.read_bytes())
    content[6:8] = (99).to_bytes(2, "big")
    newer.write_bytes(content)
    return root


@pytest.fixture(scope="module")
def installation(kafka_runtime: KafkaRuntime) -> JavaInstallation:
    return find_installation({"agent.java.kafka.home": str(kafka_runtime.libs)})


@pytest.fixture
def questions(installation: JavaInstallation) -> Iterator[JavaQuestions]:
    with JavaQuestions(lambda: installation) as asked:
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
    assert found == {"a.One": "1.1", "b.Two": "2.2", "d.Prints": "1.0", "e.Good": "5"}
    assert catalog.find("FileStreamSource")
    reasons = "\n".join(str(vars(record).get("reason")) for record in caplog.records)
    for text in (
        "exits could not be described: The Java process ended by itself with exit code 7",
        "Java plugin e.Fails cannot be used: java.lang.ExceptionInInitializerError",
        "Java plugin f.Newer cannot be used: f.Newer needs a newer Java than",
        "class file version 99",
    ):
        assert text in reasons


def test_a_question_about_a_plugin_that_ends_its_process_is_answered_with_the_reason(
    plugin_path: Path, questions: JavaQuestions
) -> None:
    """And one about a class that is not there."""
    with pytest.raises(JavaFailure, match=r"Failed to find the class a\.Gone"):
        questions.ask("load", plugin={"class": "a.Gone", "jars": [str(plugin_path / "one")]})
    with pytest.raises(Exception, match="exit code 7"):
        questions.ask(
            "construct", plugin={"class": "c.Exits", "jars": [str(plugin_path / "exits")]}
        )
