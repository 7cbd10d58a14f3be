"""Run one benchmark: `scripts/benchmark NAME [OPTION…]`.

Prints the machine and the versions that the figures depend on, then runs `main` of the module of
that name. Each module's docstring says what it measures and with which options. SIGTERM and SIGHUP
end a benchmark as Ctrl-C does: it stops the processes that it has started. After SIGKILL the
servers end themselves.
"""

import importlib
import signal
import sys
from pathlib import Path
from types import FrameType

from benchmarks import surroundings

DIRECTORY = Path(__file__).parent
INTERRUPTED = 130


def names() -> list[str]:
    """Return the names of the modules that define `main`."""
    return sorted(
        path.stem
        for path in DIRECTORY.glob("[a-z]*.py")
        if "\ndef main(" in path.read_text("utf-8")
    )


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    name, *options = sys.argv[1:] or ["--help"]
    if name in {"-h", "--help"}:
        print(__doc__)
        print("benchmarks:", *names(), sep="\n  ")
        return 0
    if name == "--names":
        print(*names())
        return 0
    if name not in names():
        print(f"error: there is no benchmark {name!r}", file=sys.stderr)
        print(f"hint: one of {', '.join(names())}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"benchmarks.{name}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    # A shell makes its background processes ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [f"scripts/benchmark {name}", *options]
    if not {"-h", "--help"} & set(options):
        print(surroundings.describe(), end="\n\n", flush=True)
    try:
        module.main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
