"""State and events of the live view, without a terminal. Pure.

The view turns keys and looks into events, `after` returns the next state, `table` draws it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import assert_never

from pyconnect_cli.overview.rows import ClusterLook, Positions
from pyconnect_cli.parsing.near_names import near_names


class Page(Enum):
    """A table of the view; the value is the word of the `:` prompt."""

    CONNECTORS = "connectors"
    TASKS = "tasks"
    WORKERS = "workers"
    CONTEXTS = "contexts"


PAGE_WORDS = {
    "connectors": Page.CONNECTORS,
    "connector": Page.CONNECTORS,
    "c": Page.CONNECTORS,
    "tasks": Page.TASKS,
    "task": Page.TASKS,
    "t": Page.TASKS,
    "workers": Page.WORKERS,
    "worker": Page.WORKERS,
    "w": Page.WORKERS,
    "contexts": Page.CONTEXTS,
    "context": Page.CONTEXTS,
    "ctx": Page.CONTEXTS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownContext:
    """A context of the configuration; `current`: the view shows its cluster."""

    name: str
    urls: str
    current: bool
    broken: bool = False


QUIT_WORDS = frozenset({"q", "quit", "q!", "exit"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A page as it was left: `row` is the name under the cursor."""

    page: Page = Page.CONNECTORS
    connector: str | None = None
    worker: str | None = None
    pattern: str = ""
    row: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """`look` None: no look has returned yet. `fault`: the reason why the last look failed, or "".

    `restarts` counts the processes that were replaced since the view began, by the name of their
    connector or task; `pids` are the newest ones.
    """

    place: Place = field(default_factory=Place)
    history: tuple[Place, ...] = ()
    sort: str | None = None
    descending: bool = False
    marked: frozenset[str] = frozenset()
    look: ClusterLook | None = None
    positions: Positions | None = None
    before: Positions | None = None
    pids: Mapping[str, int] = field(default_factory=dict)
    restarts: Mapping[str, int] = field(default_factory=dict)
    fault: str = ""
    message: str = ""
    leaving: bool = False
    contexts: tuple[KnownContext, ...] = ()
    wanted: str | None = None
    """The context that the user has chosen, until its cluster is shown or refused."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A look has returned; if it has no positions, those of an earlier look stay."""

    look: ClusterLook


@dataclass(frozen=True, slots=True)
class LookFailed:
    """No worker answered; the last look stays on the screen."""

    reason: str


@dataclass(frozen=True, slots=True)
class Entered:
    """Enter on a row: from a connector or worker to its tasks."""

    row: str


@dataclass(frozen=True, slots=True)
class WentBack:
    """Escape: remove the marks; without marks the filter; without a filter leave the page."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """The text of the `/` prompt; `!text` shows the rows that do not match."""

    pattern: str
    row: str | None = None


@dataclass(frozen=True, slots=True)
class Commanded:
    """The text of the `:` prompt."""

    text: str
    row: str | None = None


@dataclass(frozen=True, slots=True)
class Sorted:
    """A column to sort by; once more turns the order round."""

    column: str


@dataclass(frozen=True, slots=True)
class Marked:
    """Space on a row; once more takes the mark away."""

    row: str


@dataclass(frozen=True, slots=True)
class Acted:
    """A verb has ended; its rows lose their marks."""

    message: str


@dataclass(frozen=True, slots=True)
class Switched:
    """Another cluster is shown from now on; nothing of the one before stays."""

    contexts: tuple[KnownContext, ...]


@dataclass(frozen=True, slots=True)
class NotSwitched:
    """The context that was chosen cannot be used."""

    reason: str


Event = (
    Looked
    | LookFailed
    | Entered
    | WentBack
    | Filtered
    | Commanded
    | Sorted
    | Marked
    | Acted
    | Switched
    | NotSwitched
)


def after(state: State, event: Event) -> State:
    """Return the state after an event."""
    match event:
        case Looked(look):
            return _looked(state, look)
        case LookFailed(reason):
            return replace(state, fault=reason)
        case Entered(row):
            return _entered(state, row)
        case WentBack():
            return _went_back(state)
        case Filtered(pattern, row):
            place = replace(state.place, pattern=pattern, row=row)
            return replace(state, place=place, message=_pattern_fault(pattern))
        case Commanded(text, row):
            return _commanded(state, text.strip(), row)
        case Sorted(column):
            again = state.sort == column
            return replace(state, sort=column, descending=not state.descending if again else False)
        case Marked(row):
            return replace(state, marked=state.marked ^ {row})
        case Acted(message):
            return replace(state, message=message, marked=frozenset())
        case Switched(contexts):
            return State(contexts=contexts)
        case NotSwitched(reason):
            return replace(state, wanted=None, message=reason)
        case _:
            assert_never(event)


def matches(pattern: str, text: str) -> bool:
    """Return whether a text passes the filter; an invalid regular expression is plain text."""
    wanted, negated = (pattern[1:], True) if pattern.startswith("!") else (pattern, False)
    if not wanted:
        return True
    try:
        found = re.search(wanted, text, re.IGNORECASE) is not None
    except re.error:
        found = wanted.lower() in text.lower()
    return found is not negated


def _looked(state: State, look: ClusterLook) -> State:
    before, positions = state.before, state.positions
    if look.positions is not None:
        before, positions = positions, look.positions
    pids, restarts = dict(state.pids), dict(state.restarts)
    for name, child in look.children.items():
        if child.pid is None:
            continue
        if name in pids and pids[name] != child.pid:
            restarts[name] = restarts.get(name, 0) + 1
        pids[name] = child.pid
    return replace(
        state,
        look=replace(look, positions=positions),
        positions=positions,
        before=before,
        pids=pids,
        restarts=restarts,
        fault="",
    )


def _entered(state: State, row: str) -> State:
    here = replace(state.place, row=row)
    match state.place.page:
        case Page.CONNECTORS:
            there = Place(page=Page.TASKS, connector=row)
        case Page.WORKERS:
            there = Place(page=Page.TASKS, worker=row)
        case Page.CONTEXTS:
            return _chosen(state, row)
        case Page.TASKS:
            return state
        case _:
            assert_never(state.place.page)
    return _moved(state, there, (*state.history, here))


def _went_back(state: State) -> State:
    if state.marked:
        return replace(state, marked=frozenset(), message="")
    if state.place.pattern:
        return replace(state, place=replace(state.place, pattern=""), message="")
    if not state.history:
        return replace(state, message="")
    *history, there = state.history
    return _moved(state, there, tuple(history))


def _commanded(state: State, text: str, row: str | None) -> State:
    if not text:
        return state
    word, _, name = (part.strip() for part in text.partition(" "))
    word = word.lower()
    if word in QUIT_WORDS:
        return replace(state, leaving=True)
    page = PAGE_WORDS.get(word)
    if page is None:
        near = near_names(word, [*PAGE_WORDS, "quit"], limit=1)
        words = ", ".join(page.value for page in Page)
        known = f"did you mean `{near[0]}`?" if near else f"{words}, quit"
        return replace(state, message=f"`{word}` is not a command: {known}")
    if name and page is not Page.CONTEXTS:
        return replace(state, message=f"`{word}` takes no argument; to filter, type /{name}")
    if name:
        return _chosen(state, name)
    return _moved(state, Place(page=page), (*state.history, replace(state.place, row=row)))


def _chosen(state: State, name: str) -> State:
    names = [context.name for context in state.contexts]
    if name not in names:
        near = near_names(name, names, limit=1)
        hint = f"did you mean `{near[0]}`?" if near else ":ctx lists the contexts"
        return replace(state, message=f"context `{name}` is not defined; {hint}")
    return replace(state, wanted=name, message=f"going to {name} …")


def _moved(state: State, there: Place, history: tuple[Place, ...]) -> State:
    return replace(
        state,
        place=there,
        history=history,
        sort=None,
        descending=False,
        marked=frozenset(),
        message="",
    )


def _pattern_fault(pattern: str) -> str:
    try:
        re.compile(pattern.removeprefix("!"))
    except re.error as error:
        return f"not a regular expression ({error}); taken as plain text"
    return ""
