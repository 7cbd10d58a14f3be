r"""A position in the text of a Java regular expression, and the escapes that stand for a character.

Layer: core.
"""

from __future__ import annotations

import re
import unicodedata

_HEXADECIMAL = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_NAMED = re.compile(r"N\{([^}]+)\}")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_HIGHEST_CODE = 0x10FFFF


class PatternText:
    """Text with a position that only moves forward."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._position = 0

    def at_end(self) -> bool:
        return self._position >= len(self.pattern)

    def peek(self, ahead: int = 0) -> str:
        """Return the character there, empty at the end."""
        position = self._position + ahead
        return self.pattern[position] if position < len(self.pattern) else ""

    def next(self) -> str:
        """Consume a character; re.error at the end."""
        char = self.peek()
        if not char:
            raise self.error("Unexpected end of pattern")
        self._position += 1
        return char

    def take(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        """Consume what the expression matches here."""
        match = expected.match(self.pattern, self._position)
        if match is not None:
            self._position = match.end()
        return match

    def take_text(self, expected: str) -> bool:
        """Consume the expected text if it is here."""
        found = self.pattern.startswith(expected, self._position)
        if found:
            self._position += len(expected)
        return found

    def quoted(self) -> str:
        r"""Consume up to `\E`, or to the end, and return what stands before."""
        end = self.pattern.find("\\E", self._position)
        text = self.pattern[self._position : end if end >= 0 else len(self.pattern)]
        self._position += len(text) + (2 if end >= 0 else 0)
        return text

    def escaped_character(self) -> str:
        """Consume an escape and return the one character it stands for; re.error if it does not."""
        self.take_text("\\")
        if (match := self.take(_HEXADECIMAL)) is not None:
            code = int(match[1] or match[2] or match[3], 16)
            if code > _HIGHEST_CODE:
                raise self.error("Hexadecimal codepoint is too big")
            return chr(code)
        if (match := self.take(_OCTAL)) is not None:
            return chr(int(match[1], 8))
        if (match := self.take(_NAMED)) is not None:
            try:
                return unicodedata.lookup(match[1])
            except KeyError:
                raise self.error(f"Unknown character name [{match[1]}]") from None
        char = self.next()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "c":
            return chr(ord(self.next()) ^ 64)
        if char.isascii() and char.isalnum():
            raise self.error("Illegal/unsupported escape sequence")
        return char

    def error(self, message: str) -> re.error:
        """Return the error at this position, in the form of Java's PatternSyntaxException."""
        place = f"{message} near index {self._position}\n{self.pattern}"
        if self._position < len(self.pattern):
            place += f"\n{' ' * self._position}^"
        return re.error(place)
