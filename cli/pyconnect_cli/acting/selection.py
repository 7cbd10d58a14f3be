"""The selection of connectors: names, and conditions that must all hold; read from the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyconnect_cli.errors import NotFound, PartialFailure, PyconnectError, UsageError
from pyconnect_cli.parsing.nouns import FILE_ENDINGS, did_you_mean
from pyconnect_cli.rest.model import ConnectorInfo, ConnectorView, is_class
from pyconnect_cli.session import Session

if TYPE_CHECKING:
    from pyconnect_cli.rest.offset_entries import ConnectorOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigCondition:
    """`key=value`, `key!=value`, or `key` for a key that is set."""

    key: str
    value: str | None = None
    negated: bool = False

    def holds(self, config: Mapping[str, str | None]) -> bool:
        if self.value is None:
            return config.get(self.key) is not None
        return (config.get(self.key) == self.value) is not self.negated


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Names and filters; without either the selection is empty."""

    names: tuple[str, ...] = ()
    everything: bool = False
    patterns: tuple[re.Pattern[str], ...] = ()
    conditions: tuple[ConfigCondition, ...] = ()
    states: tuple[str, ...] = ()
    type: str | None = None
    classes: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    failed: bool = False

    @property
    def filters(self) -> bool:
        return bool(
            self.everything or self.patterns or self.conditions or self.states or self.type
            or self.classes or self.workers or self.failed
        )  # fmt: skip

    def matches(self, view: ConnectorView) -> bool:
        config = view.config
        items = (view.status.connector, *view.status.tasks) if view.status else ()
        return (
            (not self.patterns or any(p.fullmatch(view.name) for p in self.patterns))
            and all(condition.holds(config) for condition in self.conditions)
            and (not self.states or view.state in self.states)
            and (self.type is None or view.type == self.type)
            and (not self.classes or is_class(config.get("connector.class") or "", self.classes))
            and (not self.workers or any(item.worker_id in self.workers for item in items))
            and (not self.failed or (view.status is not None and view.status.failed))
        )


def selection_from(given: Mapping[str, object], names: Sequence[str]) -> Selection:
    """Read the selection options; UsageError for a pattern or condition that is not valid."""
    return Selection(
        names=tuple(dict.fromkeys(names)),
        everything=bool(given.get("all")),
        patterns=tuple(_pattern(text) for text in texts(given, "regex")),
        conditions=tuple(
            _condition(part) for text in texts(given, "selector") for part in text.split(",")
        ),
        states=tuple(text.upper() for text in texts(given, "state")),
        type=str(given["type"]).lower() if given.get("type") else None,
        classes=texts(given, "class"),
        workers=texts(given, "worker"),
        failed=bool(given.get("failed")),
    )


def select(views: Mapping[str, ConnectorView], selection: Selection) -> list[ConnectorView]:
    """Return the chosen connectors by name; NotFound names one that does not exist."""
    for name in selection.names:
        if name not in views:
            raise unknown_connector(name, views)
    if selection.names:
        candidates = [views[name] for name in selection.names]
    elif selection.filters:
        candidates = [views[name] for name in sorted(views)]
    else:
        candidates = []
    return [view for view in candidates if selection.matches(view)]


def selected_or_all(
    views: Mapping[str, ConnectorView], selection: Selection
) -> list[ConnectorView]:
    """Return the selected connectors; all connectors without names and filters."""
    if selection.names or selection.filters:
        return select(views, selection)
    return list(views.values())


def unknown_connector(name: str, known: Iterable[str]) -> NotFound:
    """Return the error for a connector that does not exist, with similar names."""
    hint = did_you_mean(name, known) or "list them: pyconnect connectors list"
    if name.endswith(FILE_ENDINGS):
        hint = f"a file follows -f: -f {name}"
    return NotFound(f"connector `{name}` does not exist", hint=hint)


def texts(given: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = given.get(key)
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, tuple | list) else (str(value),)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as exc:
        raise UsageError(f"`{text}` is not a regular expression: {exc}") from exc


def _condition(text: str) -> ConfigCondition:
    key, equals, value = text.partition("=")
    negated = bool(equals) and key.endswith("!")
    key = key.removesuffix("!").strip()
    if not key:
        raise UsageError(f"`{text}` is not a condition", hint="write key=value, key!=value or key")
    return ConfigCondition(key=key, value=value if equals else None, negated=negated)


def selected_views(session: Session, names: Sequence[str]) -> list[ConnectorView]:
    """Return the selected connectors; NotFound (exit 3) if there are none, unless --allow-empty."""
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
    """Return the error of one connector among several with its name, for the reports at the end."""
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
