"""`offsets reset alter`: verbs that set or delete offsets."""

from __future__ import annotations

from typing import Annotated

import typer

from pyconnect_cli.acting.conditions import texts
from pyconnect_cli.acting.selection import selected_views
from pyconnect_cli.errors import UsageError
from pyconnect_cli.offsets.files import read_offsets_file
from pyconnect_cli.offsets.options import OffsetsVerb, SelectingOffsetsVerb, around
from pyconnect_cli.offsets.plan.change import Action, OffsetsView, Planned, plan_alter, plan_reset
from pyconnect_cli.offsets.plan.checks import parse_assignment, parse_partition, refuse_duplicates
from pyconnect_cli.offsets.run import change_offsets
from pyconnect_cli.offsets.topic_bounds import topic_doubts
from pyconnect_cli.parsing.arguments import NameArgument, NamesArgument
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_cli.session import session_of

app = typer.Typer()


@app.command(cls=SelectingOffsetsVerb)
def reset(context: typer.Context, names: NamesArgument = None) -> None:
    """Delete offsets of STOPPED connectors: sources start over, sinks follow auto.offset.reset."""
    session = session_of(context)
    options = around(session.given)

    def planner(view: OffsetsView) -> Planned:
        chosen = [parse_partition(text, view.type) for text in texts(session.given, "partition")]
        return plan_reset(view, options.wish, chosen)

    views = selected_views(session, names or ())
    change_offsets(session, views, Action.RESET, planner, options)


@app.command(cls=OffsetsVerb)
def alter(
    context: typer.Context,
    name: NameArgument,
    *,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="FILE",
            help="file of offsets, as `get -o json` prints them; `-` for stdin"
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-s", metavar="PARTITION=OFFSET",
            help="partition and offset, both JSON, or TOPIC:NUMBER=OFFSET of a sink;"
            " null deletes the offset; repeatable",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Set the offsets of some partitions of a STOPPED connector and keep the others."""
    session = session_of(context)
    options = around(session.given)
    if not file and not assignments:
        raise UsageError("nothing to set", hint="give -f FILE or --set PARTITION=OFFSET")
    views = selected_views(session, [name])
    wanted = _wanted(name, views[0].type, file, assignments or [])

    def planner(view: OffsetsView) -> Planned:
        doubts = None if options.force else topic_doubts(session, view, wanted)
        return plan_alter(view, options.wish, wanted, force=options.force, topic_doubts=doubts)

    change_offsets(session, views, Action.ALTER, planner, options)


def _wanted(
    name: str, connector_type: str, file: str | None, assignments: list[str]
) -> tuple[OffsetEntry, ...]:
    entries = tuple(parse_assignment(text, connector_type) for text in assignments)
    place = "--set"
    if file is not None:
        found = read_offsets_file(file, connector_type)
        if found.snapshot and found.snapshot.connector != name:
            raise UsageError(
                f"{found.place}: contains the offsets of {found.snapshot.connector}, not of"
                f" {name}; nothing was changed",
                hint=f"if this is intended: pyconnect offsets import {name} -f {file} --force",
            )
        entries, place = found.entries + entries, found.place
    if not entries:
        raise UsageError(
            f"{place}: contains no offsets", hint="to delete all offsets: pyconnect offsets reset"
        )
    refuse_duplicates(entries, place)
    return entries
