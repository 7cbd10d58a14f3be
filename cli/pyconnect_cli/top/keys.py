"""The command line of each key. Pure.

The live view changes nothing by itself: a key runs a verb of the command line for the chosen rows,
so plans, checks and messages are the verb's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from pyconnect_cli.top.state import Page

Words = tuple[str, ...]
LAST_LINES = "500"
"""Lines of a log that are shown: each look at it reads as many."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key with the pages it works on. `one`: for the row under the cursor, whatever is marked.

    `hint` is its word in the line of keys. `changes`: the plan is shown and the user is asked
    first. `live`: what it prints is shown as it changes. `terminal`: the verb gets the terminal.
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
        """The key as people write it."""
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


def _on_worker(verb: str) -> Callable[[Page, Sequence[str]], Words]:
    return lambda _, rows: ("agent", verb, *rows)


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
WORKERS = frozenset({Page.WORKERS})
KEYS = (
    Key("d", "describe", "describe", BOTH, _describe, one=True),
    Key("y", "yaml", "configuration as YAML", BOTH, _on_connectors("get", "-o", "yaml"), one=True),
    Key(
        "e", "edit", "edit the configuration in $VISUAL or $EDITOR",
        BOTH, _on_connectors("edit"), one=True, terminal=True,
    ),
    Key("l", "logs", "logs, which are followed", BOTH, _logs, one=True, live=True),
    Key("o", "offsets", "offsets, which are followed", BOTH, _offsets, one=True, live=True),
    Key("t", "stacks", "stacks of a task (agents)", TASKS, _on_tasks("stacks"), one=True),
    Key("p", "pause", "pause", BOTH, _on_connectors("pause"), changes=True),
    Key("u", "resume", "resume", BOTH, _on_connectors("resume"), changes=True),
    Key("s", "stop", "stop", BOTH, _on_connectors("stop"), changes=True),
    Key("r", "restart", "restart, a connector with its tasks", BOTH, _restart, changes=True),
    Key(
        "f", "restart-failed", "restart what is FAILED of a connector",
        CONNECTORS, _on_connectors("restart", "--only-failed"), changes=True,
    ),
    Key("ctrl+k", "kill", "kill a task's process (agents)", TASKS, _on_tasks("kill"), changes=True),
    Key("ctrl+d", "delete", "delete", CONNECTORS, _on_connectors("delete"), changes=True),
    Key(
        "x", "drain", "drain a worker (agents)",
        WORKERS, _on_worker("drain"), changes=True, one=True,
    ),
    Key(
        "X", "undrain", "end the drain of a worker (agents)",
        WORKERS, _on_worker("undrain"), changes=True, one=True,
    ),
)  # fmt: skip
