"""State of the live view, without a terminal, and the command line of each key. Pure.

Each key and each look is a method that returns the next state; `table` draws it. The view changes
nothing by itself: a key runs a verb of the command line for the chosen rows, so plans, checks and
messages are the verb's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from typing import NamedTuple, assert_never

from pyconnect_cli.overview.rows import ClusterLook, Positions
from pyconnect_cli.overview.status import ClusterRow
from pyconnect_cli.parsing.nouns import near_names


class Page(Enum):
    """A table of the view; the value is the word of the `:` prompt."""

    CONNECTORS = "connectors"
    TASKS = "tasks"
    WORKERS = "workers"
    CONTEXTS = "contexts"


PAGE_WORDS = {
    **{page.value: page for page in Page},
    **{page.value.removesuffix("s"): page for page in Page},
    "c": Page.CONNECTORS,
    "t": Page.TASKS,
    "w": Page.WORKERS,
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
    """A page with its position when it was left: `row` is the name under the cursor."""

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
        """Return the state after a look; a look without positions keeps those of an earlier one."""
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
        """Return the state after a look at the clusters of all contexts."""
        known = {row.name: row for row in clusters}
        contexts = (replace(each, cluster=known.get(each.name)) for each in self.contexts)
        return replace(self, contexts=tuple(contexts))

    def look_failed(self, reason: str) -> State:
        """Return the state when no worker answered: the last look stays on the screen."""
        return replace(self, fault=reason)

    def entered(self, row: str) -> State:
        """Return the state after enter on a row: from a connector or worker to its tasks."""
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
        """Return the state after escape: remove the marks, else the filter, else leave the page."""
        if self.marked:
            return replace(self, marked=frozenset(), message="")
        if self.place.pattern:
            return replace(self, place=replace(self.place, pattern=""), message="")
        if not self.history:
            return replace(self, message="")
        *history, there = self.history
        return self._moved(there, tuple(history))

    def filtered(self, pattern: str, row: str | None = None) -> State:
        """Return the state for the text of the `/` prompt; `!text` shows rows that do not match."""
        message = ""
        try:
            re.compile(pattern.removeprefix("!"))
        except re.error as error:
            message = f"not a regular expression ({error}); taken as plain text"
        return replace(self, place=replace(self.place, pattern=pattern, row=row), message=message)

    def commanded(self, text: str, row: str | None = None) -> State:
        """Return the state for the text of the `:` prompt."""
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
        """Return the state sorted by a column; the same column again reverses the order."""
        again = self.sort == column
        return replace(self, sort=column, descending=not self.descending if again else False)

    def toggled(self, row: str) -> State:
        """Return the state after space on a row, which marks it or removes the mark."""
        return replace(self, marked=self.marked ^ {row})

    def acted(self, message: str) -> State:
        """Return the state after a verb has ended, without marks."""
        return replace(self, message=message, marked=frozenset())

    def switched(self, contexts: tuple[KnownContext, ...]) -> State:
        """Return the state for another cluster; it keeps nothing of the previous one."""
        return State(contexts=contexts)

    def not_switched(self, reason: str) -> State:
        """Return the state when the chosen context cannot be used."""
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


Words = tuple[str, ...]
LAST_LINES = "500"
"""Lines of a log that are shown: each look at it reads as many."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key with the pages it works on. `one`: for the row under the cursor, not the marked ones.

    `hint` is its word in the line of keys. `changes`: the plan is shown and the user is asked
    first. `live`: its output is updated as it changes. `terminal`: the verb gets the terminal.
    """

    key: str
    hint: str
    help: str
    pages: frozenset[Page]
    words: Callable[[Page, Sequence[str]], Words]
    _: KW_ONLY
    changes: bool = False
    one: bool = False
    live: bool = False
    terminal: bool = False

    @property
    def shown(self) -> str:
        """The key in the usual notation."""
        return self.key.replace("+", "-")


class CommandLine(NamedTuple):
    """The words that a key stands for."""

    key: Key
    words: Words

    @property
    def title(self) -> str:
        return " ".join(("pyconnect", *self.words))


def command_line_of(key: Key, page: Page, rows: Sequence[str]) -> CommandLine | None:
    """Return the command line of a key for these rows.

    None without rows, or on a page that lacks the key.
    """
    if page not in key.pages or not rows:
        return None
    return CommandLine(key, key.words(page, rows[:1] if key.one else rows))


def _connectors(page: Page, rows: Sequence[str]) -> Words:
    # A connector's name may hold a slash: only a task's last part is its number.
    if page is not Page.TASKS:
        return tuple(rows)
    return tuple(dict.fromkeys(row.rpartition("/")[0] or row for row in rows))


def _named(names: Sequence[str]) -> Words:
    """Return names as arguments; `--` keeps a name with a hyphen from being an option."""
    return ("--", *names) if any(name.startswith("-") for name in names) else tuple(names)


def _on_connectors(*command: str) -> Callable[[Page, Sequence[str]], Words]:
    return lambda page, rows: (*command, *_named(_connectors(page, rows)))


def _on_rows(*verb: str) -> Callable[[Page, Sequence[str]], Words]:
    return lambda page, rows: (NOUN_OF_ROWS[page], *verb, *_named(rows))


def _logs(page: Page, rows: Sequence[str]) -> Words:
    task = ("--task", rows[0].rpartition("/")[2]) if page is Page.TASKS else ()
    shown = ("--tail", LAST_LINES, *task)
    return ("connectors", "logs", *shown, *_named(_connectors(page, rows)))


NOUN_OF_ROWS = {Page.CONNECTORS: "connectors", Page.TASKS: "tasks", Page.WORKERS: "agent"}
BOTH = frozenset({Page.CONNECTORS, Page.TASKS})
CONNECTORS = frozenset({Page.CONNECTORS})
TASKS = frozenset({Page.TASKS})
WORKERS = frozenset({Page.WORKERS})
KEYS = (
    Key("d", "describe", "describe", BOTH, _on_rows("describe"), one=True),
    Key(
        "y", "yaml", "configuration as YAML",
        BOTH, _on_connectors("connectors", "get", "-o", "yaml"), one=True,
    ),
    Key(
        "e", "edit", "edit the configuration in $VISUAL or $EDITOR",
        BOTH, _on_connectors("connectors", "edit"), one=True, terminal=True,
    ),
    Key("l", "logs", "logs, which are followed", BOTH, _logs, one=True, live=True),
    Key(
        "o", "offsets", "offsets, which are followed",
        BOTH, _on_connectors("offsets", "get"), one=True, live=True,
    ),
    Key("t", "stacks", "stacks of a task (agents)", TASKS, _on_rows("stacks"), one=True),
    Key("p", "pause", "pause", BOTH, _on_connectors("connectors", "pause"), changes=True),
    Key("u", "resume", "resume", BOTH, _on_connectors("connectors", "resume"), changes=True),
    Key("s", "stop", "stop", BOTH, _on_connectors("connectors", "stop"), changes=True),
    Key(
        "r", "restart", "restart, a connector with its tasks",
        BOTH, _on_rows("restart"), changes=True,
    ),
    Key(
        "f", "restart-failed", "restart what is FAILED of a connector",
        CONNECTORS, _on_rows("restart", "--only-failed"), changes=True,
    ),
    Key("ctrl+k", "kill", "kill a task's process (agents)", TASKS, _on_rows("kill"), changes=True),
    Key("ctrl+d", "delete", "delete", CONNECTORS, _on_rows("delete"), changes=True),
    Key(
        "x", "drain", "drain a worker (agents)",
        WORKERS, _on_rows("drain"), changes=True, one=True,
    ),
    Key(
        "X", "undrain", "end the drain of a worker (agents)",
        WORKERS, _on_rows("undrain"), changes=True, one=True,
    ),
)  # fmt: skip
