"""Keys and their command lines."""

import pytest

from pyconnect_cli.app import load_noun
from pyconnect_cli.parsing.nouns import find_noun
from pyconnect_cli.top.state import KEYS, Page, Words, command_line_of

BY_KEY = {key.key: key for key in KEYS}
# Verbs that may be missing; the view then reports it.
LATER = {("connectors", "logs")}


def words(key: str, page: Page, *rows: str) -> Words | None:
    action = command_line_of(BY_KEY[key], page, rows)
    return None if action is None else action.words


def test_keys_of_connectors() -> None:
    """Each key has its verb; several rows are arguments of one command."""
    page = Page.CONNECTORS
    assert words("p", page, "a", "b") == ("connectors", "pause", "a", "b")
    assert words("u", page, "a") == ("connectors", "resume", "a")
    assert words("s", page, "a") == ("connectors", "stop", "a")
    assert words("r", page, "a") == ("connectors", "restart", "a")
    assert words("f", page, "a") == ("connectors", "restart", "--only-failed", "a")
    assert words("ctrl+d", page, "a") == ("connectors", "delete", "a")
    assert words("o", page, "a/b") == ("offsets", "get", "a/b")


def test_keys_act_on_the_connector_of_each_task_once() -> None:
    """Keys of other pages do nothing; a name that looks like an option follows `--`."""
    page = Page.TASKS
    assert words("r", page, "a/0", "a/1") == ("tasks", "restart", "a/0", "a/1")
    assert words("ctrl+k", page, "a/0") == ("tasks", "kill", "a/0")
    assert words("p", page, "a/0", "a/1", "b/0") == ("connectors", "pause", "a", "b")
    assert words("l", page, "a/1") == (*("connectors", "logs", "--tail", "500", "--task", "1"), "a")
    assert words("t", page, "a/1") == ("tasks", "stacks", "a/1")
    assert words("ctrl+k", Page.CONNECTORS, "a") is None
    assert words("p", Page.WORKERS, "w1:8083") is None
    assert words("p", Page.CONNECTORS) is None
    assert words("p", Page.CONNECTORS, "--all") == ("connectors", "pause", "--", "--all")


@pytest.mark.parametrize("key", [key.key for key in KEYS])
def test_every_key_is_a_verb_that_exists_and_says_whether_it_changes(key: str) -> None:
    """A key has `changes` if its verb has --dry-run."""
    found = BY_KEY[key]
    for page in found.pages:
        action = command_line_of(found, page, ["a/0" if page is Page.TASKS else "a"])
        assert action is not None
        noun = find_noun(action.words[0])
        assert noun is not None
        verb = getattr(load_noun(noun), "commands", {}).get(action.words[1])
        if verb is None:
            assert action.words[:2] in LATER
            continue
        options = {flag for spec in (*verb.params, *verb.shared_options()) for flag in spec.opts}
        assert {word for word in action.words if word.startswith("--")} <= options
        assert ("--dry-run" in options) == found.changes
