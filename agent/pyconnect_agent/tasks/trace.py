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
        if java_trace := getattr(current, "java_trace", ""):
            # Java has told its causes too.
            parts.append(f"{head}{java_trace}")
            break
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
    text = error_text(error)
    return f"{name}: {text}" if text else name


def class_name(error: BaseException) -> str:
    """Return the full name of an exception's class: Java's, if it was thrown there."""
    return getattr(error, "java_class", "") or _dotted(type(error))


def error_text(error: BaseException) -> str:
    """Return `str(error)`, which is code of a plugin: a report of a failure must not fail."""
    try:
        return str(error)
    except Exception as exc:  # noqa: BLE001  plugin code may raise anything
        return f"<{type(error).__qualname__}.__str__ raised {type(exc).__name__}>"


def _dotted(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
