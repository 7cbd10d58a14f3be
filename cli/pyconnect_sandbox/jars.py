"""The source of Kafka's jars: a Kafka directory, the cache, or a Maven repository.

Paths in the repository are known together with their checksums, so nothing has to be resolved and
the repository need not be trusted. For the releases of the sandbox all jars of a broker and a
Connect worker are known; for others those of plugins (`pyconnect_clients.plugin_jars.kafka_links`
names the releases). Maven Central is asked, or the repository that PYCONNECT_MAVEN_REPOSITORY
names. The library requests is in the extra `jars`.

The cache, `<user cache>/pyconnect/kafka/<version>/`, has `libs/` with the jars and `manifest.json`
with the size and SHA-256 of each. The jars are fetched into a directory beside it, which is renamed
when it is complete, under an exclusive `flock`: a version is complete or not there.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Protocol

from pyconnect_clients.installation import install_command
from pyconnect_sandbox.errors import JarResolutionFailed, JarsUnavailable
from pyconnect_sandbox.runtime import KafkaRuntime, cache_root, find_java


class Progress(Protocol):
    def __call__(self, message: str, *, passing: bool = False) -> None:
        """Report a step; `passing` ones are many, and only a terminal shows them."""


def silent(message: str, *, passing: bool = False) -> None:
    """Drop the report."""


def on_stderr(message: str, *, passing: bool = False) -> None:
    """Print the steps that are not `passing`, for scripts."""
    if not passing:
        sys.stderr.write(f"{message}\n")


ADDRESS_VARIABLE = "PYCONNECT_MAVEN_REPOSITORY"
OTHER_WAYS = (
    f"for a repository of your own set {ADDRESS_VARIABLE} to its http(s) address;"
    " Kafka's jars can also be given by --kafka-dir or KAFKA_HOME"
)
MAVEN_CENTRAL = "https://repo.maven.apache.org/maven2"
_AT_ONCE = 4
_SILENCE_S = 60


def download(
    paths: Iterable[str], directory: Path, *, environment: Mapping[str, str], progress: Progress
) -> None:
    """Put the file of each path into `directory`, under its own name.

    A path is `<group with slashes>/<artifact>/<version>/<file>`. Raises JarsUnavailable without
    requests, and JarResolutionFailed at the first file that does not come.
    """
    try:
        import requests
    except ModuleNotFoundError as exc:
        raise JarsUnavailable(
            "Jars cannot be fetched: the library requests is not installed",
            hint=f"install it: {install_command('jars')}; {OTHER_WAYS}",
        ) from exc
    repository = (environment.get(ADDRESS_VARIABLE) or MAVEN_CENTRAL).rstrip("/")

    def fetch(path: str) -> str:
        name = PurePosixPath(path).name
        try:
            with (
                session.get(f"{repository}/{path}", stream=True, timeout=_SILENCE_S) as answer,
                (directory / name).open("wb") as file,
            ):
                answer.raise_for_status()
                for chunk in answer.iter_content(1 << 20):
                    file.write(chunk)
        except OSError as exc:  # errors of requests are OSError
            raise JarResolutionFailed(
                f"{path} could not be downloaded: {exc}",
                hint=f"check the network and its proxy settings, then run the command again;"
                f" {OTHER_WAYS}",
            ) from exc
        return name

    # One session keeps connections: a new one for each file took most of the processor time.
    with requests.Session() as session, ThreadPoolExecutor(_AT_ONCE, "download") as pool:
        try:
            for count, name in enumerate(pool.map(fetch, paths), start=1):
                progress(f"fetched {name} ({count})", passing=True)
        finally:
            pool.shutdown(cancel_futures=True)


MANIFEST = "manifest.json"
GIVEN_JARS = "Kafka's own jars can also be given: --kafka-dir"


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class JarCache:
    def __init__(
        self, version: str, checksums: Mapping[str, str], root: Path | None = None
    ) -> None:
        """Expect jars with `checksums` (SHA-256 by file name); `root` None is the user's cache."""
        self._root = cache_root() if root is None else root
        self._checksums = checksums
        self._version = version
        self.directory = self._root / version

    @property
    def libs(self) -> Path:
        return self.directory / "libs"

    def is_complete(self, *, check_contents: bool = False) -> bool:
        """Return whether every recorded jar exists with its size, and on request with its SHA-256.

        A cache filled from an older list of jars is not complete.
        """
        try:
            manifest = json.loads((self.directory / MANIFEST).read_text())
            return (
                bool(manifest["jars"])
                and manifest["jars"].keys() >= set(self._checksums)
                and all(
                    (self.libs / name).stat().st_size == recorded["bytes"]
                    and (not check_contents or sha256_of(self.libs / name) == recorded["sha256"])
                    for name, recorded in manifest["jars"].items()
                )
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return False

    def fill(self, fetch: Callable[[Path, Path], None], progress: Progress) -> Path:
        """Return the directory of the jars; fetch them if the cache is not complete.

        `fetch(work_directory, libs)` puts the jars into `libs` and may use `work_directory`.
        Raises JarResolutionFailed when a jar is missing or differs from the known ones; the cache
        is then as before.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        with self._lock(progress):
            if self.is_complete():
                return self.libs
            with tempfile.TemporaryDirectory(dir=self._root, prefix=".fetching-") as temporary:
                work_directory = Path(temporary)
                candidate = work_directory / "complete"
                libs = candidate / "libs"
                libs.mkdir(parents=True)
                fetch(work_directory, libs)
                self._verify(libs)
                jars = {
                    path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
                    for path in sorted((candidate / "libs").glob("*.jar"))
                }
                manifest = {"version": self._version, "jars": jars}
                (candidate / MANIFEST).write_text(json.dumps(manifest, indent=1))
                if self.directory.exists():
                    shutil.rmtree(self.directory)
                candidate.rename(self.directory)
        return self.libs

    @contextmanager
    def _lock(self, progress: Progress) -> Iterator[None]:
        descriptor = os.open(
            self._root / f"{self._version}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress("another process is fetching these jars: waiting for it")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _verify(self, libs: Path) -> None:
        missing = sorted(name for name in self._checksums if not (libs / name).exists())
        if missing:
            raise JarResolutionFailed(
                f"These jars of version {self._version} were not fetched: {', '.join(missing)}",
                hint=f"run the command again; {GIVEN_JARS}",
            )
        altered = sorted(
            name for name, checksum in self._checksums.items() if sha256_of(libs / name) != checksum
        )
        if altered:
            raise JarResolutionFailed(
                f"These jars differ from the known ones of version {self._version}:"
                f" {', '.join(altered)}",
                hint="the repository has altered or damaged them: use another repository;"
                f" {GIVEN_JARS}",
            )


KAFKA_VERSION = "4.3.1"
SERVER_VERSIONS = (KAFKA_VERSION, "4.4.0")
"""The releases of the sandbox, its default first.

Maven Central has no connect-file 4.4.0, and that of 4.3.1 needs a class that 4.4 moved: a Java
worker of 4.4.0 has no FileStream connectors.
"""


def known_checksums(version: str = KAFKA_VERSION) -> dict[str, str]:
    """Return the SHA-256 of each jar, by file name. Raises FileNotFoundError."""
    return {path.rpartition("/")[2]: checksum for checksum, path in _table(version)}


def known_paths(version: str = KAFKA_VERSION) -> list[str]:
    return [path for _, path in _table(version)]


@cache
def _table(version: str) -> list[tuple[str, str]]:
    text = resources.files(__package__).joinpath(f"kafka-{version}.sha256").read_text()
    return [(checksum, path) for checksum, path in map(str.split, text.splitlines())]


SIZE = "54 MB"
API_SIZE = "34 MB"
"""The size of the jars for plugins alone."""
_REQUIRED = ("kafka-server", "kafka-clients", "connect-runtime")


def libs_of(kafka_dir: Path) -> Path:
    """Return the jars of an unpacked Kafka: its `libs`, or the directory itself if it has the jars.

    Raises JarsUnavailable when it lacks the broker's, the clients' or Connect's jar.
    """
    for candidate in (kafka_dir / "libs", kafka_dir):
        if all(any(candidate.glob(f"{artifact}-[0-9]*.jar")) for artifact in _REQUIRED):
            return candidate.resolve()
    raise JarsUnavailable(
        f"{kafka_dir} is not a Kafka directory: its libs lack jars of {', '.join(_REQUIRED)}",
        hint="name the directory that a Kafka archive unpacks to (with bin, config and libs)",
    )


def find_runtime(
    kafka_dir: Path | None = None,
    *,
    version: str | None = None,
    progress: Progress = silent,
    environment: Mapping[str, str] | None = None,
    cache: JarCache | None = None,
) -> KafkaRuntime:
    """Return a Java and Kafka's jars; fetch the jars on first use.

    `kafka_dir` wins over `version`, `version` over KAFKA_HOME, KAFKA_HOME over the default version.
    Raises JavaUnavailable, JarsUnavailable and JarResolutionFailed.
    """
    environment = os.environ if environment is None else environment
    java = find_java(environment)
    if kafka_dir is None and version is None and (kafka_home := environment.get("KAFKA_HOME")):
        kafka_dir = Path(kafka_home)
    if kafka_dir is not None:
        return KafkaRuntime(java=java, libs=libs_of(kafka_dir))
    libs = fetched(version or KAFKA_VERSION, cache, environment, progress)
    return KafkaRuntime(java=java, libs=libs)


def fetched(
    version: str,
    cache: JarCache | None = None,
    environment: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Path:
    """Return the directory of a release's jars; fetch them unless the cache has them.

    Raises JarsUnavailable and JarResolutionFailed.
    """
    cache = cache or JarCache(version, known_checksums(version))
    if not cache.is_complete():
        size = SIZE if version in SERVER_VERSIONS else API_SIZE
        progress(f"fetching Apache Kafka {version} ({size}), once")
        cache.fill(
            lambda _, libs: download(
                known_paths(version),
                libs,
                environment=os.environ if environment is None else environment,
                progress=progress,
            ),
            progress,
        )
    return cache.libs


if __name__ == "__main__":
    fetched(sys.argv[1] if len(sys.argv) > 1 else KAFKA_VERSION, progress=on_stderr)
