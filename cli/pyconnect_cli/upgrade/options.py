"""The options of `pyconnect upgrade`."""

from __future__ import annotations

from typing import Annotated

import typer

from pyconnect_cli.rest.phases import Phase

PhaseOption = Annotated[
    Phase | None, typer.Option("--phase", help="where to: disabled, preparing or enabled")
]
PlanOption = Annotated[bool, typer.Option("--plan", help="show the plan and change nothing")]
WorkerOption = Annotated[
    list[str] | None, typer.Option("--worker", metavar="URL", help="only this worker; repeatable")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="only go on with a run that has begun")
]
FullStopOption = Annotated[
    bool, typer.Option("--full-stop", help="stop all workers first; any phase to any other")
]
DirectOption = Annotated[bool, typer.Option("--direct", help="enabled to disabled in one rolling")]
HardOption = Annotated[
    bool, typer.Option("--hard", help="after disabled, replace the software, one by one")
]
CleanupOption = Annotated[
    bool, typer.Option("--cleanup", help="end an unfinished run; changes no worker")
]
InventoryOption = Annotated[
    str | None,
    typer.Option("--inventory", metavar="FILE", help="workers, and commands that change them"),
]
GroupOption = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="the workers' group.id")
]
SettleOption = Annotated[
    str, typer.Option("--settle", metavar="TIME", help="quiet before each step")
]
StepTimeoutOption = Annotated[
    str, typer.Option("--step-timeout", metavar="TIME", help="the most one step may take")
]
AcceptUnknownOption = Annotated[
    bool, typer.Option("--accept-unknown", help="go on though some ACLs are not known")
]
DeclaredOption = Annotated[
    bool,
    typer.Option("--declared", help="you have looked into the Java workers' files: they are right"),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="refuse when a connector cannot do exactly-once")
]
