"""Moments of the past as users write them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from pyconnect_cli.errors import UsageError
from pyconnect_cli.parsing.durations import parse_duration


def parse_moment(text: str, *, what: str, now: datetime) -> int:
    """Read a time (ISO 8601, UTC without a time zone) or an age as 2h; in ms since the epoch.

    UsageError for a time in the future: records of it do not exist yet.
    """
    if text[:1].isdigit() and text[-1:] in {"s", "m", "h", "d"} and "T" not in text:
        return max(round((now.timestamp() - parse_duration(text, what=what)) * 1000), 0)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise UsageError(
            f"{what}: `{text}` is not a time", hint="for example 2026-01-31T12:00:00Z or 2h"
        ) from exc
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if moment > now:
        raise UsageError(
            f"{what}: {moment.isoformat()} is in the future; it is {now.isoformat('T', 'seconds')}",
            hint="a time without a time zone is UTC; for example 2026-01-31T12:00:00+01:00 or 2h",
        )
    return max(round(moment.timestamp() * 1000), 0)
