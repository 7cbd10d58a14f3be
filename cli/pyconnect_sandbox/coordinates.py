"""The jars of Kafka: where a Maven repository has them, and the checksums of their files.

Of the release of the sandbox all that a broker and a Connect worker need; of the others those that
plugins need (`pyconnect_clients.plugin_jars.kafka_api` names the releases).
"""

from __future__ import annotations

from functools import cache
from importlib import resources

KAFKA_VERSION = "4.3.1"


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
