"""Spark's Kafka source, Avro, JDBC drivers, Iceberg: the jars that PySpark lacks, fetched once.

Jars that PySpark has are not kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from pyconnect_cli.errors import PreconditionFailed
from pyconnect_clients.installation import install_command
from pyconnect_sandbox.coordinates import Coordinate
from pyconnect_sandbox.errors import JavaUnavailable
from pyconnect_sandbox.jar_cache import JarCache, cache_root
from pyconnect_sandbox.java import Java, find_java
from pyconnect_sandbox.progress import Progress, on_stderr, silent
from pyconnect_sandbox.resolvers import find_resolver

EXTRA = "reconcile"
SOURCE = "spark-sql-kafka-0-10_2.13"
AVRO = "spark-avro_2.13"
KEPT = {
    SOURCE: (SOURCE, "spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2"),
    AVRO: (AVRO,),
}
_POSTGRESQL = Coordinate("org.postgresql", "postgresql", "42.7.8")
_MARIADB = Coordinate("org.mariadb.jdbc", "mariadb-java-client", "3.5.6")
JDBC = {"postgresql": _POSTGRESQL, "mariadb": _MARIADB, "mysql": _MARIADB}
ICEBERG = Coordinate("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", "1.10.0")
"""Spark's reader of Iceberg tables, for Spark 4.0."""
KEPT |= {driver.artifact: (driver.artifact,) for driver in (*JDBC.values(), ICEBERG)}
JDBC_CHECKSUMS = {
    _POSTGRESQL: {
        "postgresql-42.7.8.jar": "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7"
    },
    _MARIADB: {
        "mariadb-java-client-3.5.6.jar": (
            "a129703efd7b0f334564d46753de999f09b3a361489a2eb647e6020390981cc9"
        )
    },
}
ICEBERG_CHECKSUMS = {
    "iceberg-spark-runtime-4.0_2.13-1.10.0.jar": (
        "0480f1248e0a8b50ae2a730d7ad3e1a727351c362ca63f4a0c35182087a49323"
    )
}
AVRO_CHECKSUMS = {
    "4.0.0": {
        f"{AVRO}-4.0.0.jar": "083fb13d7a1091025b135eff216e2009b42c9724bb8bc597d2f28b1207ef4709"
    }
}
CHECKSUMS = {
    "4.0.0": {
        f"{SOURCE}-4.0.0.jar": "33a3b8b04df4a2e43c9d5bf8ca5972936a1ac662f2714e014d00ef6f27468bf3",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar": (
            "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767"
        ),
        "kafka-clients-3.9.0.jar": (
            "15c1e137f2c2c94398e27abc4060a03b6bde10bf9fac15e8f70c02320b202f18"
        ),
        "commons-pool2-2.12.0.jar": (
            "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b"
        ),
    }
}


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


def kafka_source_jars(
    *,
    progress: Progress = silent,
    environment: Mapping[str, str] | None = None,
    cache: JarCache | None = None,
) -> tuple[Path, ...]:
    """Return the jars of Spark's Kafka source, fetching them on first use.

    Raises PreconditionFailed without Spark or Java, JarsUnavailable and JarResolutionFailed.
    """
    spark = require_spark()
    cache = _kafka_source_cache(spark) if cache is None else cache
    source = Coordinate("org.apache.spark", SOURCE, spark)
    return _jars(source, cache, os.environ if environment is None else environment, progress)


def has_kafka_source_jars() -> bool:
    """Return whether the jars of Spark's Kafka source have been fetched."""
    return _kafka_source_cache(require_spark()).is_complete()


def _kafka_source_cache(spark: str) -> JarCache:
    return JarCache(spark, CHECKSUMS.get(spark, {}), cache_root().parent / "spark")


def avro_jars(*, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the jar with which Spark reads Avro, fetched on first use; it raises likewise."""
    spark = require_spark()
    known = AVRO_CHECKSUMS.get(spark, {})
    cache = JarCache(spark, known, cache_root().parent / "spark-avro")
    return _jars(Coordinate("org.apache.spark", AVRO, spark), cache, os.environ, progress)


def jdbc_jars(url: str, *, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the driver of a JDBC URL, fetched on first use; nothing for other databases."""
    driver = JDBC.get(url.removeprefix("jdbc:").partition(":")[0])
    if driver is None:
        return ()
    root = cache_root().parent / "jdbc" / driver.artifact
    cache = JarCache(driver.version, JDBC_CHECKSUMS[driver], root)
    return _jars(driver, cache, os.environ, progress)


def iceberg_jars(*, progress: Progress = silent) -> tuple[Path, ...]:
    """Return the jar with which Spark reads Iceberg tables, fetched on first use."""
    cache = JarCache(ICEBERG.version, ICEBERG_CHECKSUMS, cache_root().parent / ICEBERG.artifact)
    return _jars(ICEBERG, cache, os.environ, progress)


def _jars(
    artifact: Coordinate, cache: JarCache, environment: Mapping[str, str], progress: Progress
) -> tuple[Path, ...]:
    java = require_java(environment)
    if not cache.is_complete():
        _fetch(artifact, cache, java, environment, progress)
    return tuple(sorted(cache.libs.glob("*.jar")))


def _fetch(
    artifact: Coordinate,
    cache: JarCache,
    java: Java,
    environment: Mapping[str, str],
    progress: Progress,
) -> None:
    resolver = find_resolver(environment, java, wanted=artifact.artifact)

    def resolve(work_directory: Path, libs: Path) -> None:
        everything = work_directory / "all"
        everything.mkdir()
        resolver.resolve(work_directory, everything, coordinates=(artifact,), progress=progress)
        for jar in everything.glob("*.jar"):
            if jar.name.rpartition("-")[0] in KEPT[artifact.artifact]:
                jar.rename(libs / jar.name)

    progress(f"fetching {artifact.artifact} {artifact.version}, once")
    cache.fill(resolver.name.lower(), resolve, progress)


def main() -> None:
    """Fetch what audits of every kind need, and make the archive of Spark's classes."""
    from pyconnect_cli.reconcile.spark_archive import SparkArchive

    kafka_source_jars(progress=on_stderr)
    avro_jars(progress=on_stderr)
    iceberg_jars(progress=on_stderr)
    for name in JDBC:
        jdbc_jars(f"jdbc:{name}:", progress=on_stderr)
    SparkArchive(require_java(), os.environ).make(on_stderr)


if __name__ == "__main__":
    main()
