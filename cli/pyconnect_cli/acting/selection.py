"""The connectors that a command selects, read from the cluster."""

from __future__ import annotations

from collections.abc import Sequence

from pyconnect_cli.acting.conditions import (
    Selection,
    select,
    selected_or_all,
    selection_from,
    unknown_connector,
)
from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.rest.model import ConnectorInfo, ConnectorView
from pyconnect_cli.session import Session


def selected_views(session: Session, names: Sequence[str]) -> list[ConnectorView]:
    """Return the selected connectors; NotFound (exit 3) for none, unless --allow-empty."""
    selection = selection_from(session.given, names)
    if not selection.names and not selection.filters:
        raise UsageError(
            "nothing is selected",
            hint="name connectors, or select them with --all, -e REGEX, -l KEY=VALUE,"
            " --state, --failed",
        )
    views = select(read_views(session, selection), selection)
    if not views and not session.given.get("allow_empty"):
        raise NotFound(
            "no connector matches the selection",
            hint="list the connectors: pyconnect connectors list; or allow it: --allow-empty",
        )
    return views


def listed_views(session: Session, selection: Selection) -> list[ConnectorView]:
    """Return the selected connectors; all connectors without names and filters."""
    return selected_or_all(read_views(session, selection), selection)


def read_views(session: Session, selection: Selection) -> dict[str, ConnectorView]:
    """Read the connectors that a selection may hold; NotFound (exit 3) for an unknown name."""
    views = session.client.connector_views(selection.names)
    for name in selection.names:
        if name not in views:
            raise unknown_connector(name, session.client.connector_names())
    return views


def known_connector(session: Session, name: str) -> ConnectorInfo:
    """Return a connector; NotFound (exit 3) lists similar names."""
    try:
        return session.client.connector(name)
    except NotFound as exc:
        raise unknown_connector(name, session.client.connector_names()) from exc
