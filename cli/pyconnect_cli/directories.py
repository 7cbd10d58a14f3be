"""The user's directories: of settings, of kept names, and of files that must outlive a run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sys import platform
from typing import Literal

from pyconnect_cli.errors import PreconditionFailed

KEPT_DAYS = 90
IDENTITY = re.compile(r"(\d{8}T\d{6})\d{6}Z-[0-9a-f]{6}")
_TIME_FORMAT = "%Y%m%dT%H%M%S"


def user_directory(kind: Literal["config", "state", "cache"], environ: Mapping[str, str]) -> Path:
    """Return the user's directory of a kind of files; `~` stays where no home is known."""
    if given := environ.get(f"XDG_{kind.upper()}_HOME"):
        return Path(given) / "pyconnect"
    if platform == "linux":
        # As the library says, whose import takes a tenth of the Tab key's time.
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
    """Return a name that sorts by its time and that no other backup, replay or repair has."""
    return f"{now.strftime(_TIME_FORMAT)}{now.microsecond:06d}Z-{os.urandom(3).hex()}"


def expired(identity: str, now: datetime, days: int = KEPT_DAYS) -> bool:
    """Whether a name is older than `days`; true for one that is no identity."""
    match = IDENTITY.fullmatch(identity)
    if match is None:
        return True
    try:
        made = datetime.strptime(match[1], _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return True
    return now - made > timedelta(days=days)
