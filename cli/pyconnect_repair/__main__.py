"""`python -m pyconnect_repair SPEC --events --tethered`: plan, carry out or undo a repair.

The spec is JSON: `action` (plan, apply, undo), `rows` (the file of the plan, which is also the
backup), `audit` (the spec of the audit as it is resolved now), `config` (the connector's), and for
a plan `report` (its directory). Exit codes: 0 done, 11 not done, with an event that has the reason.
"""

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from pyconnect_reconcile.data_sides import FileSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events, end_with_parent
from pyconnect_reconcile.spec import read_spec
from pyconnect_repair.records import Job


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the action of the spec; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pyconnect_repair", description=__doc__)
    parser.add_argument("spec", type=Path, help="spec file, as JSON")
    parser.add_argument("--events", action="store_true", help="NDJSON events on stdout")
    parser.add_argument("--tethered", action="store_true", help="end of the run with its parent")
    options = parser.parse_args(arguments)
    events = Events(machine=options.events)
    if options.tethered:
        end_with_parent(ReconcileError.exit_code)
    try:
        document = json.loads(options.spec.read_text("utf-8"))
        job = Job(
            audit=read_spec(document["audit"]),
            config=document["config"],
            rows=Path(document["rows"]),
            report=Path(document.get("report") or ""),
        )
        # Each kind of repair needs libraries that the others do not need.
        if job.audit.job != "topic-sink":
            from pyconnect_repair.topics import carry_out, plan
        elif isinstance(job.audit.right, FileSide):
            from pyconnect_repair.lakes import carry_out, plan
        else:
            from pyconnect_repair.tables import carry_out, plan
        if document["action"] == "plan":
            plan(job, events)
        else:
            carry_out(job, events, undo=document["action"] == "undo")
    except ReconcileError as error:
        events.error(error.message, error.hint)
        return ReconcileError.exit_code
    except Exception as exc:  # noqa: BLE001 - the last place that can report it
        traceback.print_exc()
        # Texts of other exceptions may hold values of rows.
        events.error(f"the repair failed: {type(exc).__name__}", None)
        return ReconcileError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
