"""The Java and the jars of Kafka that plugins run with."""

import json
import os
from pathlib import Path

import pytest

from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION
from pyconnect_agent.java_processes import build, installation
from pyconnect_agent.java_processes.installation import find_installation, kafka_release
from pyconnect_api import ConnectException
from tests.support.cases import cases

JARS = ("connect-api", "connect-json", "connect-runtime", "connect-transforms", "kafka-clients")


def make_java(home: Path, version: str = "17.0.15") -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return program


def make_kafka(libs: Path, *others: str) -> Path:
    libs.mkdir(parents=True)
    for name in (*JARS, *others):
        (libs / f"{name}-4.3.1.jar").touch()
    return libs


@pytest.fixture(autouse=True)
def a_wheel_with_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The host's jar is in the wheel, and the user's real cache is not used."""
    (tmp_path / "host.jar").touch()
    monkeypatch.setattr(installation, "built_host_jar", lambda: tmp_path / "host.jar")
    monkeypatch.setattr(installation, "user_cache_path", lambda _: tmp_path / "cache")
    return tmp_path


def test_the_workers_keys_win_over_the_environment(tmp_path: Path) -> None:
    """Java is from agent.java.home, JAVA_HOME or the path; Kafka from a key or KAFKA_HOME."""
    javas = [make_java(tmp_path / name) for name in ("key", "variable", "path")]
    kafkas = [make_kafka(tmp_path / f"kafka-{name}" / "libs") for name in ("key", "variable")]
    properties = {
        "agent.java.home": str(tmp_path / "key"),
        "agent.java.kafka.home": str(kafkas[0].parent),
    }
    environment = {
        "JAVA_HOME": str(tmp_path / "variable"),
        "PATH": str(javas[2].parent),
        "KAFKA_HOME": str(kafkas[1]),
    }
    found = find_installation(properties, environment)
    assert (found.java, Path(found.kafka_jars[0]).parent) == (str(javas[0]), kafkas[0])
    found = find_installation({}, environment)
    assert (found.java, Path(found.kafka_jars[0]).parent) == (str(javas[1]), kafkas[1])
    del environment["JAVA_HOME"]
    assert find_installation({}, environment).java == str(javas[2])
    assert kafka_release(found.kafka_jars) == "4.3.1"
    assert found.host_jar == str(tmp_path / "host.jar")


def test_another_archive_of_javas_own_makes_another_archive_of_classes(tmp_path: Path) -> None:
    """Java ignores an archive that extends an archive which no longer exists."""
    own = make_java(tmp_path / "jdk").parents[1] / "lib" / "server" / "classes.jsa"
    own.parent.mkdir(parents=True)
    own.touch()
    environment = {
        "JAVA_HOME": str(tmp_path / "jdk"),
        "KAFKA_HOME": str(make_kafka(tmp_path / "libs")),
    }
    before = find_installation({}, environment).archive
    assert before == find_installation({}, environment).archive
    os.utime(own, ns=(1, 1))
    assert before != find_installation({}, environment).archive


def test_kafkas_jars_come_from_the_cache_and_without_its_loggers(tmp_path: Path) -> None:
    """The host writes the log, so Kafka's log back ends are left out; a cache must be complete."""
    environment = {"PATH": str(make_java(tmp_path / "java").parent)}
    home = tmp_path / "cache" / "kafka" / CONNECT_VERSION
    make_kafka(home / "libs", "log4j-slf4j-impl", "log4j-core", "slf4j-api")
    names = [path.name for path in (home / "libs").iterdir()]
    (home / "manifest.json").write_text(json.dumps({"jars": dict.fromkeys(names)}))
    found = [Path(jar).name for jar in find_installation({}, environment).kafka_jars]
    assert found == sorted(f"{name}-4.3.1.jar" for name in (*JARS, "slf4j-api"))
    (home / "libs" / names[0]).unlink()
    with pytest.raises(ConnectException, match=r"jars of Apache Kafka .*agent\.java\.kafka\.home"):
        find_installation({}, environment)


FETCH = """
import json, os, pathlib
home = pathlib.Path(os.environ["HOME_OF_JARS"])
(home / "libs").mkdir(parents=True)
jars = [f"{name}-4.3.1.jar" for name in os.environ["JARS"].split()]
for name in jars:
    (home / "libs" / name).touch()
(home / "manifest.json").write_text(json.dumps({"jars": dict.fromkeys(jars)}))
(home / "java").write_text(os.environ["JAVA_HOME"])
"""


def test_missing_jars_are_fetched_with_the_java_of_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The Java of agent.java.home fetches the jars, and the log explains the slow start."""
    caplog.set_level("INFO")
    monkeypatch.setattr(installation, "FETCH_MODULE", "fetch_jars")
    (tmp_path / "fetch_jars.py").write_text(FETCH)
    home = tmp_path / "cache" / "kafka" / CONNECT_VERSION
    make_java(tmp_path / "java")
    environment = {"PYTHONPATH": str(tmp_path), "HOME_OF_JARS": str(home), "JARS": " ".join(JARS)}
    found = find_installation({"agent.java.home": str(tmp_path / "java")}, environment, fetch=True)
    assert Path(found.kafka_jars[0]).parent == home / "libs"
    assert (home / "java").read_text() == str(tmp_path / "java")
    assert "Kafka's jars are fetched, once" in caplog.text


def test_jars_that_cannot_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the reason and names the key for another way."""
    monkeypatch.setattr(installation, "FETCH_MODULE", "fetch_jars")
    (tmp_path / "fetch_jars.py").write_text("raise OSError('no network')")
    make_java(tmp_path / "java")
    environment = {"PYTHONPATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "java")}
    with pytest.raises(ConnectException, match=r"\(OSError: no network\); set agent\.java\.kafka"):
        find_installation({}, environment, fetch=True)


@cases(
    "version, message",
    ("11.0.2", "JAVA_HOME names Java 11"),
    ("1.8.0_402", "JAVA_HOME names Java 8"),
)
def test_an_old_java_is_refused(tmp_path: Path, version: str, message: str) -> None:
    """The error names the setting that refers to the old Java."""
    make_java(tmp_path / "old", version)
    text = rf"need Java 17 or newer, and {message}.* Set agent\.java\.home to"
    with pytest.raises(ConnectException, match=text):
        find_installation({}, {"JAVA_HOME": str(tmp_path / "old")})


def test_missing_java_or_kafka_is_named_with_the_remedy(tmp_path: Path) -> None:
    """The error says how to install or set a missing Java or Kafka."""
    make_java(tmp_path / "java")
    with pytest.raises(ConnectException, match="no Java was found: install it, or set"):
        find_installation({}, {"PATH": str(tmp_path)})
    with pytest.raises(ConnectException, match=r"agent\.java\.home does not name a Java that runs"):
        find_installation({"agent.java.home": str(tmp_path)}, {})
    with pytest.raises(ConnectException, match="KAFKA_HOME does not name a Kafka installation"):
        find_installation({}, {"JAVA_HOME": str(tmp_path / "java"), "KAFKA_HOME": str(tmp_path)})


def test_without_compiler_and_host_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JRE is enough only if the wheel contains the host."""
    monkeypatch.setattr(installation, "built_host_jar", lambda: None)
    make_java(tmp_path / "jre")
    kafka = make_kafka(tmp_path / "kafka")
    properties = {"agent.java.home": str(tmp_path / "jre"), "agent.java.kafka.home": str(kafka)}
    with pytest.raises(ConnectException, match="has no javac: install a JDK"):
        find_installation(properties, {})


def test_an_unusable_cache_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names a cache that cannot be written."""
    monkeypatch.setattr(installation, "built_host_jar", lambda: None)
    make_java(tmp_path / "jdk").with_name("javac").touch()
    (tmp_path / "cache").write_text("a file")
    kafka = make_kafka(tmp_path / "kafka")
    properties = {"agent.java.home": str(tmp_path / "jdk"), "agent.java.kafka.home": str(kafka)}
    with pytest.raises(ConnectException, match=f"Java plugins cannot run: .*{tmp_path}/cache"):
        find_installation(properties, {})


def test_equal_sources_give_an_equal_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is compiled once for equal sources, whose digest is in the path of the jar."""
    sources = tmp_path / "main"
    (sources / "java").mkdir(parents=True)
    (sources / "java" / "A.java").write_text("class A {}")
    monkeypatch.setattr(build, "_MAIN", sources)
    javac = make_java(tmp_path / "jdk").with_name("javac")
    script = 'while [ "$1" != -d ]; do shift; done; mkdir -p $2; date +%N > $2/log; echo A > $2/A'
    javac.write_text(f"#!/bin/sh\n{script}; rm $2/log\n")
    javac.chmod(0o755)
    jars = []
    for cache in (tmp_path / "one", tmp_path / "two"):
        jar = build.cached_host_jar(javac.with_name("java"), ["a.jar"], cache)
        jars.append(jar.read_bytes())
    assert jars[0] == jars[1]
    first = build.cached_host_jar(javac, [], tmp_path / "one")
    (sources / "java" / "A.java").write_text("class A { int a; }")
    assert build.cached_host_jar(javac, [], tmp_path / "one") != first
    javac.write_text("#!/bin/sh\necho A.java:1: wrong >&2; exit 1\n")
    with pytest.raises(build.HostBuildError, match=r"A\.java:1: wrong"):
        build.cached_host_jar(javac, [], tmp_path / "three")
