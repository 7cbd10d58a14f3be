"""The jars of the sandbox: where a Maven repository has them, and the checksums of their files."""

from __future__ import annotations

from functools import cache
from importlib import resources

KAFKA_VERSION = "4.3.1"


def known_checksums() -> dict[str, str]:
    """Return the SHA-256 of each jar that broker and Connect worker need, by file name."""
    return {path.rpartition("/")[2]: checksum for checksum, path in _table()}


def known_paths() -> list[str]:
    """Return where a Maven repository has these jars."""
    return [path for _, path in _table()]


@cache
def _table() -> list[tuple[str, str]]:
    text = resources.files(__package__).joinpath(f"kafka-{KAFKA_VERSION}.sha256").read_text()
    return [(checksum, path) for checksum, path in map(str.split, text.splitlines())]
