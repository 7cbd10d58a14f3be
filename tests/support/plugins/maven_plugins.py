"""Real Java plugins from a Maven repository, in the user's cache, each a location of its own.

`maven_plugins.sha256` has a line for each file: SHA-256, plugin, path in the repository.
"""

import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from pyconnect_sandbox.jars import KAFKA_VERSION, JarCache, download, sha256_of, silent
from pyconnect_sandbox.runtime import KafkaRuntime

_LINES = Path(__file__).with_suffix(".sha256").read_text().splitlines()


@dataclass(frozen=True, slots=True)
class JavaPlugin:
    """A plugin whose files are jars, or an archive that is unpacked."""

    name: str
    version: str

    def files(self) -> dict[str, str]:
        """Return the SHA-256 of each file, by its path in the repository."""
        rows = map(str.split, _LINES)
        return {path: checksum for checksum, plugin, path in rows if plugin == self.name}


DEBEZIUM = JavaPlugin("debezium-postgres", "3.2.3.Final")
MIRROR = JavaPlugin("connect-mirror", KAFKA_VERSION)
BASIC_AUTH = JavaPlugin("basic-auth-extension", KAFKA_VERSION)
MONGO = JavaPlugin("mongo", "1.13.0")
RELOAD4J = JavaPlugin("reload4j", "1.2.26")
"""Not a plugin, but the library of Log4j 1 that old plugins need."""
ICEBERG_SINK = JavaPlugin("iceberg-sink", "1.9.2")
"""The sink with Hadoop's clients, for files and Parquet."""
NEW_ICEBERG_SINK = JavaPlugin("iceberg-1.12", "1.12.0")
"""Without file libraries: the sink starts, and fails at the first record."""
MYSQL = JavaPlugin("debezium-mysql-2.7", "2.7.4.Final")
IGNITE = JavaPlugin("ignite", "2.9.0")
MIRUS = JavaPlugin("mirus", "0.6.9")
RABBITMQ = JavaPlugin("rabbitmq", "0.0.2.16")
SNOWFLAKE = JavaPlugin("snowflake", "2.5.0")
"""All dependencies are in the jar, including Confluent's AvroConverter."""
JDBC_SINK = JavaPlugin("debezium-jdbc", "3.3.1.Final")
"""Debezium's sink with PostgreSQL's driver, without other drivers and Kafka's own libraries.

The repository has the jar of this release and its dependencies, but no archive.
"""


def location_of(plugin: JavaPlugin) -> Path:
    """Return the directory of a plugin's jars, fetched on first use."""
    root = user_cache_path("pyconnect") / "java-plugins" / plugin.name

    def fetch(work_directory: Path, libs: Path) -> None:
        files = plugin.files()
        download(files, work_directory, environment=os.environ, progress=silent)
        for path, checksum in files.items():
            file = work_directory / path.rpartition("/")[2]
            assert sha256_of(file) == checksum, file.name
            _keep(file, libs)

    return JarCache(plugin.version, {}, root).fill(fetch, silent)


def file_connectors(runtime: KafkaRuntime, directory: Path) -> Path:
    """Return a copy of Apache's jar of file connectors, as a location."""
    (jar,) = runtime.libs.glob("connect-file-*.jar")
    return Path(shutil.copy(jar, directory))


def _keep(file: Path, libs: Path) -> None:
    """Add a jar, or the jars of an archive, to the location."""
    if file.suffix == ".jar":
        shutil.copy(file, libs)
        return
    with tarfile.open(file) as archive:
        for member in archive.getmembers():
            if member.name.endswith(".jar"):
                member.name = Path(member.name).name
                archive.extract(member, libs, filter="data")
