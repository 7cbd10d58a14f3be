"""Durations and past times on the command line."""

from datetime import UTC, datetime

import pytest

from pyconnect_cli.errors import UsageError
from pyconnect_cli.parsing.values import format_duration, parse_duration, parse_moment
from tests.support.cases import cases


@cases(
    "text, seconds",
    ("90", 90), ("90s", 90), ("1.5m", 90), ("1h30m", 5400), ("250ms", 0.25), ("1d", 86400),
)  # fmt: skip
def test_durations_are_read(text: str, seconds: float) -> None:
    """A number without a unit means seconds; several units are added."""
    assert parse_duration(text) == seconds


@cases("text", "", "s", "5x", "-1s", "1 hour", "1h-5m", "inf")
def test_anything_else_is_a_usage_error(text: str) -> None:
    """Other texts raise UsageError."""
    with pytest.raises(UsageError):
        parse_duration(text)


@cases(
    "seconds, text", (0.25, "250ms"), (12, "12s"), (200, "3m20s"), (7500, "2h05m"), (273600, "3d4h")
)
def test_durations_are_written_short(seconds: float, text: str) -> None:
    """A duration has at most two units."""
    assert format_duration(seconds) == text


NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@cases(
    "text, expected",
    ("2026-01-31T11:00:00Z", datetime(2026, 1, 31, 11, tzinfo=UTC)),
    ("2026-01-31T12:30:00+01:00", datetime(2026, 1, 31, 11, 30, tzinfo=UTC)),
    ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
    ("2h", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ("1969-12-31", datetime(1970, 1, 1, tzinfo=UTC)),
)
def test_a_moment_is_a_time_or_an_age(text: str, expected: datetime) -> None:
    """A time without a zone is UTC; a time before 1970 becomes 1970."""
    assert parse_moment(text, what="--since", now=NOW) == round(expected.timestamp() * 1000)


@cases("text", "2026-01-31T12:00:01Z", "2027-01-31", "2026-01-31T12:30:00")
def test_a_time_that_is_still_to_come_is_refused(text: str) -> None:
    """A future time, such as a mistyped year, would skip all records."""
    with pytest.raises(
        UsageError, match=r"--since: .* is in the future; it is 2026-01-31T12:00:00"
    ):
        parse_moment(text, what="--since", now=NOW)


def test_other_texts_are_refused() -> None:
    """The error names the text."""
    with pytest.raises(UsageError, match="`yesterday` is not a time"):
        parse_moment("yesterday", what="--since", now=NOW)
