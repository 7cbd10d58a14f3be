"""`python -m pyconnect_reconcile SPEC --report DIR`, also as the file that spark-submit runs.

Several specs run one after the other in one Spark session; each needs its own --report.
Exit codes: 0 agree, 1 differ, 2 usage, 11 could not decide, 130 interrupted. Several specs
exit with 1 if any differs, otherwise with the first code that is not 0.
"""

import argparse
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events, end_with_parent
from pyconnect_reconcile.findings import Verdict
from pyconnect_reconcile.job_runs import run_each
from pyconnect_reconcile.spec import Spec, read_spec

USAGE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the spec of the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pyconnect_reconcile", description=__doc__)
    parser.add_argument("specs", type=Path, nargs="+", help="spec files, as YAML or JSON")
    parser.add_argument(
        "--report",
        type=Path,
        required=True,
        action="append",
        metavar="DIR",
        help="new directory for the report of a spec, in their order",
    )
    parser.add_argument("--events", action="store_true", help="NDJSON events on stdout")
    parser.add_argument(
        "--tethered",
        action="store_true",
        help="end of the run when standard input ends, because its parent has died",
    )
    options = parser.parse_args(arguments)
    if len(options.specs) != len(options.report):
        parser.error(f"{len(options.specs)} specs, but {len(options.report)} times --report")
    events = Events(machine=options.events)
    if options.tethered:
        end_with_parent(INTERRUPTED)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        specs = [load_spec(path) for path in options.specs]
    except ReconcileError as error:
        events.error(error.message, error.hint)
        return USAGE
    try:
        codes = run_each(list(zip(specs, options.report, strict=True)), events)
    except KeyboardInterrupt:
        events.error("interrupted", None)
        return INTERRUPTED
    except Exception as exc:  # noqa: BLE001 - the last place that can report it
        # An exit status of 1 would mean that the sides differ.
        traceback.print_exc()
        events.error(f"the run failed: {type(exc).__name__}: {exc}", "spark.log has the trace")
        return ReconcileError.exit_code
    return combined(codes)


def combined(codes: Sequence[int]) -> int:
    """Return the exit code of several runs: one run that differs decides it."""
    if Verdict.DIFFER.value in codes:
        return Verdict.DIFFER.value
    return next((code for code in codes if code), 0)


def load_spec(path: Path) -> Spec:
    """Read a spec file; ReconcileError when it cannot be read or is not valid."""
    import yaml

    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as exc:
        raise ReconcileError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        raise ReconcileError(f"{path}: is neither YAML nor JSON: {exc}") from exc
    return read_spec(document)


if __name__ == "__main__":
    sys.exit(main())
