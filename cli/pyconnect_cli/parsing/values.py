"""Values that users and servers write: JSON, durations (`90`, `1h30m`), past moments. Pure."""

import json
import math
import re
from datetime import UTC, datetime
from typing import NoReturn

from pyconnect_cli.errors import UsageError

DEEPEST = 200
TOO_DEEP = f"its arrays and objects are nested more than {DEEPEST} deep"


def shallow(document: object) -> object:
    """Return a JSON document as it is; RecursionError if it is nested too deep to work with."""
    level: list[object] = [document]
    for _ in range(DEEPEST + 1):
        inside = (
            item.values() if isinstance(item, dict) else item
            for item in level
            if isinstance(item, dict | list)
        )
        level = [child for items in inside for child in items]
        if not level:
            return document
    raise RecursionError(TOO_DEEP)


def parse_json(text: str, place: str, *, exact: bool = False) -> object:
    """Read JSON; UsageError for other texts, and for a member that occurs twice.

    `exact`: also for a number that a double cannot represent with all its digits.
    """

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise UsageError(f"{place}: member `{key}` occurs twice in one object")
            found[key] = value
        return found

    def no_constant(text: str) -> NoReturn:
        raise UsageError(f"{place}: {text} is not a JSON number")

    def number(text: str) -> float:
        value = float(text)
        if exact:
            from decimal import Decimal  # most commands read no numbers

            if Decimal(repr(value)) != Decimal(text):
                raise UsageError(f"{place}: {text} has more digits than a double")
        return no_constant(text) if math.isinf(value) else value

    def whole(text: str) -> int:
        if exact:
            number(text)
        return int(text)

    try:
        return shallow(
            json.loads(
                text,
                object_pairs_hook=members,
                parse_constant=no_constant,
                parse_float=number,
                parse_int=whole,
            )
        )
    except json.JSONDecodeError as exc:
        raise UsageError(
            f"{place}: line {exc.lineno}, column {exc.colno}: is not JSON: {exc.msg}",
            hint="put keys and texts in double quotes",
        ) from exc
    except ValueError as exc:
        raise UsageError(f"{place}: cannot be read: {exc}") from exc
    except RecursionError as exc:
        raise UsageError(f"{place}: cannot be read: {TOO_DEEP}") from exc


UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse_duration(text: str, *, what: str = "duration") -> float:
    """Return seconds; a bare number is seconds. Raise UsageError for anything else."""
    compact = text.strip().lower()
    if re.fullmatch(r"\d+(?:\.\d+)?", compact):
        return float(compact)
    parts = PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise UsageError(
            f"{what}: `{text}` is not a duration", hint="write 90s, 2m, 1h30m or 250ms"
        )
    return sum(float(number) * UNIT_SECONDS[unit] for number, unit in parts)


def format_duration(seconds: float) -> str:
    """Return a short text for a duration: `250ms`, `12s`, `3m20s`, `2h05m`, `3d4h`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600}h"


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


def local_text(time_ms: int) -> str:
    """Return a time of this machine's zone, from milliseconds since the epoch."""
    return f"{datetime.fromtimestamp(time_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S}"


def utc_text(now: datetime) -> str:
    """Return a time in the form of backups and journals."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
