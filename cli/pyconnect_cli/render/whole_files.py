"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o600


def write_whole(path: Path, text: str, *, mode: int | None = PRIVATE) -> None:
    """Replace a file atomically and synchronise it; after an OSError the file is unchanged.

    `mode` None gives the file the permissions of the process' umask. A link stays a link. A target
    that is not a regular file, such as /dev/stdout or a pipe, is written to and not replaced.
    """
    import tempfile  # most commands write no file

    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    target = path.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".pyconnect-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), _umask_mode() if mode is None else mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask_mode() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


def file_name(name: str) -> str:
    """Return a connector's file name, unique for each name: `/` becomes `%2F` and `%` `%25`."""
    return f"{name.replace('%', '%25').replace('/', '%2F')}.json"
