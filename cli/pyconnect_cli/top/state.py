"""State of the live view, without a terminal. Pure.

Each key and each look is a method that returns the next state; `table` draws it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import assert_never

from pyconnect_cli.overview.clusters import ClusterRow
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
    """A context of the configuration; `current`: the view shows its cluster.

    `cluster` None: it has not been looked at.
    """

    name: str
    urls: str
    current: bool
    cluster: ClusterRow | None = None

    @property
    def broken(self) -> bool:
        """Whether its cluster has a fault."""
        return self.cluster is not None and self.cluster.broken


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

    def looked(self, look: ClusterLook) -> State:
        """A look has returned; if it has no positions, those of an earlier look stay."""
        before, positions = self.before, self.positions
        if look.positions is not None:
            before, positions = positions, look.positions
        pids, restarts = dict(self.pids), dict(self.restarts)
        for name, child in look.children.items():
            if child.pid is None:
                continue
            if name in pids and pids[name] != child.pid:
                restarts[name] = restarts.get(name, 0) + 1
            pids[name] = child.pid
        return replace(
            self,
            look=replace(look, positions=positions),
            positions=positions,
            before=before,
            pids=pids,
            restarts=restarts,
            fault="",
        )

    def clusters_looked(self, clusters: Sequence[ClusterRow]) -> State:
        """A look at the clusters of all contexts has returned."""
        known = {row.name: row for row in clusters}
        contexts = (replace(each, cluster=known.get(each.name)) for each in self.contexts)
        return replace(self, contexts=tuple(contexts))

    def look_failed(self, reason: str) -> State:
        """No worker answered; the last look stays on the screen."""
        return replace(self, fault=reason)

    def entered(self, row: str) -> State:
        """Enter on a row: from a connector or worker to its tasks."""
        here = replace(self.place, row=row)
        match self.place.page:
            case Page.CONNECTORS:
                there = Place(page=Page.TASKS, connector=row)
            case Page.WORKERS:
                there = Place(page=Page.TASKS, worker=row)
            case Page.CONTEXTS:
                return self._chosen(row)
            case Page.TASKS:
                return self
            case _:
                assert_never(self.place.page)
        return self._moved(there, (*self.history, here))

    def went_back(self) -> State:
        """Escape: remove the marks; without marks the filter; without a filter leave the page."""
        if self.marked:
            return replace(self, marked=frozenset(), message="")
        if self.place.pattern:
            return replace(self, place=replace(self.place, pattern=""), message="")
        if not self.history:
            return replace(self, message="")
        *history, there = self.history
        return self._moved(there, tuple(history))

    def filtered(self, pattern: str, row: str | None = None) -> State:
        """The text of the `/` prompt; `!text` shows the rows that do not match."""
        message = ""
        try:
            re.compile(pattern.removeprefix("!"))
        except re.error as error:
            message = f"not a regular expression ({error}); taken as plain text"
        return replace(self, place=replace(self.place, pattern=pattern, row=row), message=message)

    def commanded(self, text: str, row: str | None = None) -> State:
        """The text of the `:` prompt."""
        if not text.strip():
            return self
        word, _, name = (part.strip() for part in text.strip().partition(" "))
        word = word.lower()
        if word in QUIT_WORDS:
            return replace(self, leaving=True)
        page = PAGE_WORDS.get(word)
        if page is None:
            near = near_names(word, [*PAGE_WORDS, "quit"], limit=1)
            words = ", ".join(page.value for page in Page)
            known = f"did you mean `{near[0]}`?" if near else f"{words}, quit"
            return replace(self, message=f"`{word}` is not a command: {known}")
        if name and page is not Page.CONTEXTS:
            return replace(self, message=f"`{word}` takes no argument; to filter, type /{name}")
        if name:
            return self._chosen(name)
        return self._moved(Place(page=page), (*self.history, replace(self.place, row=row)))

    def sorted_by(self, column: str) -> State:
        """A column to sort by; once more turns the order round."""
        again = self.sort == column
        return replace(self, sort=column, descending=not self.descending if again else False)

    def toggled(self, row: str) -> State:
        """Space on a row marks it; once more takes the mark away."""
        return replace(self, marked=self.marked ^ {row})

    def acted(self, message: str) -> State:
        """A verb has ended; its rows lose their marks."""
        return replace(self, message=message, marked=frozenset())

    def switched(self, contexts: tuple[KnownContext, ...]) -> State:
        """Another cluster is shown from now on; nothing of the one before stays."""
        return State(contexts=contexts)

    def not_switched(self, reason: str) -> State:
        """The context that was chosen cannot be used."""
        return replace(self, wanted=None, message=reason)

    def _chosen(self, name: str) -> State:
        names = [context.name for context in self.contexts]
        if name not in names:
            near = near_names(name, names, limit=1)
            hint = f"did you mean `{near[0]}`?" if near else ":ctx lists the contexts"
            return replace(self, message=f"context `{name}` is not defined; {hint}")
        return replace(self, wanted=name, message=f"going to {name} …")

    def _moved(self, there: Place, history: tuple[Place, ...]) -> State:
        return replace(
            self,
            place=there,
            history=history,
            sort=None,
            descending=False,
            marked=frozenset(),
            message="",
        )


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
