"""A schema registry with Confluent's API: Apicurio Registry, in memory, as one process.

`python -m tests.support.servers.schema_registry_server` fetches it into the cache. Its archive
comes from a Maven repository, as Kafka's jars do, and is known by its SHA-256.
"""

import os
import tarfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

from pyconnect_sandbox.errors import JarResolutionFailed
from pyconnect_sandbox.jars import JarCache, Progress, download, on_stderr, sha256_of, silent
from pyconnect_sandbox.runtime import QUICK_START_OPTIONS, find_java
from pyconnect_sandbox.server import LOOPBACK, Server, free_port

VERSION = "2.6.13.Final"
ARCHIVE = f"io/apicurio/apicurio-registry-app/{VERSION}/apicurio-registry-app-{VERSION}-all.tar.gz"
ARCHIVE_SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
RUNNER = f"apicurio-registry-app-{VERSION}-runner.jar"
RUNNER_SHA256 = "fc638b426304817da3509ebc92a2bdedfac44777b9ab231a98032922e5a9deea"
CONFLUENT_API = "/apis/ccompat/v7"
HEAP_MB = 256


def find_registry(*, progress: Progress = silent, cache: JarCache | None = None) -> Path:
    """Return the registry's jar, fetched on first use.

    Raises JavaUnavailable, JarsUnavailable and JarResolutionFailed.
    """
    if cache is None:
        cache = JarCache(
            VERSION, {RUNNER: RUNNER_SHA256}, user_cache_path("pyconnect") / "apicurio"
        )

    def fetch(work_directory: Path, libs: Path) -> None:
        progress(f"fetching Apicurio Registry {VERSION}, once")
        download([ARCHIVE], work_directory, environment=os.environ, progress=progress)
        archive = work_directory / ARCHIVE.rpartition("/")[2]
        if sha256_of(archive) != ARCHIVE_SHA256:
            raise JarResolutionFailed(
                "The archive of the schema registry has an unexpected checksum",
                hint="the repository has altered or damaged it; use another repository",
            )
        with tarfile.open(archive) as content:
            content.extractall(libs, filter="data")

    return cache.fill(fetch, progress) / RUNNER


class SchemaRegistryServer(Server):
    """An Apicurio Registry that keeps its schemas in memory, on a port of the loopback."""

    name = "schema-registry"

    def __init__(self, runner: Path, *, directory: Path, hold_file: Path | None = None) -> None:
        super().__init__(
            directory=directory, start_timeout_s=150, stop_timeout_s=10.0, hold_file=hold_file
        )
        self._runner = runner
        self._port = free_port()

    @property
    def url(self) -> str:
        """The address that `schema.registry.url` takes."""
        return f"http://{LOOPBACK}:{self._port}{CONFLUENT_API}"

    def _prepare(self) -> Sequence[str]:
        return [
            str(find_java().executable),
            f"-Xmx{HEAP_MB}m",
            *QUICK_START_OPTIONS,
            f"-Dquarkus.http.host={LOOPBACK}",
            f"-Dquarkus.http.port={self._port}",
            "-jar",
            str(self._runner),
        ]

    def _answers(self, timeout_s: float) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=timeout_s) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _give_up_ports(self) -> bool:
        self._port = free_port(frozenset({self._port}))
        return True


if __name__ == "__main__":
    find_registry(progress=on_stderr)
