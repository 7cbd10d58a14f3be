"""Configurations before they are sent: their plan as text, their validation on the worker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from pyconnect_cli.acting.wait import NOTICED_S
from pyconnect_cli.connectors.plan import Change, Config, ConnectorFile, PlannedChange
from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.parsing.nouns import near_names
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.answers import Validation
from pyconnect_cli.rest.masking import mask_config
from pyconnect_cli.session import Session


def validate_all(session: Session, files: Sequence[ConnectorFile]) -> None:
    """Raise an error for the first wrong file; call it before the first change."""
    began_s = time.monotonic()
    with StepLine(session.output) as progress:
        for number, file in enumerate(files):
            if time.monotonic() - began_s >= NOTICED_S:
                progress.count("configurations validated", number, len(files))
            answer = validation(session, file)
            if answer.error_count:
                lines = "\n".join(validation_lines(file, answer))
                raise UsageError(
                    f"{file.place}: the worker finds {answer.error_count} error(s);"
                    " nothing was changed"
                    f"\n{lines}"
                )


def validation(session: Session, file: ConnectorFile) -> Validation:
    plugin = file.config.get("connector.class")
    if not plugin:
        raise UsageError(f"{file.place}: `connector.class` is missing")
    answer = session.client.validate(plugin, {"name": file.name, **file.config})
    warn_of_unknown(session, file.name, answer, file.config)
    return answer


def validation_lines(file: ConnectorFile, answer: Validation) -> list[str]:
    if not answer.error_count:
        return [f"{file.name}: valid"]
    return [
        f"{file.name}: {found.name}: {error}" for found in answer.fields for error in found.errors
    ]


PASSED_ON = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "label.",
)
"""Settings of other classes, which a validation lists only in part, and labels of users."""
UNLISTED = frozenset({"agent.java.heap", "agent.java.options", "team"})
"""Settings of an agent for Java connectors, and the label of `pyconnect help selectors`."""


def unknown_settings(keys: Iterable[str], defined: Collection[str]) -> dict[str, str | None]:
    """Return the keys that are not defined, each with the most similar defined key, or None."""
    if not defined:
        return {}
    unknown = sorted({*keys} - {*defined, "name"} - UNLISTED)
    return {
        key: next(iter(near_names(key, defined, limit=1)), None)
        for key in unknown
        if not key.startswith(PASSED_ON)
    }


def warn_of_unknown(session: Session, name: str, answer: Validation, keys: Iterable[str]) -> None:
    """Warn of those of the `keys` that a validation did not know."""
    shown = [
        f"{key} (did you mean {meant}?)" if meant else key
        for key, meant in unknown_settings(keys, answer.defined).items()
    ]
    if shown:
        session.output.warning(f"{name}: its connector does not define {', '.join(shown)}")


def check_settings(
    session: Session,
    name: str,
    config: Config,
    keys: Iterable[str] | None = None,
    *,
    refuses: bool = False,
) -> None:
    """Ask a worker for the settings of the config's class, and warn; the change reports errors.

    With `refuses` errors are a UsageError already.
    """
    plugin = config.get("connector.class")
    if not plugin:
        return
    try:
        answer = session.client.validate(plugin, {"name": name, **config})
    except PyconnectError:
        return
    warn_of_unknown(session, name, answer, config if keys is None else keys)
    if refuses and answer.error_count:
        file = ConnectorFile(name=name, config=config, place=name)
        raise UsageError("\n".join(validation_lines(file, answer)))


SIGNS = {Change.CREATE: ("+", "good"), Change.UPDATE: ("~", "warning"), Change.DELETE: ("-", "bad")}


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
                document=[
                    {
                        "name": planned.name,
                        "change": planned.change.value,
                        "before": mask_config({d.key: d.before for d in planned.differences}),
                        "after": mask_config({d.key: d.after for d in planned.differences}),
                    }
                    for planned in plan
                ],
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
