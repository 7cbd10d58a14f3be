"""The source of Kafka's jars: a Kafka directory, the cache, or a Maven repository."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyconnect_sandbox.coordinates import (
    KAFKA_VERSION,
    SERVER_VERSIONS,
    known_checksums,
    known_paths,
)
from pyconnect_sandbox.errors import JarsUnavailable
from pyconnect_sandbox.jar_cache import JarCache
from pyconnect_sandbox.java import find_java
from pyconnect_sandbox.progress import Progress, on_stderr, silent
from pyconnect_sandbox.repository import download
from pyconnect_sandbox.runtime import KafkaRuntime

SIZE = "54 MB"
API_SIZE = "34 MB"
"""Of the jars for plugins alone."""
_REQUIRED = ("kafka-server", "kafka-clients", "connect-runtime")


def libs_of(kafka_dir: Path) -> Path:
    """Return the jars of an unpacked Kafka: its `libs`, or the directory itself if it is that.

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
    """Return a Java and Kafka's jars, fetching these on first use.

    `kafka_dir` wins over `version`, that over KAFKA_HOME, that over the default version. Raises
    JavaUnavailable, JarsUnavailable and JarResolutionFailed.
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
    """Return the directory of a release's jars, fetched unless the cache has them.

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
