"""`python -m pyconnect_reconcile SPEC --report DIR`, also as the file that spark-submit runs.

Exit codes: 0 agree, 1 differ, 2 usage, 11 could not decide, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.run import run
from pyconnect_reconcile.spec import Spec, read_spec

USAGE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the spec of the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pyconnect_reconcile", description=__doc__)
    parser.add_argument("spec", type=Path, help="spec file, as YAML or JSON")
    parser.add_argument(
        "--report", type=Path, required=True, metavar="DIR", help="new directory for the report"
    )
    parser.add_argument("--events", action="store_true", help="NDJSON events on stdout")
    parser.add_argument(
        "--tethered",
        action="store_true",
        help="end of the run when standard input ends, because its parent has died",
    )
    options = parser.parse_args(arguments)
    events = Events(machine=options.events)
    if options.tethered:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        spec = load_spec(options.spec)
    except ReconcileError as error:
        events.error(error.message, error.hint)
        return USAGE
    try:
        return run(spec, options.report, events).value
    except ReconcileError as error:
        events.error(error.message, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        events.error("interrupted", None)
        return INTERRUPTED
    except Exception as exc:  # noqa: BLE001 - the last place that can report it
        # An exit status of 1 would say that the sides differ.
        traceback.print_exc()
        events.error(f"the run failed: {type(exc).__name__}: {exc}", "spark.log has the trace")
        return ReconcileError.exit_code


def load_spec(path: Path) -> Spec:
    """Read a spec file; ReconcileError when it cannot be read or is wrong."""
    import yaml

    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as exc:
        raise ReconcileError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ReconcileError(f"{path}: is neither YAML nor JSON: {exc}") from exc
    return read_spec(document)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    # Not through sys.stdin: its lock would be held when the interpreter ends.
    while os.read(0, 1):
        pass
    # Spark's JVM ends with the pipe that this process holds.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
