"""The jars of Kafka: where a Maven repository has them, and the checksums of their files.

Of the releases of the sandbox all that a broker and a Connect worker need; of the others those that
plugins need (`pyconnect_clients.plugin_jars.kafka_api` names the releases).
"""

from __future__ import annotations

from functools import cache
from importlib import resources

KAFKA_VERSION = "4.3.1"
SERVER_VERSIONS = (KAFKA_VERSION, "4.4.0")
"""The releases of the sandbox, its default first.

Maven Central has no connect-file 4.4.0, and that of 4.3.1 needs a class that 4.4 moved: a Java
worker of 4.4.0 has no FileStream connectors.
"""


def known_checksums(version: str = KAFKA_VERSION) -> dict[str, str]:
    """Return the SHA-256 of each jar, by file name. Raises FileNotFoundError."""
    return {path.rpartition("/")[2]: checksum for checksum, path in _table(version)}


def known_paths(version: str = KAFKA_VERSION) -> list[str]:
    """Return where a Maven repository has these jars."""
    return [path for _, path in _table(version)]


@cache
def _table(version: str) -> list[tuple[str, str]]:
    text = resources.files(__package__).joinpath(f"kafka-{version}.sha256").read_text()
    return [(checksum, path) for checksum, path in map(str.split, text.splitlines())]
