"""Words of a verb before the parser reads them."""

from __future__ import annotations

import pytest

from pyconnect_cli.parsing.options import current_options, without_bare_wait


@pytest.mark.parametrize(
    ("path", "words", "read"),
    [
        ("transactions list", ["--group-id", "g"], ["--group", "g"]),
        ("transactions list", ["--group-id=g"], ["--group=g"]),
        ("transactions list", ["--", "--group-id"], ["--", "--group-id"]),
        ("acls generate", ["--format", "strimzi"], ["--output", "strimzi"]),
        ("reconcile sequence", ["--group", "key"], ["--per", "key"]),
        ("upgrade run", ["--group", "g"], ["--group", "g"]),
        ("reconcile source-topic", ["--format", "csv"], ["--format", "csv"]),
    ],
)
def test_former_names_of_options_are_read(path: str, words: list[str], read: list[str]) -> None:
    """Of the verbs that had them, and never of arguments."""
    assert current_options(f"pyconnect {path}", words) == read


@pytest.mark.parametrize(
    ("words", "left", "alone"),
    [
        (["a", "--wait"], ["a"], True),
        (["--wait", "a"], ["a"], True),
        (["--wait", "--yes"], ["--yes"], True),
        (["--wait", "running", "a"], ["--wait", "running", "a"], False),
        (["--wait=RUNNING"], ["--wait=RUNNING"], False),
        (["--wait", "--", "RUNNING"], ["--", "RUNNING"], True),
        (["a", "--", "--wait"], ["a", "--", "--wait"], False),
    ],
)
def test_a_wait_without_a_state_takes_no_other_word(
    words: list[str], left: list[str], alone: bool
) -> None:
    """A connector's name after it stays a name."""
    assert without_bare_wait(words) == (left, alone)
