"""Spark's Kafka source, Avro, JDBC drivers, Iceberg: the jars that PySpark lacks, fetched once.

Each jar is known by its path in a Maven repository and its SHA-256: drivers here, those of Spark's
releases in a table for each line.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from pyconnect_cli.errors import PreconditionFailed
from pyconnect_clients.installation import install_command
from pyconnect_sandbox.errors import JavaUnavailable
from pyconnect_sandbox.jars import JarCache, download
from pyconnect_sandbox.java import Java, find_java
from pyconnect_sandbox.progress import Progress, on_stderr, silent
from pyconnect_sandbox.runtime import cache_root

EXTRA = "reconcile"
KAFKA, AVRO, ICEBERG = "kafka", "avro", "iceberg"
"""Uses of jars in the tables of Spark's releases."""
RELEASES = ("3.5", "4.0", "4.1", "4.2")
"""Lines of Spark with a table (`scripts/spark_jars.py` writes it) for all their patch releases."""
_LACKING = {KAFKA: "topics", AVRO: "Avro", ICEBERG: "Iceberg tables"}
_VERSION = re.compile(r"^__version__[^=]*=\s*['\"](\d[\w.]*)", re.MULTILINE)
_MARIADB = {
    "org/mariadb/jdbc/mariadb-java-client/3.5.6/mariadb-java-client-3.5.6.jar": (
        "a129703efd7b0f334564d46753de999f09b3a361489a2eb647e6020390981cc9"
    )
}
JDBC = {
    "postgresql": {
        "org/postgresql/postgresql/42.7.8/postgresql-42.7.8.jar": (
            "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7"
        )
    },
    "mariadb": _MARIADB,
    "mysql": _MARIADB,
}
"""The driver of a database, by the scheme of its JDBC URL."""


def require_spark() -> str:
    """Return the version of the installed PySpark, which is not imported for it.

    Raises PreconditionFailed (exit 9) without PySpark, and for a release without known jars.
    """
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise PreconditionFailed(
            "Spark is not installed", hint=f"install it: {install_command(EXTRA)}"
        )
    text = Path(found.origin).with_name("version.py").read_text("utf-8")
    version = _VERSION.search(text)
    if version is None or line_of(version[1]) not in RELEASES:
        name = version[1] if version else "of an unknown release"
        raise PreconditionFailed(
            f"audits do not run on Spark {name}: they know Spark {', '.join(RELEASES)}",
            hint=f"install one of these: {install_command(EXTRA)}",
        )
    return version[1]


def line_of(version: str) -> str:
    """Return the line of a release, `4.1` of `4.1.4`."""
    return ".".join(version.split(".")[:2])


def require_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return a Java that Spark runs on; PreconditionFailed with the command otherwise."""
    try:
        return find_java(environment)
    except JavaUnavailable as exc:
        raise PreconditionFailed(
            exc.message.replace("Kafka needs", "Spark needs"), hint=exc.hint
        ) from exc


def kafka_source_jars(*, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the jars of Spark's Kafka source, fetching them on first use.

    Raises PreconditionFailed without Spark or Java, or when no jar serves this release of Spark;
    JarsUnavailable and JarResolutionFailed when they cannot be fetched.
    """
    return _jars(known_jars(KAFKA), progress)


def avro_jars(*, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the jar with which Spark reads Avro, fetched on first use; it raises likewise."""
    return _jars(known_jars(AVRO), progress)


def jdbc_jars(url: str, *, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the driver of a JDBC URL, fetched on first use; nothing for other databases."""
    driver = JDBC.get(url.removeprefix("jdbc:").partition(":")[0])
    return () if driver is None else _jars(driver, progress)


def iceberg_jars(*, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the jar with which Spark reads Iceberg tables; it raises likewise."""
    return _jars(known_jars(ICEBERG), progress)


def table_of(line: str) -> Path:
    """Return the table of a line of Spark: SHA-256, use, path in a Maven repository."""
    return Path(__file__).with_name(f"spark-{line}.sha256")


def known_jars(use: str) -> Mapping[str, str]:
    """Return the SHA-256 of each jar of a use, by its path; they fit the installed Spark."""
    line = line_of(require_spark())
    rows = map(str.split, table_of(line).read_text("utf-8").splitlines())
    found = {path: checksum for checksum, its_use, path in rows if its_use == use}
    if not found:
        raise PreconditionFailed(
            f"no jar is known with which Spark {line} reads {_LACKING[use]}",
            hint="name one with --packages or --jars, or use another release of Spark:"
            f" {', '.join(each for each in RELEASES if each != line)}",
        )
    return found


def _cache(jars: Mapping[str, str]) -> JarCache:
    """Return the cache of these jars, named by the artifact and version of the first one."""
    *_, artifact, version_, _ = next(iter(jars)).split("/")
    checksums = {path.rpartition("/")[2]: checksum for path, checksum in jars.items()}
    return JarCache(version_, checksums, cache_root().parent / artifact)


def _jars(jars: Mapping[str, str], progress: Progress) -> tuple[Path, ...]:
    require_java()
    cache = _cache(jars)
    if not cache.is_complete():
        progress(f"fetching {next(iter(jars)).rpartition('/')[2]}, once")
        cache.fill(
            lambda _, libs: download(jars, libs, environment=os.environ, progress=progress),
            progress,
        )
    return tuple(sorted(cache.libs.glob("*.jar")))


def main(arguments: Sequence[str]) -> None:
    """Fetch what audits of every kind need, and make the archive of Spark's classes.

    With `--kafka` only what audits of topics and files need.
    """
    from pyconnect_cli.reconcile.spark_archive import SparkArchive

    kafka_source_jars(progress=on_stderr)
    if "--kafka" in arguments:
        return
    avro_jars(progress=on_stderr)
    with suppress(PreconditionFailed):  # Iceberg follows a new release of Spark later.
        iceberg_jars(progress=on_stderr)
    for name in JDBC:
        jdbc_jars(f"jdbc:{name}:", progress=on_stderr)
    SparkArchive(require_java(), os.environ).make(on_stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
