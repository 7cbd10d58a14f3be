"""The source of Kafka's jars: a Kafka directory, the cache, a repository, Maven or Ivy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pyconnect_sandbox import repository
from pyconnect_sandbox.coordinates import KAFKA_VERSION, known_checksums
from pyconnect_sandbox.errors import JarsUnavailable
from pyconnect_sandbox.jar_cache import JarCache
from pyconnect_sandbox.java import Java, find_java
from pyconnect_sandbox.progress import Progress, on_stderr, silent
from pyconnect_sandbox.resolvers import find_resolver
from pyconnect_sandbox.runtime import KafkaRuntime

SIZE = "54 MB"
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
    progress: Progress = silent,
    environment: Mapping[str, str] | None = None,
    cache: JarCache | None = None,
) -> KafkaRuntime:
    """Return a Java and Kafka's jars, fetching these on first use.

    `kafka_dir` wins over KAFKA_HOME, that over the cache. Raises JavaUnavailable, JarsUnavailable
    and JarResolutionFailed.
    """
    environment = os.environ if environment is None else environment
    java = find_java(environment)
    if kafka_dir is None and (kafka_home := environment.get("KAFKA_HOME")):
        kafka_dir = Path(kafka_home)
    if kafka_dir is not None:
        return KafkaRuntime(java=java, libs=libs_of(kafka_dir))
    cache = cache or JarCache(KAFKA_VERSION, known_checksums())
    if not cache.is_complete():
        _fetch(cache, java, environment, progress)
    return KafkaRuntime(java=java, libs=cache.libs)


def _fetch(cache: JarCache, java: Java, environment: Mapping[str, str], progress: Progress) -> None:
    wanted = f"Apache Kafka {KAFKA_VERSION}"
    if address := environment.get(repository.ADDRESS_VARIABLE):
        progress(f"fetching {wanted} ({SIZE}) from {repository.ADDRESS_VARIABLE}, once")
        cache.fill(
            "repository",
            lambda _, libs: repository.download_jars(address, libs, progress=progress),
            progress,
        )
        return
    try:
        resolver = find_resolver(environment, java, wanted=wanted)
    except JarsUnavailable as exc:
        raise JarsUnavailable(
            exc.message,
            hint=f"{exc.hint}\n"
            f"or set {repository.ADDRESS_VARIABLE} to the address of a Maven repository\n"
            "or name an unpacked Kafka with --kafka-dir or KAFKA_HOME",
        ) from exc
    progress(f"fetching {wanted} ({SIZE}) with {resolver.name}, once")
    cache.fill(resolver.name.lower(), partial(resolver.resolve, progress=progress), progress)


if __name__ == "__main__":
    find_runtime(progress=on_stderr)
