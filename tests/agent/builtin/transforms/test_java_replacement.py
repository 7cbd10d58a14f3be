"""Replacement texts stand for what they do in Java."""

import re

import pytest

from pyconnect_agent.builtin.transforms.routers import JavaReplacement
from tests.support.cases import cases

REGEX = re.compile(r"(?P<first>\w)(\d)?")


@cases(
    "replacement, expected",
    ("$0", "-a1-b"), ("$1", "-a-b"), ("$2$1", "-1a-b"), ("${first}!", "-a!-b"), ("$12", "-a2-b"),
    (r"\$1\\", "-$1\\-b"), ("", "--b"),
)  # fmt: skip
def test_groups_replace_the_first_match(replacement: str, expected: str) -> None:
    """The text around the match stays."""
    match = REGEX.search("-a1-b")
    assert match is not None
    assert JavaReplacement(replacement, REGEX).replace_first(match) == expected


def test_a_group_without_part_in_the_match_is_empty() -> None:
    """It is not the text None."""
    match = REGEX.search("a")
    assert match is not None
    assert JavaReplacement("$1[$2]", REGEX).replace_first(match) == "a[]"


@cases(
    "replacement, message",
    ("$3", "No group 3"),
    ("${x}", "No group with name {x}"),
    ("$", "Illegal group reference: group index is missing"),
    ("$a", "Illegal group reference"),
    ("\\", "character to be escaped is missing"),
)
def test_missing_groups_are_refused_in_javas_words(replacement: str, message: str) -> None:
    """The mistake is found before the first record."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        JavaReplacement(replacement, REGEX)
