"""Entry point of `pyconnect`: what must be quick is answered before the parser is imported."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Sequence
from types import FrameType


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words in (["--help"], ["-h"]):
        from pyconnect_cli.root_help import root_help

        print(root_help())  # noqa: T201
        sys.exit(0)
    if words[0] == "__complete":
        from pyconnect_cli.completion.candidates import print_candidates

        sys.exit(print_candidates(words[1:]))
    from pyconnect_cli.app import run

    signal.signal(signal.SIGTERM, _interrupt)
    # Names of any script reach a terminal or file of any encoding.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(words))


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End as Ctrl-C does, so that locks, levels and summaries are left in order."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
