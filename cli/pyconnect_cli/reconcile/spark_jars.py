"""Spark's Kafka source, Avro, JDBC drivers, Iceberg: the jars that PySpark lacks, fetched once.

Each jar is known by its path in a Maven repository and its SHA-256.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from pyconnect_cli.errors import PreconditionFailed
from pyconnect_clients.installation import install_command
from pyconnect_sandbox.errors import JavaUnavailable
from pyconnect_sandbox.jar_cache import JarCache, cache_root
from pyconnect_sandbox.java import Java, find_java
from pyconnect_sandbox.progress import Progress, on_stderr, silent
from pyconnect_sandbox.repository import download

EXTRA = "reconcile"
KAFKA_SOURCE = {
    "4.0.0": {
        "org/apache/spark/spark-sql-kafka-0-10_2.13/4.0.0/spark-sql-kafka-0-10_2.13-4.0.0.jar": (
            "33a3b8b04df4a2e43c9d5bf8ca5972936a1ac662f2714e014d00ef6f27468bf3"
        ),
        "org/apache/spark/spark-token-provider-kafka-0-10_2.13/4.0.0/"
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar": (
            "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767"
        ),
        "org/apache/kafka/kafka-clients/3.9.0/kafka-clients-3.9.0.jar": (
            "15c1e137f2c2c94398e27abc4060a03b6bde10bf9fac15e8f70c02320b202f18"
        ),
        "org/apache/commons/commons-pool2/2.12.0/commons-pool2-2.12.0.jar": (
            "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b"
        ),
    }
}
"""Spark's reader of topics, by Spark's version."""
AVRO = {
    "4.0.0": {
        "org/apache/spark/spark-avro_2.13/4.0.0/spark-avro_2.13-4.0.0.jar": (
            "083fb13d7a1091025b135eff216e2009b42c9724bb8bc597d2f28b1207ef4709"
        )
    }
}
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
ICEBERG = {
    "org/apache/iceberg/iceberg-spark-runtime-4.0_2.13/1.10.0/"
    "iceberg-spark-runtime-4.0_2.13-1.10.0.jar": (
        "0480f1248e0a8b50ae2a730d7ad3e1a727351c362ca63f4a0c35182087a49323"
    )
}
"""Spark's reader of Iceberg tables, for Spark 4.0."""


def require_spark() -> str:
    """Return the version of the installed PySpark; PreconditionFailed (exit 9) without it."""
    if find_spec("pyspark") is None:
        raise PreconditionFailed(
            "Spark is not installed", hint=f"install it: {install_command(EXTRA)}"
        )
    for name in ("pyspark", "pyspark-client"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    raise PreconditionFailed(
        "Spark is installed without its version", hint=f"install it: {install_command(EXTRA)}"
    )


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

    Raises PreconditionFailed without Spark or Java, or when the jars of this Spark are not known;
    JarsUnavailable and JarResolutionFailed when they cannot be fetched.
    """
    return _jars(_for_this_spark(KAFKA_SOURCE), progress)


def avro_jars(*, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the jar with which Spark reads Avro, fetched on first use; it raises likewise."""
    return _jars(_for_this_spark(AVRO), progress)


def jdbc_jars(url: str, *, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the driver of a JDBC URL, fetched on first use; nothing for other databases."""
    driver = JDBC.get(url.removeprefix("jdbc:").partition(":")[0])
    return () if driver is None else _jars(driver, progress)


def iceberg_jars(*, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the jar with which Spark reads Iceberg tables, fetched on first use."""
    return _jars(ICEBERG, progress)


def _for_this_spark(known: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    spark = require_spark()
    if spark not in known:
        raise PreconditionFailed(
            f"The jars with which Spark {spark} reads Kafka are not known here",
            hint=f"name them with --packages or --jars, or install Spark {', '.join(known)}:"
            f" {install_command(EXTRA)}",
        )
    return known[spark]


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
    iceberg_jars(progress=on_stderr)
    for name in JDBC:
        jdbc_jars(f"jdbc:{name}:", progress=on_stderr)
    SparkArchive(require_java(), os.environ).make(on_stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
