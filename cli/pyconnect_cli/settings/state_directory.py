"""The directory of files that must outlive a run: backups, journals, locks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyconnect_cli.errors import PreconditionFailed


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
