"""Names for the shell, asked of the cluster: never an error, never longer than 300 ms.

`pyconnect __complete KIND [--url URL] [--context NAME]` prints a name a line. What a cluster
answered is kept for 30 s, so that a second Tab costs no request.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

CACHE_S = 30.0
DEADLINE_S = 0.3


def print_candidates(words: Sequence[str]) -> int:
    """Print the names of one kind; always returns 0, because a shell shows anything else."""
    # Completion that fails must be silent: the user is in the middle of typing.
    with contextlib.suppress(Exception):
        for name in candidates(words[0], words[1:]):
            print(name)  # noqa: T201
    return 0


def candidates(kind: str, options: Sequence[str]) -> list[str]:
    """Return the names, from the cache when they are fresh."""
    from pyconnect_cli.settings import resolve_settings

    settings = resolve_settings(_given(options), os.environ, Path.cwd())
    if kind == "contexts":
        return settings.files.context_names()
    key = hashlib.sha256("\0".join((kind, *settings.urls)).encode()).hexdigest()[:24]
    cache = _cache_directory() / f"{key}.json"
    kept = _read(cache)
    if kept is not None:
        return kept
    names = _asked(kind, options)
    _write(cache, names)
    return names


def _asked(kind: str, options: Sequence[str]) -> list[str]:
    from pyconnect_cli.session import Session

    session = Session()
    session.given.update({**_given(options), "timeout": f"{DEADLINE_S:g}s"})
    client = session.client
    kinds: dict[str, Callable[[], list[str]]] = {
        "connectors": client.connector_names,
        "tasks": lambda: [
            f"{view.name}/{task.id}"
            for view in client.connector_views().values()
            if view.status
            for task in view.status.tasks
        ],
        "plugins": lambda: [p.class_name for p in client.plugins(connectors_only=False)],
        "loggers": lambda: [logger.name for logger in client.loggers()],
    }
    try:
        return kinds[kind]()
    finally:
        session.close()


def _given(options: Sequence[str]) -> dict[str, object]:
    given: dict[str, object] = {}
    words = list(options)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if not equals:
            value = words.pop(0) if words else ""
        key = name.lstrip("-")
        given[key] = (*_texts(given.get(key)), value) if key == "url" else value
    return given


def _texts(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _cache_directory() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("pyconnect", appauthor=False)) / "completion"


def _read(cache: Path) -> list[str] | None:
    try:
        if time.time() - cache.stat().st_mtime > CACHE_S:
            return None
        names: list[str] = json.loads(cache.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return names


def _write(cache: Path, names: Sequence[str]) -> None:
    with contextlib.suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = cache.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(list(names)), "utf-8")
        temporary.replace(cache)
