"""The connectors that a command selects, read from the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyconnect_cli.acting.conditions import (
    Selection,
    select,
    selected_or_all,
    selection_from,
    unknown_connector,
)
from pyconnect_cli.errors import NotFound, PartialFailure, PyconnectError, UsageError
from pyconnect_cli.rest.model import ConnectorInfo, ConnectorView
from pyconnect_cli.session import Session

if TYPE_CHECKING:
    from pyconnect_cli.rest.offset_entries import ConnectorOffsets


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


def known_offsets(session: Session, name: str) -> ConnectorOffsets:
    """Return a connector's offsets; NotFound (exit 3) lists similar names."""
    try:
        return session.client.connector_offsets(name)
    except NotFound as exc:
        raise unknown_connector(name, session.client.connector_names()) from exc


def unread_error(name: str, error: PyconnectError) -> PyconnectError:
    """Return the error of one connector of several with its name, for the reports at the end."""
    return PyconnectError(f"{name}: {error.message}", hint=error.hint, exit_code=error.exit_code)


def report_unread(session: Session, unread: Sequence[PyconnectError], asked: int) -> None:
    """Raise PartialFailure for connectors that were left out, each after its own error."""
    if not unread:
        return
    if len(unread) == asked and len({error.exit_code for error in unread}) == 1:
        if asked > 1:
            unread[0].message += f"; {asked - 1} more failed with the same exit code"
        raise unread[0]
    for error in unread:
        session.output.error(error)
    raise PartialFailure(f"{len(unread)} of {asked} could not be read")
