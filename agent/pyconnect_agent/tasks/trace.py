"""The text of a failure for statuses: outermost exception first, then its causes, as Java prints.

Layer: tasks. May quote configuration values: callers mask what config providers supplied.
"""

from __future__ import annotations

import traceback


def format_trace(error: BaseException) -> str:
    """Return message, notes and stack of `error`, then `Caused by:` for each of its causes."""
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        head = "Caused by: " if parts else ""
        stack = "".join(traceback.format_tb(current.__traceback__))
        notes = "".join(f"{note}\n" for note in getattr(current, "__notes__", ()))
        parts.append(f"{head}{describe(current)}\n{notes}{stack}")
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return "".join(parts)


def describe(error: BaseException) -> str:
    """Return `<class>: <message>`, class with its module unless built in."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else _dotted(kind)
    text = str(error)
    return f"{name}: {text}" if text else name


def _dotted(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
