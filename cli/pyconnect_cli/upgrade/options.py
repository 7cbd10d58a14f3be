"""The options of `pyconnect upgrade`."""

from __future__ import annotations

from typing import Annotated

import typer

from pyconnect_cli.rest.phases import Phase

PhaseOption = Annotated[
    Phase | None, typer.Option("--phase", help="target phase: disabled, preparing or enabled")
]
PlanOption = Annotated[bool, typer.Option("--plan", help="print the plan and change nothing")]
WorkerOption = Annotated[
    list[str] | None,
    typer.Option("--worker", metavar="URL", help="worker to change; repeatable (default: all)"),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="continuation of an unfinished run; no new run")
]
FullStopOption = Annotated[
    bool,
    typer.Option(
        "--full-stop", help="stop of all workers before the change; allows any change of phase"
    ),
]
DirectOption = Annotated[
    bool, typer.Option("--direct", help="change from enabled to disabled in one rolling restart")
]
HardOption = Annotated[
    bool,
    typer.Option("--hard", help="replacement of the software after disabled, one worker at a time"),
]
CleanupOption = Annotated[
    bool, typer.Option("--cleanup", help="end of an unfinished run; changes no worker")
]
InventoryOption = Annotated[
    str | None,
    typer.Option(
        "--inventory",
        metavar="FILE",
        help="inventory: the workers and the commands that change them",
    ),
]
GroupOption = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="group.id of the workers")
]
SettleOption = Annotated[
    str,
    typer.Option(
        "--settle", metavar="TIME", help="time without a rebalance or failure before each step"
    ),
]
StepTimeoutOption = Annotated[
    str, typer.Option("--step-timeout", metavar="TIME", help="time limit of one step")
]
AcceptUnknownOption = Annotated[
    bool, typer.Option("--accept-unknown", help="continue although some ACLs cannot be checked")
]
DeclaredOption = Annotated[
    bool,
    typer.Option(
        "--declared", help="confirmation that the Java workers' files have been checked by hand"
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="refusal if a connector does not support exactly-once")
]
