r"""Replacement texts of Java's regular expressions.

Layer: builtin. Corresponds to `Matcher.replaceFirst`: `$1` and `${name}` stand for groups, `\`
makes the next character stand for itself. As many digits are read as there are groups for.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"\\(?P<escaped>.)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|\$(?P<digits>[0-9]+)"
    r"|(?P<wrong>[\\$])|(?P<plain>[^\\$]+)",
    re.DOTALL,
)


class JavaReplacement:
    """A replacement compiled for one expression."""

    __slots__ = ("_parts",)

    def __init__(self, replacement: str, regex: re.Pattern[str]) -> None:
        """Compile it; ValueError, with Java's text, for a group that does not exist."""
        self._parts: list[str | int] = []
        for match in _TOKEN.finditer(replacement):
            self._parts += _part(match, regex)

    def replace_first(self, match: re.Match[str]) -> str:
        """Return the searched text with the match replaced; groups that took no part are empty."""
        text = "".join(
            part if isinstance(part, str) else match.group(part) or "" for part in self._parts
        )
        return f"{match.string[: match.start()]}{text}{match.string[match.end() :]}"


def _part(token: re.Match[str], regex: re.Pattern[str]) -> list[str | int]:
    name, digits = token["name"], token["digits"]
    if name is not None:
        if name not in regex.groupindex:
            raise ValueError(f"No group with name {{{name}}}")
        return [regex.groupindex[name]]
    if digits is not None:
        length = len(digits)
        while length > 1 and int(digits[:length]) > regex.groups:
            length -= 1
        if int(digits[:length]) > regex.groups:
            raise ValueError(f"No group {digits[:length]}")
        return [int(digits[:length]), digits[length:]]
    if token["wrong"] == "\\":
        raise ValueError("character to be escaped is missing")
    if token["wrong"] == "$":
        missing = ": group index is missing" if token.end() == len(token.string) else ""
        raise ValueError(f"Illegal group reference{missing}")
    return [token["escaped"] or token["plain"]]
