"""Options that the changing verbs of `offsets` have in common."""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_cli.errors import UsageError
from pyconnect_cli.offsets.plan.change import StateWish
from pyconnect_cli.offsets.run import Around
from pyconnect_cli.parsing.options import (
    CRON_OPTIONS,
    PLAN_OPTIONS,
    SELECTED_BATCH_OPTIONS,
    SELECTION_OPTIONS,
    WAIT_OPTIONS,
    OptionSpec,
)
from pyconnect_cli.verbs import ActingVerb

PARTITION_OPTION = OptionSpec(
    ("--partition", "-p"),
    "partition to change: JSON as `get` shows it, or TOPIC:NUMBER of a sink (default: all)",
    "PARTITION",
    repeatable=True,
)
FORCE_OPTION = OptionSpec(
    ("--force",), "change even if the offsets do not seem to fit, or were changed meanwhile"
)
CHANGE_OPTIONS = (
    OptionSpec(("--stop",), "stop of the connector before the change, if it is not STOPPED"),
    OptionSpec(("--resume",), "resume of the connector after the change"),
    OptionSpec(("--no-backup",), "no backup: the change cannot be undone"),
)


class OffsetsVerb(ActingVerb):
    """A command that changes the offsets of one connector."""

    shared_specs = (
        ("Change", (*CHANGE_OPTIONS, FORCE_OPTION)),
        ("Plan", PLAN_OPTIONS),
        ("Waiting", WAIT_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )


class SelectingOffsetsVerb(ActingVerb):
    """A command that changes the offsets of a selection."""

    shared_specs = (
        ("Change", (PARTITION_OPTION, *CHANGE_OPTIONS)),
        ("Selection", SELECTION_OPTIONS),
        ("Batch", SELECTED_BATCH_OPTIONS),
        ("Waiting", WAIT_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )


def around(given: Mapping[str, object]) -> Around:
    """Read the options; UsageError for a wait whose state would never come."""
    resume, wait = bool(given.get("resume")), given.get("wait")
    if wait is not None and str(wait).upper() in {"", "RUNNING"} and not resume:
        raise UsageError(
            "--wait waits until the connector runs again: it needs --resume",
            hint="the command always waits for the stop",
        )
    return Around(
        wish=StateWish(stop=bool(given.get("stop")), resume=resume),
        backup=not given.get("no_backup"),
        force=bool(given.get("force")),
    )
