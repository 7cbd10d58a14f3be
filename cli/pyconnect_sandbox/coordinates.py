"""The jars of the sandbox: coordinates of Apache Kafka and the checksums of their files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

KAFKA_VERSION = "4.3.1"
LOG4J_VERSION = "2.25.4"


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A Maven artifact; what it depends on comes with it, unless it is wanted `alone`."""

    group: str
    artifact: str
    version: str
    classifier: str = ""
    packaging: str = "jar"
    alone: bool = False


COORDINATES = (
    Coordinate("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    Coordinate("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    Coordinate("org.apache.kafka", "connect-file", KAFKA_VERSION),
    Coordinate("org.apache.kafka", "connect-json", KAFKA_VERSION),
    Coordinate("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
)


def known_checksums() -> dict[str, str]:
    """Return the SHA-256 of every jar that the coordinates bring, by file name."""
    return {path.rpartition("/")[2]: checksum for checksum, path in _table()}


def known_paths() -> list[str]:
    """Return where a Maven repository has these jars."""
    return [path for _, path in _table()]


@cache
def _table() -> list[tuple[str, str]]:
    text = resources.files(__package__).joinpath(f"kafka-{KAFKA_VERSION}.sha256").read_text()
    return [(checksum, path) for checksum, path in map(str.split, text.splitlines())]
