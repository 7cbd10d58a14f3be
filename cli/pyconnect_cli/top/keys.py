"""The command line of each key. Pure.

The live view changes nothing by itself: a key runs a verb of the command line for the chosen rows,
so plans, checks and messages are the verb's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyconnect_cli.top.state import Page

Words = tuple[str, ...]
LAST_LINES = "500"
"""Lines of a log that are shown: each look at it reads as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A command line; `changes`: the plan is shown and the user is asked first.

    `live`: what it prints is shown as it changes.
    """

    title: str
    words: Words
    changes: bool
    live: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key with the pages it works on. `one`: for the row under the cursor, whatever is marked.

    `hint` is its word in the line of keys.
    """

    key: str
    hint: str
    help: str
    pages: frozenset[Page]
    words: Callable[[Page, Sequence[str]], Words]
    changes: bool = False
    one: bool = False
    live: bool = False

    @property
    def shown(self) -> str:
        """The key as people write it."""
        return self.key.replace("+", "-")


def command_line_of(key: Key, page: Page, rows: Sequence[str]) -> CommandLine | None:
    """Return the command line of a key for these rows.

    None without rows, or on a page that lacks the key.
    """
    if page not in key.pages or not rows:
        return None
    words = key.words(page, rows[:1] if key.one else rows)
    title = " ".join(("pyconnect", *words))
    return CommandLine(title=title, words=words, changes=key.changes, live=key.live)


def connectors_of(rows: Sequence[str]) -> Words:
    """Return the connectors of rows that are connectors or tasks, each once."""
    return tuple(dict.fromkeys(row.rpartition("/")[0] or row for row in rows))


def _connectors(page: Page, rows: Sequence[str]) -> Words:
    # A connector's name may hold a slash: only a task's last part is its number.
    return connectors_of(rows) if page is Page.TASKS else tuple(rows)


def _named(names: Words) -> Words:
    """Return names as arguments; `--` keeps a name with a hyphen from being an option."""
    return ("--", *names) if any(name.startswith("-") for name in names) else names


def _on_connectors(*verb: str) -> Callable[[Page, Sequence[str]], Words]:
    return lambda page, rows: ("connectors", *verb, *_named(_connectors(page, rows)))


def _on_tasks(verb: str) -> Callable[[Page, Sequence[str]], Words]:
    return lambda _, rows: ("tasks", verb, *_named(tuple(rows)))


def _restart(page: Page, rows: Sequence[str]) -> Words:
    if page is Page.TASKS:
        return ("tasks", "restart", *_named(tuple(rows)))
    return ("connectors", "restart", *_named(tuple(rows)))


def _describe(page: Page, rows: Sequence[str]) -> Words:
    return ("tasks" if page is Page.TASKS else "connectors", "describe", *_named(tuple(rows)))


def _logs(page: Page, rows: Sequence[str]) -> Words:
    if page is Page.TASKS:
        connector, _, task = rows[0].rpartition("/")
        return ("connectors", "logs", "--tail", LAST_LINES, "--task", task, *_named((connector,)))
    return ("connectors", "logs", "--tail", LAST_LINES, *_named(tuple(rows)))


def _offsets(page: Page, rows: Sequence[str]) -> Words:
    return ("offsets", "get", *_named(_connectors(page, rows)))


BOTH = frozenset({Page.CONNECTORS, Page.TASKS})
CONNECTORS = frozenset({Page.CONNECTORS})
TASKS = frozenset({Page.TASKS})
KEYS = (
    Key(key="d", hint="describe", help="describe", pages=BOTH, words=_describe, one=True),
    Key(
        key="l", hint="logs", help="logs, which are followed",
        pages=BOTH, words=_logs, one=True, live=True,
    ),
    Key(
        key="o", hint="offsets", help="offsets, which are followed",
        pages=BOTH, words=_offsets, one=True, live=True,
    ),
    Key(
        key="t", hint="stacks", help="stacks of a task (agents)",
        pages=TASKS, words=_on_tasks("stacks"), one=True,
    ),
    Key(
        key="p", hint="pause", help="pause",
        pages=BOTH, words=_on_connectors("pause"), changes=True,
    ),
    Key(
        key="u", hint="resume", help="resume",
        pages=BOTH, words=_on_connectors("resume"), changes=True,
    ),
    Key(
        key="s", hint="stop", help="stop",
        pages=BOTH, words=_on_connectors("stop"), changes=True,
    ),
    Key(
        key="r", hint="restart", help="restart, a connector with its tasks",
        pages=BOTH, words=_restart, changes=True,
    ),
    Key(
        key="f", hint="restart-failed", help="restart what is FAILED of a connector",
        pages=CONNECTORS, words=_on_connectors("restart", "--only-failed"),
        changes=True,
    ),
    Key(
        key="ctrl+k", hint="kill", help="kill a task's process (agents)",
        pages=TASKS, words=_on_tasks("kill"), changes=True,
    ),
    Key(
        key="ctrl+d", hint="delete", help="delete",
        pages=CONNECTORS, words=_on_connectors("delete"), changes=True,
    ),
)  # fmt: skip
