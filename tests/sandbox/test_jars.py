"""Kafka's jars are fetched as a whole and once."""

import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pyconnect_sandbox import jars
from pyconnect_sandbox.errors import JarResolutionFailed, JarsUnavailable
from pyconnect_sandbox.jars import (
    KAFKA_VERSION,
    SERVER_VERSIONS,
    JarCache,
    find_runtime,
    known_checksums,
    known_paths,
    libs_of,
    silent,
)
from pyconnect_sandbox.server import free_port
from tests.sandbox.test_java import java_saying
from tests.support.cases import cases
from tests.support.commands.processes import RecordedProgress
from tests.support.eventually import eventually

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


def test_a_filled_cache_is_complete_and_is_not_filled_again(cache: JarCache) -> None:
    """Jars are fetched once; the manifest records the checksum of each."""
    assert not cache.is_complete()
    libs = cache.fill(resolve, silent)
    assert cache.fill(refuse, silent) == libs
    assert cache.is_complete(check_contents=True)
    manifest = json.loads((cache.directory / "manifest.json").read_text())
    assert {name: jar["sha256"] for name, jar in manifest["jars"].items()} == CHECKSUMS


@cases("damage", "remove", "truncate")
def test_a_damaged_cache_is_resolved_again(cache: JarCache, damage: str) -> None:
    """A missing jar, or one that is shorter than recorded, makes the cache incomplete."""
    cache.fill(resolve, silent)
    jar = cache.libs / "one-1.jar"
    jar.unlink() if damage == "remove" else jar.write_bytes(b"")
    assert not cache.is_complete()
    cache.fill(resolve, silent)
    assert jar.read_bytes() == CONTENTS["one-1.jar"]


def test_caches_of_older_lists_or_altered_jars_are_found(cache: JarCache, tmp_path: Path) -> None:
    """A cache from another list is not complete; checksums find changed bytes of the same size."""
    older = JarCache("1.0", {"one-1.jar": CHECKSUMS["one-1.jar"]}, tmp_path / "cache")
    older.fill(lambda _, libs: keep_one(libs), silent)
    assert older.is_complete()
    assert not cache.is_complete()
    cache.fill(resolve, silent)
    assert {jar.name for jar in cache.libs.iterdir()} == set(CONTENTS)
    cache.fill(resolve, silent)
    (cache.libs / "one-1.jar").write_bytes(b"FIRST")
    assert cache.is_complete()
    assert not cache.is_complete(check_contents=True)


def keep_one(libs: Path) -> None:
    (libs / "one-1.jar").write_bytes(CONTENTS["one-1.jar"])


@cases(
    "other, message",
    (None, r"not fetched: two-2\.jar"),
    (b"altered", r"differ from the known ones .*: two-2\.jar"),
)
def test_a_missing_or_altered_jar_leaves_the_cache_empty(
    cache: JarCache, other: bytes | None, message: str
) -> None:
    """If a repository lacks a jar or has other bytes for it, no jar is kept."""

    def fetch(_: Path, libs: Path) -> None:
        keep_one(libs)
        if other is not None:
            (libs / "two-2.jar").write_bytes(other)

    with pytest.raises(JarResolutionFailed, match=message):
        cache.fill(fetch, silent)
    assert not cache.directory.exists()
    assert not list(cache.directory.parent.glob(".fetching-*"))


def test_processes_that_need_the_jars_together_resolve_once(cache: JarCache) -> None:
    """The second process reports that another one fetches, waits, and takes the jars."""
    resolving, may_finish = threading.Event(), threading.Event()
    progress = RecordedProgress()

    def slowly(work_directory: Path, libs: Path) -> None:
        resolving.set()
        assert may_finish.wait(60)
        resolve(work_directory, libs)

    first = threading.Thread(target=cache.fill, args=(slowly, silent))
    first.start()
    assert resolving.wait(60)
    second = threading.Thread(target=cache.fill, args=(refuse, progress))
    second.start()
    eventually(lambda: progress.messages, describe="the word of the one that waits")
    may_finish.set()
    first.join(60)
    second.join(60)
    assert "another process is fetching" in progress.messages[0]
    assert cache.is_complete()


@pytest.mark.parametrize("version", SERVER_VERSIONS)
def test_the_known_checksums_cover_the_sandboxs_jars(version: str) -> None:
    """The list has the jars of broker and worker, of FileStream plugins and of the log library."""
    names = set(known_checksums(version))
    kafka = ("kafka_2.13", "connect-runtime", "connect-json", "connect-transforms")
    assert {f"{artifact}-{version}.jar" for artifact in kafka} <= names
    assert (f"connect-file-{version}.jar" in names) == (version == KAFKA_VERSION)
    assert any(name.startswith("log4j-slf4j-impl-") for name in names)
    assert all(len(checksum) == 64 for checksum in known_checksums(version).values())
    assert len(known_paths(version)) == len(names)
    assert all(path.count("/") >= 3 for path in known_paths(version))


def test_a_directory_wins_over_kafka_home_and_cache(cache: JarCache, tmp_path: Path) -> None:
    """The order is --kafka-dir, --kafka, KAFKA_HOME, the default version."""
    cache.fill(resolve, silent)
    asked, home = unpacked_kafka(tmp_path / "asked"), unpacked_kafka(tmp_path / "home")
    environment = environment_with(tmp_path, KAFKA_HOME=str(home))
    assert find_runtime(asked, environment=environment, cache=cache).libs == asked / "libs"
    assert find_runtime(environment=environment, cache=cache).libs == home / "libs"
    named = find_runtime(version="1.0", environment=environment, cache=cache)
    assert named.libs == cache.libs
    del environment["KAFKA_HOME"]
    assert find_runtime(environment=environment, cache=cache).libs == cache.libs


def test_the_libs_directory_itself_is_taken(tmp_path: Path) -> None:
    """A directory with `libs` or with the jars is accepted, unless a required jar is missing."""
    kafka = unpacked_kafka(tmp_path / "kafka")
    assert libs_of(kafka / "libs") == libs_of(kafka) == kafka / "libs"
    with pytest.raises(
        JarsUnavailable, match=r"is not a Kafka directory: .*connect-runtime"
    ) as error:
        libs_of(tmp_path)
    assert error.value.exit_code == 9


def test_without_the_library_the_ways_out_are_named(
    cache: JarCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint names the extra, the variable of a repository's address and --kafka-dir."""
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(JarsUnavailable, match="requests is not installed") as error:
        find_runtime(environment=environment_with(tmp_path), cache=cache)
    assert error.value.exit_code == 9
    assert error.value.hint is not None
    ways = ("[jars]", jars.ADDRESS_VARIABLE, "--kafka-dir", "KAFKA_HOME")
    assert all(word in error.value.hint for word in ways)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Serve a directory as a repository; return it and its address."""
    directory = tmp_path / "repository"
    directory.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(directory))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield directory, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(60)


@cases("slash", "", "/")
def test_a_repository_that_is_named_is_asked_for_the_known_jars_only(
    cache: JarCache,
    tmp_path: Path,
    served: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    slash: str,
) -> None:
    """The jars come from the repository in PYCONNECT_MAVEN_REPOSITORY, and each is reported."""
    repository_directory, address = served
    paths = {"org/first/one/1/one-1.jar": "one-1.jar", "g/two/2/two-2.jar": "two-2.jar"}
    for path, name in paths.items():
        stored = repository_directory / path
        stored.parent.mkdir(parents=True)
        stored.write_bytes(CONTENTS[name])
    monkeypatch.setattr(jars, "known_paths", lambda _: list(paths))
    environment = environment_with(tmp_path, PYCONNECT_MAVEN_REPOSITORY=address + slash)
    progress = RecordedProgress()

    runtime = find_runtime(environment=environment, cache=cache, progress=progress)

    assert {jar.name: jar.read_bytes() for jar in runtime.libs.iterdir()} == CONTENTS
    assert len(progress.passing) == len(CONTENTS)


def test_a_repository_without_a_jar_is_reported_with_its_path(
    cache: JarCache, tmp_path: Path, served: tuple[Path, str]
) -> None:
    """The error names the jar or the variable; the cache stays empty."""
    environment = environment_with(tmp_path, PYCONNECT_MAVEN_REPOSITORY=served[1])
    with pytest.raises(JarResolutionFailed, match=r"\.jar could not be downloaded: 404"):
        find_runtime(environment=environment, cache=cache)
    assert not cache.is_complete()
    environment["PYCONNECT_MAVEN_REPOSITORY"] = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(JarResolutionFailed, match="could not be downloaded") as error:
        find_runtime(environment=environment, cache=cache)
    assert jars.ADDRESS_VARIABLE in str(error.value.hint)
