"""The Java and the jars of Kafka with which plugins run.

The Java is that of `agent.java.home`, of JAVA_HOME or on the path. Kafka's jars are those of
`agent.java.kafka.home`, of KAFKA_HOME or, fetched once, of the agent's release of Kafka Connect.
"""

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from pyconnect_agent.core.config.agent_keys import KAFKA_RELEASES
from pyconnect_agent.core.plugin_catalog import spoken_release
from pyconnect_agent.java_processes.build import (
    LOWEST_JAVA,
    HostBuildError,
    built_host_jar,
    cached_host_jar,
)
from pyconnect_agent.java_processes.launch import JavaInstallation
from pyconnect_api.errors import ConnectException
from pyconnect_clients.installation import java_version
from pyconnect_clients.plugin_jars.kafka_links import kafka_versions, version_of

LOG = logging.getLogger(__name__)

JAVA_HOME_KEY = "agent.java.home"
KAFKA_HOME_KEY = "agent.java.kafka.home"
RELEASE_FILE = "kafka.release"
"""A file in the directory of a plugin location: a release of Kafka, or the directory of one."""
_OF_LOCATIONS = f"{KAFKA_RELEASES} or the location's file {RELEASE_FILE}"
FETCH_MODULE = "pyconnect_sandbox.jars"
"""The program that fills the cache of Kafka's jars, because the agent does not import the CLI."""
FETCH_TIMEOUT_S = 600.0

_NEEDED = ("connect-api", "connect-json", "connect-runtime", "connect-transforms", "kafka-clients")
_LOGGERS = re.compile(r"(log4j-slf4j|log4j-core|slf4j-reload4j|slf4j-log4j|logback-classic)")
"""Kafka's log back ends, which the host replaces."""
_FIRST = re.compile(r"(connect-|kafka-clients|jackson-(core|databind|annotations)|slf4j-api)")
"""Jars of classes that all processes load. To find a class, Java opens each jar before its own, and
keeps that jar's directory in memory.
"""


def find_installation(
    properties: Mapping[str, str | None],
    environment: Mapping[str, str] | None = None,
    *,
    kafka: str = "",
    fetch: bool = False,
) -> JavaInstallation:
    """Return the Java, Kafka's jars and the host that a worker's Java plugins run with.

    `kafka`: a release of Kafka such as `4.2`, or its directory; empty: the worker's usual one. With
    `fetch`, missing jars of Kafka are downloaded, which may take minutes. Raises ConnectException.
    """
    environment = os.environ if environment is None else environment
    java = find_java(properties.get(JAVA_HOME_KEY), environment)
    fetch_by = java if fetch else None
    if kafka:
        try:
            release = version_of(kafka, kafka_versions())
        except KeyError:
            libs = _libs_of(Path(kafka), _OF_LOCATIONS)
        else:
            libs = _fetched_libs(release, environment, fetch_by, _OF_LOCATIONS)
    elif home := properties.get(KAFKA_HOME_KEY):
        libs = _libs_of(Path(home), KAFKA_HOME_KEY)
    elif home := environment.get("KAFKA_HOME"):
        libs = _libs_of(Path(home), "KAFKA_HOME")
    else:
        release = spoken_release(properties)
        libs = _fetched_libs(release, environment, fetch_by, f"{KAFKA_HOME_KEY} or KAFKA_HOME")
    kafka_jars = tuple(
        str(jar)
        for jar in sorted(libs.glob("*.jar"), key=lambda jar: (not _FIRST.match(jar.name), jar))
        if not _LOGGERS.match(jar.name)
    )
    try:
        host_jar = str(built_host_jar() or cached_host_jar(java, kafka_jars, java_cache()))
    except (HostBuildError, OSError) as error:
        raise ConnectException(f"Java plugins cannot run: {error}") from error
    # Java ignores an archive that extends another archive of its own classes than the present one.
    own_archive = java.parents[1] / "lib" / "server" / "classes.jsa"
    digest = hashlib.sha256()
    for file in (java, *([own_archive] if own_archive.exists() else ()), host_jar, *kafka_jars):
        stat = Path(file).stat()
        digest.update(f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    archive = java_cache() / "classes" / f"{digest.hexdigest()[:16]}.jsa"
    return JavaInstallation(
        java=str(java), kafka_jars=kafka_jars, host_jar=host_jar, archive=str(archive)
    )


def kafka_release(kafka_jars: Sequence[str]) -> str | None:
    """Return the release of Kafka's API among the jars, by the name of its jar."""
    found = (re.fullmatch(r"connect-api-(.+)\.jar", Path(jar).name) for jar in kafka_jars)
    return next((match[1] for match in found if match), None)


def java_cache() -> Path:
    """Return the directory of facts about jars, and of the host in a checkout."""
    return user_cache_path("pyconnect") / "java"


def find_java(home: str | None, environment: Mapping[str, str]) -> Path:
    """Return the program `java`; `home` None: JAVA_HOME, then the path. Raises ConnectException."""
    if home:
        return _new_enough(Path(home) / "bin" / "java", JAVA_HOME_KEY)
    if from_environment := environment.get("JAVA_HOME"):
        return _new_enough(Path(from_environment) / "bin" / "java", "JAVA_HOME")
    found = shutil.which("java", path=environment.get("PATH"))
    if found is None:
        raise ConnectException(
            f"Java plugins need Java {LOWEST_JAVA} or newer, and no Java was found: install it, or "
            f"set {JAVA_HOME_KEY} or JAVA_HOME"
        )
    return _new_enough(Path(found), "PATH")


def _new_enough(java: Path, source: str) -> Path:
    """Return the resolved program: the other programs of a JDK are beside it."""
    version = java_version(java)
    if version is None:
        raise ConnectException(
            f"{source} does not name a Java that runs: {java}. Set {JAVA_HOME_KEY} to the "
            "directory that holds bin/java."
        )
    if version < LOWEST_JAVA:
        raise ConnectException(
            f"Java plugins need Java {LOWEST_JAVA} or newer, and {source} names Java {version}: "
            f"{java}. Set {JAVA_HOME_KEY} to the directory of a newer Java."
        )
    return java.resolve()


def _fetched_libs(
    version: str, environment: Mapping[str, str], fetch_by: Path | None, keys: str
) -> Path:
    """Return the directory of a release's jars; with a Java, `fetch_by`, fetch missing jars."""
    directory = user_cache_path("pyconnect") / "kafka" / version
    if not _is_complete(directory) and fetch_by is not None:
        LOG.info("Kafka's jars are fetched, once", extra={"release": version})
        try:
            done = subprocess.run(
                [sys.executable, "-m", FETCH_MODULE, version],
                capture_output=True,
                text=True,
                check=False,
                timeout=FETCH_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                env={**environment, "JAVA_HOME": str(fetch_by.parents[1])},
            )
        except subprocess.TimeoutExpired as error:
            raise ConnectException(
                f"Kafka's jars could not be fetched within {FETCH_TIMEOUT_S:.0f} s; set "
                f"{KAFKA_HOME_KEY} to a Kafka installation"
            ) from error
        if done.returncode != 0:
            last = done.stderr.strip().rpartition("\n")[2]
            raise ConnectException(
                f"Kafka's jars could not be fetched ({last}); set {KAFKA_HOME_KEY} to a Kafka "
                "installation"
            )
    if not _is_complete(directory):
        raise ConnectException(
            f"Java plugins need the jars of Apache Kafka {version}: set {keys} to the directory "
            "that Kafka's archive unpacks to"
        )
    return directory / "libs"


def _libs_of(home: Path, source: str) -> Path:
    for libs in (home / "libs", home):
        if all(any(libs.glob(f"{name}-[0-9]*.jar")) for name in _NEEDED):
            return libs
    raise ConnectException(
        f"{source} does not name a Kafka installation: {home} has no libs with the jars "
        + ", ".join(_NEEDED)
    )


def _is_complete(directory: Path) -> bool:
    """Return whether the cache's manifest and every jar in it exist."""
    try:
        manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
        return all((directory / "libs" / name).exists() for name in manifest["jars"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
