"""Patterns of `java.text.SimpleDateFormat`, split into their elements.

Layer: builtin. Letters are fields, text between quotes and everything else stands for itself, two
quotes are one quote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""In the order of `date.weekday()`."""

_FIELD_LETTERS = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_TEXT_LETTERS = frozenset("GEazZX")
_TOKEN = re.compile(
    r"(?P<field>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')+)'|(?P<quote>'')|(?P<open>')|(?P<plain>[^A-Za-z']+)"
)


@dataclass(frozen=True, slots=True)
class PatternField:
    """A letter and how often it is repeated."""

    letter: str
    count: int

    @property
    def is_numeric(self) -> bool:
        """Whether it is written in digits; months are from three letters on written in words."""
        if self.letter in {"M", "L"}:
            return self.count <= 2
        return self.letter not in _TEXT_LETTERS


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands for itself."""

    text: str


def date_pattern_elements(pattern: str) -> tuple[PatternField | Literal, ...]:
    """Return the elements of a pattern; ValueError with Java's text for one that is wrong."""
    elements: list[PatternField | Literal] = []
    for match in _TOKEN.finditer(pattern):
        if match["field"]:
            letter = match["field"][0]
            if letter not in _FIELD_LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            field = PatternField(letter, len(match["field"]))
            if letter == "X" and field.count > 3:
                raise ValueError(f"invalid ISO 8601 format: length={field.count}")
            elements.append(field)
        elif match["open"]:
            raise ValueError("Unterminated quote")
        else:
            quoted = match["quoted"]
            text = "'" if match["quote"] else match["plain"] or quoted.replace("''", "'")
            elements.append(Literal(text))
    return tuple(elements)
