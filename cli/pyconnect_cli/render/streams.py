"""A process's standard streams: absent ones, readers that leave, disks that are full.

The changes of a command must not depend on a reader of its output, so nothing here
raises. Imports nothing of ours.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO


def prepare_streams() -> None:
    """Open streams that the process was started without; let any text be printed on the others."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # Takes the free number of the absent one: no file that is opened later gets it.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            # Names of any script reach a terminal or file of any encoding.
            stream.reconfigure(errors="backslashreplace")


def tell(line: str) -> None:
    """Print a line on stderr; it is dropped when stderr cannot be written."""
    try:
        print(line, file=sys.stderr, flush=True)  # noqa: T201
    except OSError:
        discard(sys.stderr)


def write_data(text: str) -> OSError | None:
    """Print data on stdout; return why it cannot be written, and let the rest go nowhere then."""
    try:
        print(text, flush=True)  # noqa: T201
    except OSError as fault:
        discard(sys.stdout)
        return fault
    return None


def read_stdin() -> str:
    """Return all of stdin as UTF-8, whatever the locale; UnicodeDecodeError when it is none."""
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if binary is None else binary.read().decode("utf-8-sig")


def discard(stream: TextIO) -> None:
    """Let what is still written to a stream go nowhere, and what it holds already."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
