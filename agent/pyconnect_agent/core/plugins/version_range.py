"""Versions of plugins and ranges of them (KIP-891).

Layer: core. Ranges are written as for Maven: ``[4,5)`` from 4 up to but not including 5, ``[4.3,]``
from 4.3 on, ``(,4]`` up to 4; several ranges are joined by commas. A plain version means exactly
that version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

_RANGE = re.compile(r"([\[(])([^\[\](),]*)(?:(,)([^\[\](),]*))?([\])])")
_QUALIFIERS = {"alpha": 0, "a": 0, "beta": 1, "b": 1, "milestone": 2, "m": 2, "rc": 3, "cr": 3}
_QUALIFIERS |= {
    "dev": 0,
    "snapshot": 4,
    "": 5,
    "ga": 5,
    "final": 5,
    "release": 5,
    "post": 7,
    "sp": 6,
}
_UNKNOWN_QUALIFIER = 6


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version that compares by its numbers, pre-releases before the release."""

    text: str

    def _key(self) -> tuple[tuple[int, int, str], ...]:
        parts = re.findall(r"\d+|[a-z]+", self.text.lower())
        zero = (_QUALIFIERS[""], 0, "")
        key: list[tuple[int, int, str]] = []
        for part in parts:
            if part.isdigit():
                key.append((_QUALIFIERS[""], int(part), ""))
                continue
            while key and key[-1] == zero:
                key.pop()
            key.append((_QUALIFIERS.get(part, _UNKNOWN_QUALIFIER), 0, part))
        while key and key[-1] == zero:
            key.pop()
        # Ends every key, so that 1.0rc1 is below 1.0 and 1.0 below 1.0.1.
        return (*key, (_QUALIFIERS[""], -1, ""))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key() == other._key()

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    lower: Version | None
    upper: Version | None
    includes_lower: bool
    includes_upper: bool

    def contains(self, version: Version) -> bool:
        above = self.lower is None or (
            self.lower < version or (self.includes_lower and self.lower == version)
        )
        below = self.upper is None or (
            version < self.upper or (self.includes_upper and self.upper == version)
        )
        return above and below


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Which versions are wanted; the text form is the one Connect shows."""

    text: str
    intervals: tuple[_Interval, ...]

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Return the range; any other text is that one version, shown as ``[v,v]``."""
        text = text.strip()
        intervals: list[_Interval] = []
        position = 0
        for found in _RANGE.finditer(text):
            if text[position : found.start()].strip(" ,"):
                break
            lower = Version(found[2].strip()) if found[2].strip() else None
            upper_text = found[4] if found[3] else found[2]
            upper = Version(upper_text.strip()) if upper_text.strip() else None
            intervals.append(
                _Interval(
                    lower=lower,
                    upper=upper,
                    includes_lower=found[1] == "[",
                    includes_upper=found[5] == "]",
                )
            )
            position = found.end()
        if intervals and not text[position:].strip(" ,"):
            return cls(text, tuple(intervals))
        exact = Version(text)
        interval = _Interval(lower=exact, upper=exact, includes_lower=True, includes_upper=True)
        return cls(f"[{text},{text}]", (interval,))

    def contains(self, version: str) -> bool:
        """Return whether ``version`` is wanted."""
        return any(interval.contains(Version(version)) for interval in self.intervals)

    def __str__(self) -> str:
        return self.text
