"""Text split as Java's `String.split` does.

Layer: builtin.
"""

from __future__ import annotations


def split_at_colons(text: str) -> list[str]:
    """Return what `text.split(":")` returns in Java: without the empty parts at the end.

    A text without a colon is its one part, even if it is empty; of colons alone nothing is left.
    """
    if ":" not in text:
        return [text]
    parts = text.split(":")
    while parts and not parts[-1]:
        parts.pop()
    return parts
