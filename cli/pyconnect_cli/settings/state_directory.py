"""The directory of files that must outlive a run: backups, journals, locks, and names in it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyconnect_cli.errors import PreconditionFailed

KEPT_DAYS = 90
IDENTITY = re.compile(r"(\d{8}T\d{6})\d{6}Z-[0-9a-f]{6}")
_TIME_FORMAT = "%Y%m%dT%H%M%S"


def state_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user; PreconditionFailed for a path that is not absolute.

    A relative path would be another directory in each working directory. `~` stays relative if
    neither HOME nor the user is known, as in some containers.
    """
    if given := environ.get("XDG_STATE_HOME"):
        directory = Path(given) / "pyconnect"
    else:
        import platformdirs

        directory = Path(platformdirs.user_state_dir("pyconnect", appauthor=False))
    if not directory.is_absolute():
        raise PreconditionFailed(
            f"{directory}: is not an absolute path, so another run would not find the"
            " same directory",
            hint="set XDG_STATE_HOME to a directory you can write",
        )
    return directory


def new_identity(now: datetime) -> str:
    """Return a name that sorts by its time and that no other backup, replay or repair has."""
    return f"{now.strftime(_TIME_FORMAT)}{now.microsecond:06d}Z-{secrets.token_hex(3)}"


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
