"""The question before a change: the plan, its total, and the user's consent."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from pyconnect_cli.render.styles import printable
from pyconnect_cli.session import Session

UNCHANGED = "unchanged"


class Asks(Enum):
    """Which changes need consent. Consent is `--yes`, or an answer on a terminal."""

    SEVERAL = "a change of several objects; without a terminal it goes on"
    ALWAYS = "every change; without a terminal it is refused"
    BEFORE = "none: the command has asked already"


class Planned(Protocol):
    """One object of a plan; `changes`: its changes, each as `old -> new`."""

    @property
    def name(self) -> str: ...

    @property
    def changes(self) -> tuple[str, ...]: ...


def confirm_plan(
    session: Session, verb: str, steps: Sequence[Planned], asks: Asks, *, what: str = "connector"
) -> None:
    """Show the plan and ask for consent as `asks` says; see Session.confirm."""
    needed = asks is Asks.ALWAYS or (
        asks is Asks.SEVERAL and len(steps) > 1 and session.interactive
    )
    if not needed or session.settings.yes:
        return
    for line in plan_lines(steps):
        session.output.message(line)
    same = sum(step.changes == (UNCHANGED,) for step in steps)
    total = f", {same} of them unchanged" if same else ""
    session.confirm(f"{verb} {len(steps)} {what}{'' if len(steps) == 1 else 's'}{total}?")


def confirm_names(
    session: Session, verb: str, names: Sequence[str], *, what: str = "connector"
) -> None:
    """Ask for consent to a plan that the command has shown; see Session.confirm."""
    if not session.settings.yes:
        session.output.message(f"{verb}: {', '.join(names)}")
    session.confirm(f"{verb} {len(names)} {what}{'' if len(names) == 1 else 's'}?")


def plan_lines(steps: Sequence[Planned]) -> list[str]:
    """Return a line for each change of each object, the objects' names in a column."""
    width = max((len(printable(step.name)) for step in steps), default=0)
    lines = []
    for step in steps:
        for at, change in enumerate(step.changes or ("",)):
            name = printable(step.name) if at == 0 else ""
            lines.append(f"  {name.ljust(width)}  {printable(change)}".rstrip())
    return lines
