r"""Makes texts that match a regular expression.

Layer: builtin. Understands what generator hints use: literals, `.`, `[...]`, `\d`, `\w`, `\s`,
groups, `|`, and the quantifiers `?`, `*`, `+`, `{n}`, `{n,}`, `{n,m}`. Unbounded ones repeat at
most eight times more than they must.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random

from pyconnect_api import ConfigException

Make = Callable[[Random], str]

_MORE = 8
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " \t",
}
_ANY = string.ascii_letters + string.digits


def text_maker(pattern: str) -> Make:
    """Return a function that makes matching texts; ConfigException for what is not understood."""
    parser = _Parser(pattern)
    make = parser.alternatives()
    if parser.position != len(pattern):
        raise parser.refused()
    return make


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.position = 0

    def refused(self) -> ConfigException:
        return ConfigException(
            f"The regex {self._pattern!r} of a generator is not understood at {self.position}"
        )

    def alternatives(self) -> Make:
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else lambda random: random.choice(choices)(random)

    def _sequence(self) -> Make:
        parts: list[Make] = []
        while self.position < len(self._pattern) and self._pattern[self.position] not in "|)":
            parts.append(self._quantified(self._atom()))
        return lambda random: "".join([part(random) for part in parts])

    def _atom(self) -> Make:
        character = self._next()
        match character:
            case "(":
                if self._take("?:"):
                    pass
                inner = self.alternatives()
                if not self._take(")"):
                    raise self.refused()
                return inner
            case "[":
                return _one_of(self._set())
            case ".":
                return _one_of(_ANY)
            case "\\":
                escaped = self._next()
                return _one_of(_CLASSES.get(escaped, escaped))
            case "^" | "$":
                return lambda _: ""
            case "*" | "+" | "?" | "{":
                raise self.refused()
        return lambda _: character

    def _quantified(self, make: Make) -> Make:
        least, most = 1, 1
        if self._take("?"):
            least, most = 0, 1
        elif self._take("*"):
            least, most = 0, _MORE
        elif self._take("+"):
            least, most = 1, 1 + _MORE
        elif self._take("{"):
            least, most = self._bounds()
        if (least, most) == (1, 1):
            return make
        return lambda random: "".join([make(random) for _ in range(random.randint(least, most))])

    def _bounds(self) -> tuple[int, int]:
        end = self._pattern.find("}", self.position)
        low, comma, high = self._pattern[self.position : end].partition(",")
        if end < 0 or not low.isdigit() or (high and not high.isdigit()):
            raise self.refused()
        self.position = end + 1
        least = int(low)
        if not comma:
            return least, least
        return least, int(high) if high else least + _MORE

    def _set(self) -> str:
        if self._take("^"):
            raise self.refused()
        members = ""
        while not self._take("]"):
            character = self._next()
            if character == "\\":
                escaped = self._next()
                members += _CLASSES.get(escaped, escaped)
            elif self._pattern[self.position : self.position + 1] == "-" and (
                self._pattern[self.position + 1 : self.position + 2] not in ("]", "")
            ):
                self.position += 1
                members += "".join(map(chr, range(ord(character), ord(self._next()) + 1)))
            else:
                members += character
        if not members:
            raise self.refused()
        return members

    def _next(self) -> str:
        if self.position >= len(self._pattern):
            raise self.refused()
        self.position += 1
        return self._pattern[self.position - 1]

    def _take(self, text: str) -> bool:
        if self._pattern.startswith(text, self.position):
            self.position += len(text)
            return True
        return False


def _one_of(characters: str) -> Make:
    return lambda random: random.choice(characters)
