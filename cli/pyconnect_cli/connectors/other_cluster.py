"""The connectors of one cluster, compared with those of another one: `--to-context`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from pyconnect_cli.acting.other_context import session_of_context
from pyconnect_cli.connectors.plan import ConnectorFile, PlannedChange, plan_apply
from pyconnect_cli.connectors.promotion import Remapping, promoted
from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session

MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FROM=TO",
        help="beginning of a reference and its replacement on the other cluster, as"
        " file:/run/dev=file:/run/prod; repeatable",
    ),
]


@contextmanager
def other_cluster(session: Session, context: str) -> Iterator[Session]:
    """Yield a session with the cluster of a context; UsageError when it is the same cluster."""
    other = session_of_context(session, context)
    try:
        if set(other.settings.urls) & set(session.settings.urls):
            raise UsageError(
                f"context {context} is the source cluster itself: {', '.join(other.settings.urls)}",
                hint="choose the cluster to read with --context or --url",
            )
        yield other
    finally:
        session.record = other.record
        other.close()


def plan_for(
    session: Session,
    other: Session,
    views: Sequence[ConnectorView],
    there: Mapping[str, ConnectorView],
    rules: Remapping,
    *,
    initial_state: str | None = None,
    strict: bool = True,
) -> list[PlannedChange]:
    """Plan the changes that make connectors of `session` the same on `other`; see `promoted`.

    `there`: the configurations that `other` has.
    """
    here = session.settings.context or session.settings.urls[0]
    files = [
        ConnectorFile(
            name=view.name,
            config=view.info.config,
            initial_state=initial_state,
            place=f"{view.name} of {here}",
        )
        for view in views
        if view.info
    ]
    configs = {name: view.info.config for name, view in there.items() if view.info}
    context = other.settings.context or ""
    wanted = promoted(files, configs, rules, context=context, strict=strict)
    # The output of a comparison masks the secrets of both sides.
    return plan_apply(wanted, configs, masked=not strict)
