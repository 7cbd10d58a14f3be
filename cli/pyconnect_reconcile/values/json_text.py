"""Canonical JSON in plain Python, for releases of Spark that have no type for JSON.

Executors run it, and need nothing of pyconnect: Spark ships this module by value. So it imports the
standard library alone.
"""

from __future__ import annotations

import json


def canonical(text: str | None, member: str | None = None) -> str | None:
    """Return JSON with sorted members and without spaces, as Spark 4 writes a parsed JSON.

    With `member`, that member of the first element. None for what is not JSON, has a member twice,
    or lacks the member.
    """
    if text is None:
        return None
    try:
        found = json.loads(text, object_pairs_hook=_once_each, parse_constant=_refused)
        if member is not None:
            found = found[0][member]
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError, LookupError, TypeError):
        return None


def _once_each(members: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a member occurs twice")
    # Java compares UTF-16, as Spark does.
    return dict(sorted(found.items(), key=lambda member: member[0].encode("utf-16-be")))


def _refused(constant: str) -> object:
    raise ValueError(constant)
