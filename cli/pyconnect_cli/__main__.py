"""Entry point of `pyconnect`; help, version and completion come without importing the parser."""

import atexit
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from pyconnect_cli.render.streams import prepare_streams, tell, write_data

# The value of `errors.ExitCode.INTERRUPTED`: `errors` is imported later, to start fast.
INTERRUPTED = 130
OUTPUT_LOST = 74
FEW_COLLECTIONS = 200_000
"""New objects before Python collects garbage; each import reaches the default of 700."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if interruptible := signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    prepare_streams()
    if not words or words in (["--help"], ["-h"]):
        from pyconnect_cli.parsing.help_page import first_screen, root_help

        fault = write_data(root_help() if words else first_screen())
        if fault is None or isinstance(fault, BrokenPipeError):
            sys.exit(0)
        tell(f"error: standard output cannot be written: {fault.strerror}")
        sys.exit(OUTPUT_LOST)
    if words[0] == "--version":
        words[0] = "version"
    if words[0] == "__complete":
        from pyconnect_cli.completion import print_offers

        sys.exit(print_offers(words[1:]))
    from pyconnect_cli.app import run

    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, _interrupt)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            # The terminal is gone; nohup ignores this signal.
            signal.signal(signal.SIGHUP, _interrupt)
        code = run(words)
    except KeyboardInterrupt:
        # The signal came before `run` handles it, or while `run` closed its resources.
        tell("error: interrupted")
        code = INTERRUPTED
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, _leave)
    sys.exit(code)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """End at once, before the work starts or after it ended: an import would show a traceback."""
    os.write(2, b"error: interrupted\n")
    os._exit(INTERRUPTED)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End as Ctrl-C does, so that locks are released, levels are set back and summaries written."""
    raise KeyboardInterrupt


def command() -> None:
    """Run the command line of this process, with few garbage collections and a quick end.

    Most commands end before garbage would fill memory. The interpreter's own end, which releases
    each module, takes as long as its start, so only exit handlers and streams are ended in order.
    """
    gc.set_threshold(FEW_COLLECTIONS)
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    atexit._run_exitfuncs()  # noqa: SLF001 - as the interpreter's own end
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    command()
