"""Names that the Tab key offers without a request: the last ones that it or a command saw.

A file for each kind of name and list of addresses, below the user's cache directory. No parser and
no HTTP client is imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_cli.directories import user_directory


def cache_of(kind: str, urls: Sequence[str], environ: Mapping[str, str]) -> Path:
    """Return the file of one kind of names of one cluster."""
    key = hashlib.sha256("\0".join((kind, *urls)).encode()).hexdigest()[:24]
    return cache_directory(environ) / f"{key}.json"


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of kept answers."""
    return user_directory("cache", environ) / "completion"


def read_cache(cache: Path) -> tuple[list[str], float]:
    """Return the kept names and their age in seconds; no names and infinity without a file.

    A file from the future, of a clock that was wrong, is as old.
    """
    try:
        age_s = time.time() - cache.stat().st_mtime
        names: list[str] = json.loads(cache.read_text("utf-8"))
    except (OSError, ValueError):
        return [], float("inf")
    return names, age_s if age_s >= 0 else float("inf")


def write_cache(cache: Path, names: Sequence[str]) -> None:
    """Keep an answer; ignore a directory that cannot be written, because the answer is known."""
    with contextlib.suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = cache.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(list(names)), "utf-8")
        temporary.replace(cache)
