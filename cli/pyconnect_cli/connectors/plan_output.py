"""The plan of `apply` as text: key by key, with a total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyconnect_cli.connectors.plan import Change, PlannedChange
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.masking import mask_config
from pyconnect_cli.session import Session

SIGNS = {
    Change.CREATE: ("+", "good"),
    Change.UPDATE: ("~", "warning"),
    Change.DELETE: ("-", "bad"),
}


def total(plan: Sequence[PlannedChange]) -> str:
    """Return how many connectors of a plan are created, updated and so on."""
    counts = Counter(planned.change for planned in plan)
    return ", ".join(f"{counts[change]} {change.value}" for change in Change if counts[change])


def show_plan(session: Session, plan: Sequence[PlannedChange], *, as_data: bool) -> None:
    """Print the changes of a plan: on stdout if `as_data`, else as a message on stderr."""
    output = session.output
    changes = [planned for planned in plan if planned.change is not Change.UNCHANGED]
    if output.machine:
        if as_data:
            output.listing(
                (Column("NAME", lambda planned: planned.name),),
                changes,
                document=[_plan_json(planned) for planned in plan],
            )
        return
    for planned in changes:
        sign, style = SIGNS[planned.change]
        lines = [(f"{sign} {planned.change.value} {planned.name}", style)]
        if planned.change is Change.UPDATE:
            for difference in planned.differences:
                lines += [(line, "") for line in difference.lines(show_secrets=False)]
        for line, line_style in lines:
            if as_data:
                output.line(output.paint(line, line_style))
            else:
                output.message(line, style=line_style)
    if len(plan) > 1 or not changes:
        output.message(f"total: {total(plan)}")


def _plan_json(planned: PlannedChange) -> dict[str, object]:
    before = {d.key: d.before for d in planned.differences}
    after = {d.key: d.after for d in planned.differences}
    return {
        "name": planned.name,
        "change": planned.change.value,
        "before": mask_config(before),
        "after": mask_config(after),
    }
