#!/usr/bin/env python3
"""Write the table of jars that audits fetch for one release of Spark.

    scripts/spark_jars.py 4.1.1 --iceberg 1.11.0

The table is `cli/pyconnect_cli/reconcile/spark-4.1.sha256`: SHA-256, use, path in the repository.
It serves all patch releases of the line. `--iceberg` is the release of Iceberg's library, without
which the line reads no Iceberg tables. Maven Central is asked, or PYCONNECT_MAVEN_REPOSITORY.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "cli"))
sys.path.insert(0, str(ROOT / "agent"))

from jgo.maven import MavenContext, Model  # noqa: E402

from pyconnect_cli.reconcile import spark_jars  # noqa: E402
from pyconnect_sandbox.jars import ADDRESS_VARIABLE, download, on_stderr, sha256_of  # noqa: E402

SPARK, ICEBERG = "org.apache.spark", "org.apache.iceberg"
SOURCE = "spark-sql-kafka-0-10"
NOT_IN_SPARK = ("spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2")
"""What the Kafka source needs and Spark's own jars lack."""


def path_of(group: str, artifact: str, version: str) -> str:
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


def jars(context: MavenContext, release: str, iceberg: str | None) -> Iterator[tuple[str, str]]:
    """Yield use and path of each jar."""
    line = release.rpartition(".")[0]
    scala = "_2.12" if line == "3.5" else "_2.13"
    source = context.project(SPARK, f"{SOURCE}{scala}").at_version(release)
    yield spark_jars.KAFKA, path_of(SPARK, source.artifactId, release)
    for needed in Model(source.pom(), context).deps.values():
        if needed.scope == "compile" and needed.artifactId.removesuffix(scala) in NOT_IN_SPARK:
            yield spark_jars.KAFKA, path_of(needed.groupId, needed.artifactId, needed.version)
    yield spark_jars.AVRO, path_of(SPARK, f"spark-avro{scala}", release)
    if iceberg:
        runtime = f"iceberg-spark-runtime-{line}{scala}"
        yield spark_jars.ICEBERG, path_of(ICEBERG, runtime, iceberg)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("release", help="release whose jars are published, such as 4.1.1")
    parser.add_argument("--iceberg", metavar="RELEASE", help="release of Iceberg's library")
    given = parser.parse_args(arguments)
    address = os.environ.get(ADDRESS_VARIABLE)
    with tempfile.TemporaryDirectory() as work:
        directory = Path(work)
        context = MavenContext(
            repo_cache=directory / "poms", remote_repos={"repository": address} if address else None
        )
        named = list(jars(context, given.release, given.iceberg))
        download([path for _, path in named], directory, environment=os.environ, progress=on_stderr)
        lines = [
            f"{sha256_of(directory / PurePosixPath(path).name)}  {use}  {path}\n"
            for use, path in named
        ]
    target = spark_jars.table_of(given.release.rpartition(".")[0])
    target.write_text("".join(lines))
    print(f"{target}: {len(lines)} jars")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
