"""The user's directories: of settings, of files that must outlive a run, and of kept names.

The Tab key offers kept names without a request: those that it or a command read last. Each kind
of name and list of addresses has a file. Neither the parser nor an HTTP client is imported.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sys import platform
from typing import Literal

from pyconnect_cli.errors import PreconditionFailed

KEPT_DAYS = 90
IDENTITY = re.compile(r"(\d{8}T\d{6})\d{6}Z-[0-9a-f]{6}")
_TIME_FORMAT = "%Y%m%dT%H%M%S"


def user_directory(kind: Literal["config", "state", "cache"], environ: Mapping[str, str]) -> Path:
    """Return the user's directory of a kind of files; `~` stays if the home is unknown."""
    if given := environ.get(f"XDG_{kind.upper()}_HOME"):
        return Path(given) / "pyconnect"
    if platform == "linux":
        # The same path as the library's, whose import takes a tenth of the Tab key's time.
        below = {"config": ".config", "state": ".local/state", "cache": ".cache"}[kind]
        return Path(os.path.expanduser(f"~/{below}"), "pyconnect")  # noqa: PTH111 - keeps `~`
    import platformdirs

    return Path(getattr(platformdirs, f"user_{kind}_dir")("pyconnect", appauthor=False))


def state_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user; PreconditionFailed for a path that is not absolute.

    A relative path would be another directory in each working directory. `~` stays relative if
    neither HOME nor the user is known, as in some containers.
    """
    directory = user_directory("state", environ)
    if not directory.is_absolute():
        raise PreconditionFailed(
            f"{directory}: is not an absolute path, so another run would not find the"
            " same directory",
            hint="set XDG_STATE_HOME to a directory you can write",
        )
    return directory


def new_identity(now: datetime) -> str:
    """Return a name that sorts by its time and is unique among backups, replays and repairs."""
    return f"{now.strftime(_TIME_FORMAT)}{now.microsecond:06d}Z-{os.urandom(3).hex()}"


def expired(identity: str, now: datetime, days: int = KEPT_DAYS) -> bool:
    """Return whether a name is older than `days`; true for a name that is not an identity."""
    match = IDENTITY.fullmatch(identity)
    if match is None:
        return True
    try:
        made = datetime.strptime(match[1], _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return True
    return now - made > timedelta(days=days)


def cache_of(kind: str, urls: Sequence[str], environ: Mapping[str, str]) -> Path:
    """Return the file of one kind of names of one cluster."""
    import hashlib  # most commands keep no names

    key = hashlib.sha256("\0".join((kind, *urls)).encode()).hexdigest()[:24]
    return user_directory("cache", environ) / "completion" / f"{key}.json"


def read_cache(cache: Path) -> tuple[list[str], float]:
    """Return the kept names and their age in seconds; without a file no names and infinity.

    The age of a file from the future, written by a wrong clock, is infinity too.
    """
    try:
        age_s = time.time() - cache.stat().st_mtime
        names: list[str] = json.loads(cache.read_text("utf-8"))
    except (OSError, ValueError):
        return [], float("inf")
    return names, age_s if age_s >= 0 else float("inf")


def write_cache(cache: Path, names: Sequence[str]) -> None:
    """Keep an answer; errors of the file system do not matter, because the answer is known."""
    with contextlib.suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = cache.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(list(names)), "utf-8")
        temporary.replace(cache)
