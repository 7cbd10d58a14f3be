"""A process's standard streams: absent ones, readers that leave, full disks; and whole files.

The changes of a command must not depend on a reader of its output, so no stream raises. No control
character of a text reaches a stream, only colours if they are asked for.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from pyconnect_cli.render.styles import displayed

if TYPE_CHECKING:
    from pathlib import Path


def prepare_streams() -> None:
    """Open absent streams on /dev/null, and make the others accept any character."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # `open` takes the free number of the absent stream, so that no later file gets it.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            # A terminal may have an encoding that lacks characters of names.
            stream.reconfigure(errors="backslashreplace")


def tell(line: str, *, colour: bool = False) -> None:
    """Print a line on stderr; it is dropped when stderr cannot be written."""
    try:
        print(displayed(line, colour=colour), file=sys.stderr, flush=True)  # noqa: T201
    except OSError:
        discard(sys.stderr)


def write_data(text: str, *, colour: bool = False) -> OSError | None:
    """Print data on stdout; if that fails, return the reason and discard later output."""
    try:
        print(displayed(text, colour=colour), flush=True)  # noqa: T201
    except OSError as fault:
        discard(sys.stdout)
        return fault
    return None


def read_stdin() -> str:
    """Return all of stdin as UTF-8 in any locale; UnicodeDecodeError for other bytes."""
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if binary is None else binary.read().decode("utf-8-sig")


def discard(stream: TextIO) -> None:
    """Discard the buffer of a stream and all later output on it."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


PRIVATE = 0o600


def write_whole(path: Path, text: str, *, mode: int | None = PRIVATE) -> None:
    """Replace a file atomically and synchronise it; after an OSError the file is unchanged.

    `mode` None gives the file the permissions of the process' umask. A link stays a link. A target
    that is not a regular file, such as /dev/stdout or a pipe, is written to and not replaced.
    """
    # Most commands write no file.
    import tempfile
    from pathlib import Path

    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    if mode is None:
        umask = os.umask(0o077)
        os.umask(umask)
        mode = 0o666 & ~umask
    target = path.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".pyconnect-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def file_name(name: str) -> str:
    """Return a connector's file name, unique for each name: `/` becomes `%2F` and `%` `%25`."""
    return f"{name.replace('%', '%25').replace('/', '%2F')}.json"
