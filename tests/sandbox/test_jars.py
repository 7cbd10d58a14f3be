"""Where Kafka's jars come from, and that they are fetched whole and once."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from pathlib import Path

import pytest

from pyconnect_sandbox import ivy, maven, repository
from pyconnect_sandbox.coordinates import (
    COORDINATES,
    KAFKA_VERSION,
    Coordinate,
    known_checksums,
    known_paths,
)
from pyconnect_sandbox.errors import JarResolutionFailed, JarsUnavailable
from pyconnect_sandbox.jar_cache import JarCache
from pyconnect_sandbox.jars import find_runtime, libs_of
from pyconnect_sandbox.progress import silent
from tests.sandbox.test_java import java_saying
from tests.support.eventually import eventually
from tests.support.progress import RecordedProgress

pytestmark = pytest.mark.wire

CONTENTS = {"one-1.jar": b"first", "two-2.jar": b"second"}
CHECKSUMS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}


def resolve(work_directory: Path, libs: Path) -> None:
    for name, content in CONTENTS.items():
        (libs / name).write_bytes(content)


def refuse(work_directory: Path, libs: Path) -> None:
    pytest.fail("resolved again")


@pytest.fixture
def cache(tmp_path: Path) -> JarCache:
    return JarCache("1.0", CHECKSUMS, tmp_path / "cache")


def unpacked_kafka(directory: Path) -> Path:
    libs = directory / "libs"
    libs.mkdir(parents=True)
    for name in ("kafka-server", "kafka-clients", "connect-runtime"):
        (libs / f"{name}-4.3.1.jar").touch()
    return directory


def environment_with(tmp_path: Path, **variables: str) -> dict[str, str]:
    """Return an environment with a Java 17 and nothing else on its path."""
    java = java_saying(tmp_path / "java", 'openjdk version "17.0.1"')
    return {"PATH": str(java.parent), **variables}


def command_saying(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_filled_cache_is_complete_and_is_not_resolved_again(cache: JarCache) -> None:
    """Jars are resolved once; the manifest records how and the checksum of each."""
    assert not cache.is_complete()
    libs = cache.fill("maven", resolve, silent)
    assert cache.fill("maven", refuse, silent) == libs
    assert cache.is_complete(check_contents=True)
    manifest = json.loads((cache.directory / "manifest.json").read_text())
    assert manifest["resolver"] == "maven"
    assert {name: jar["sha256"] for name, jar in manifest["jars"].items()} == CHECKSUMS


@pytest.mark.parametrize("damage", ["remove", "truncate"])
def test_a_damaged_cache_is_resolved_again(cache: JarCache, damage: str) -> None:
    """A jar that is gone or shorter than recorded makes the cache incomplete."""
    cache.fill("maven", resolve, silent)
    jar = cache.libs / "one-1.jar"
    jar.unlink() if damage == "remove" else jar.write_bytes(b"")
    assert not cache.is_complete()
    cache.fill("maven", resolve, silent)
    assert jar.read_bytes() == CONTENTS["one-1.jar"]


def test_altered_contents_are_found_when_asked_for(cache: JarCache) -> None:
    """The recorded checksums tell a jar whose size is right and whose bytes are not."""
    cache.fill("maven", resolve, silent)
    (cache.libs / "one-1.jar").write_bytes(b"FIRST")
    assert cache.is_complete()
    assert not cache.is_complete(check_contents=True)


def test_a_missing_jar_leaves_the_cache_empty(cache: JarCache) -> None:
    """A resolver that brings less than Kafka needs is a failure, and nothing is kept of it."""

    def half(work_directory: Path, libs: Path) -> None:
        (libs / "one-1.jar").write_bytes(CONTENTS["one-1.jar"])

    with pytest.raises(JarResolutionFailed, match=r"not fetched: two-2\.jar"):
        cache.fill("maven", half, silent)
    assert not cache.directory.exists()
    assert not list(cache.directory.parent.glob(".resolving-*"))


def test_a_jar_with_another_checksum_is_refused(cache: JarCache) -> None:
    """A repository that serves other bytes under a known name is not trusted."""

    def altered(work_directory: Path, libs: Path) -> None:
        resolve(work_directory, libs)
        (libs / "two-2.jar").write_bytes(b"altered")

    with pytest.raises(JarResolutionFailed, match=r"differ from the known ones .*: two-2\.jar"):
        cache.fill("maven", altered, silent)
    assert not cache.directory.exists()


def test_processes_that_need_the_jars_together_resolve_once(cache: JarCache) -> None:
    """Whoever comes while another resolves says so, waits, and takes what the other fetched."""
    resolving, may_finish = threading.Event(), threading.Event()
    progress = RecordedProgress()

    def slowly(work_directory: Path, libs: Path) -> None:
        resolving.set()
        assert may_finish.wait(60)
        resolve(work_directory, libs)

    first = threading.Thread(target=cache.fill, args=("maven", slowly, silent))
    first.start()
    assert resolving.wait(60)
    second = threading.Thread(target=cache.fill, args=("maven", refuse, progress))
    second.start()
    eventually(lambda: progress.messages, describe="the word of the one that waits")
    may_finish.set()
    first.join(60)
    second.join(60)
    assert "another process is fetching" in progress.messages[0]
    assert cache.is_complete()


def test_the_known_checksums_cover_the_sandboxs_jars() -> None:
    """The recorded set has the jars of every coordinate."""
    names = set(known_checksums())
    assert {f"{item.artifact}-{item.version}.jar" for item in COORDINATES} <= names
    assert all(len(checksum) == 64 for checksum in known_checksums().values())
    assert len(known_paths()) == len(names)
    assert all(path.count("/") >= 3 for path in known_paths())


def test_a_kafka_directory_wins_over_kafka_home_and_the_cache(
    cache: JarCache, tmp_path: Path
) -> None:
    """--kafka-dir is taken before KAFKA_HOME, and that before what was fetched."""
    cache.fill("maven", resolve, silent)
    asked, home = unpacked_kafka(tmp_path / "asked"), unpacked_kafka(tmp_path / "home")
    environment = environment_with(tmp_path, KAFKA_HOME=str(home))
    assert find_runtime(asked, environment=environment, cache=cache).libs == asked / "libs"
    assert find_runtime(environment=environment, cache=cache).libs == home / "libs"
    del environment["KAFKA_HOME"]
    assert find_runtime(environment=environment, cache=cache).libs == cache.libs


def test_the_libs_directory_itself_is_taken(tmp_path: Path) -> None:
    """A directory of jars counts as well as the one above it."""
    kafka = unpacked_kafka(tmp_path)
    assert libs_of(kafka / "libs") == libs_of(kafka) == kafka / "libs"


def test_a_directory_without_kafka_is_refused(tmp_path: Path) -> None:
    """A Kafka directory that lacks a jar is refused with the jars that are needed."""
    with pytest.raises(
        JarsUnavailable, match=r"is not a Kafka directory: .*connect-runtime"
    ) as error:
        libs_of(tmp_path)
    assert error.value.exit_code == 9


def test_without_a_tool_the_small_ways_are_named(
    cache: JarCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint names Ivy, Maven, a repository's address and --kafka-dir, but not PySpark."""
    monkeypatch.setattr(ivy, "find_spec", lambda name: None)
    monkeypatch.setattr(ivy, "SYSTEM_JARS", ())
    with pytest.raises(JarsUnavailable, match=r"neither Maven .* nor Apache Ivy") as error:
        find_runtime(environment=environment_with(tmp_path), cache=cache)
    assert error.value.exit_code == 9
    assert error.value.hint is not None
    ways = ("apt-get install ivy", "Maven", repository.ADDRESS_VARIABLE, "--kafka-dir")
    assert all(word in error.value.hint for word in ways)
    assert "reconcile" not in error.value.hint


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_repository_that_is_named_is_asked_for_the_known_jars_only(
    cache: JarCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slash: str
) -> None:
    """Neither Maven nor Ivy is needed, and Maven is not asked when it is there."""
    paths = {"org/first/one/1/one-1.jar": "one-1.jar", "two/2/two-2.jar": "two-2.jar"}
    for path, name in paths.items():
        stored = tmp_path / "repository" / path
        stored.parent.mkdir(parents=True)
        stored.write_bytes(CONTENTS[name])
    monkeypatch.setattr(repository, "known_paths", lambda: list(paths))
    address = (tmp_path / "repository").as_uri() + slash
    environment = environment_with(tmp_path, PYCONNECT_MAVEN_REPOSITORY=address)
    command_saying(Path(environment["PATH"]) / "mvn", "exit 1")
    progress = RecordedProgress()

    runtime = find_runtime(environment=environment, cache=cache, progress=progress)

    assert {jar.name: jar.read_bytes() for jar in runtime.libs.iterdir()} == CONTENTS
    assert len(progress.passing) == len(CONTENTS)
    assert "PYCONNECT_MAVEN_REPOSITORY" in progress.messages[0]


def test_a_repository_without_a_jar_is_reported_with_its_path(
    cache: JarCache, tmp_path: Path
) -> None:
    """The failure names the jar, and the cache stays empty."""
    environment = environment_with(tmp_path, PYCONNECT_MAVEN_REPOSITORY=tmp_path.as_uri())
    with pytest.raises(JarResolutionFailed, match=r"\.jar could not be downloaded: .*No such file"):
        find_runtime(environment=environment, cache=cache)
    assert not cache.is_complete()


def test_the_system_s_ivy_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Debian's and Homebrew's packages put it."""
    monkeypatch.setattr(ivy, "find_spec", lambda name: None)
    places = (
        (tmp_path / "debian", "usr/share/java/ivy.jar"),
        (
            tmp_path / "brew",
            "opt/homebrew/opt/ivy/libexec/ivy-2.5.3.jar",
        ),
    )
    for system, place in places:
        (system / place).parent.mkdir(parents=True)
        (system / place).touch()
        assert ivy.find_ivy({}, system) == system / place


def test_maven_that_fails_is_quoted(cache: JarCache, tmp_path: Path) -> None:
    """The end of Maven's output is in the error, and the cache stays empty."""
    environment = environment_with(tmp_path)
    command_saying(Path(environment["PATH"]) / "mvn", "echo '[ERROR] Connection refused'; exit 1")
    with pytest.raises(JarResolutionFailed, match=r"exit code 1.*\n.*Connection refused"):
        find_runtime(environment=environment, cache=cache)
    assert not cache.is_complete()


def test_maven_s_downloads_are_reported_without_their_addresses(tmp_path: Path) -> None:
    """Each jar that Maven says it downloaded is one word of progress: its file name."""
    mvn = command_saying(
        tmp_path / "mvn",
        "echo 'Downloading from x: https://repository.test/a/one-1.jar'\n"
        "echo 'Downloaded from x: https://repository.test/a/one-1.jar (5 kB at 1 MB/s)'\n"
        "echo 'Downloaded from x: https://repository.test/a/one-1.pom (5 kB at 1 MB/s)'",
    )
    progress = RecordedProgress()
    maven.copy_jars(mvn, tmp_path, tmp_path / "libs", progress=progress)
    assert progress.passing == ["fetched one-1.jar (1)"]


def test_maven_s_project_names_every_coordinate(tmp_path: Path) -> None:
    """The generated pom.xml depends on each coordinate in its version."""
    pom = maven.project(COORDINATES)
    assert all(
        f"<artifactId>{item.artifact}</artifactId><version>{item.version}</version>" in pom
        for item in COORDINATES
    )
    assert KAFKA_VERSION in pom


def test_ivy_takes_the_runtime_scope_of_every_coordinate() -> None:
    """The generated ivy.xml maps each dependency default->default."""
    descriptor = ivy.module_descriptor(COORDINATES)
    assert descriptor.count('conf="default->default"') == len(COORDINATES)


def test_an_artifact_may_come_alone() -> None:
    """Neither tool asks for its dependencies."""
    coordinate = Coordinate("g", "uber", "1", alone=True)
    assert "<artifactId>*</artifactId>" in maven.project([coordinate])
    assert 'transitive="false"/>' in ivy.module_descriptor([coordinate])


def test_the_ivy_of_an_installed_pyspark_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ivy jar is found in the installed package's jars, and in SPARK_HOME's."""
    package = tmp_path / "site" / "pyspark"
    (package / "jars").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "jars" / "ivy-2.5.3.jar").touch()
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    assert ivy.find_ivy({}) == package / "jars" / "ivy-2.5.3.jar"
    monkeypatch.setattr(ivy, "find_spec", lambda name: None)
    assert ivy.find_ivy({"SPARK_HOME": str(package)}) == package / "jars" / "ivy-2.5.3.jar"
    assert ivy.find_ivy({}, tmp_path) is None
