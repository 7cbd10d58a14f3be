"""Durations as people write them."""

import pytest

from pyconnect_cli.errors import UsageError
from pyconnect_cli.parsing.values import format_duration, parse_duration
from tests.support.cases import cases


@cases(
    "text, seconds",
    ("90", 90), ("90s", 90), ("1.5m", 90), ("1h30m", 5400), ("250ms", 0.25), ("1d", 86400),
)  # fmt: skip
def test_durations_are_read(text: str, seconds: float) -> None:
    """A bare number is seconds; units add up."""
    assert parse_duration(text) == seconds


@cases("text", "", "s", "5x", "-1s", "1 hour", "1h-5m", "inf")
def test_anything_else_is_a_usage_error(text: str) -> None:
    """Exit 2 with an example."""
    with pytest.raises(UsageError):
        parse_duration(text)


@cases(
    "seconds, text", (0.25, "250ms"), (12, "12s"), (200, "3m20s"), (7500, "2h05m"), (273600, "3d4h")
)
def test_durations_are_written_short(seconds: float, text: str) -> None:
    """Two units at most."""
    assert format_duration(seconds) == text
