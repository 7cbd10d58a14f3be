r"""Java's regular expressions, translated to Python's.

Layer: core. Corresponds to `java.util.regex.Pattern`, whose syntax configurations use. What has no
counterpart is refused with `re.error`, never approximated: `\G`, `\X`, the flag `U`, scripts and
blocks, lookbehind of variable length.

Where both have the same syntax with another meaning the translation spells Java's meaning out:
`\d`, `\w` and `\s` are ASCII; `.`, `^` and `$` know more line ends; flags within an expression hold
up to the end of their group; sets can contain sets and be intersected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pyconnect_agent.core.java_character_sets import (
    HORIZONTAL_SPACE,
    LINE_ENDS,
    VERTICAL_SPACE,
    CharacterSetReader,
    escaped_literal,
)
from pyconnect_agent.core.java_pattern_text import PatternText

_AT_END = rf"(?=(?:\r\n|[{LINE_ENDS}])?\Z)"
_AT_LINE_END = r"(?:(?=[\r\x85\u2028\u2029]|\Z)|(?<!\r)(?=\n))"
_AT_LINE_START = r"(?:\A|(?<=[\n\x85\u2028\u2029])(?!\Z)|(?<=\r)(?![\n]|\Z))"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})[?+]?")
_FLAGS = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?([:)])")
_GROUP_START = re.compile(r"\(\?(?:[:=!>]|<[=!])")
_GROUP_NAME = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_REFERENCE_NAME = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")
_COMMENT = re.compile(r"(?:[ \t\n\x0b\f\r]|#[^\n\r\x85\u2028\u2029]*)+")
_MAXIMUM_CACHED = 256


@lru_cache(_MAXIMUM_CACHED)
def compile_java_regex(pattern: str) -> re.Pattern[str]:
    """Return Python's pattern of the same meaning; re.error for what is wrong or has none."""
    return re.compile(translated(pattern), re.ASCII)


def translated(pattern: str) -> str:
    """Return the pattern in Python's syntax, to be compiled with `re.ASCII`."""
    return _Translator(pattern).translation()


@dataclass(frozen=True, slots=True)
class _Flags:
    """Flags in force at one place; `i` and `u` are left to Python, others are spelled out."""

    i: bool = False
    u: bool = False
    m: bool = False
    s: bool = False
    d: bool = False
    x: bool = False

    def opening(self) -> str:
        """Return the start of a group in which Python ignores case as Java would."""
        if not self.i:
            return "(?-i:"
        return "(?iu:" if self.u else "(?i:"


@dataclass(slots=True)
class _Group:
    """An open group: flags at its start and now, and what has to be closed before it ends."""

    outer: _Flags
    flags: _Flags
    scoped: bool = field(default=False)


class _Translator:
    """Reads one pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = PatternText(pattern)
        self._sets = CharacterSetReader(self._text)
        self._parts: list[str] = []
        self._groups = [_Group(_Flags(), _Flags())]
        self._capturing = 0

    def translation(self) -> str:
        while not self._text.at_end():
            self._step()
        if len(self._groups) > 1:
            raise self._text.error("Unclosed group")
        self._close_scope()
        return "".join(self._parts)

    @property
    def _flags(self) -> _Flags:
        return self._groups[-1].flags

    def _step(self) -> None:
        """Translate one element together with its quantifier."""
        if self._flags.x and self._text.take(_COMMENT):
            return
        if self._text.take_text("\\Q"):
            self._quoted()
            return
        match self._text.peek():
            case "|":
                self._text.take_text("|")
                self._alternative()
                return
            case "(":
                self._open()
                return
            case ")":
                self._close()
            case "[":
                self._parts.append(self._sets.read(ignore_blanks=self._flags.x))
            case "\\":
                self._parts.append(self._escape())
            case "*" | "+" | "?" as dangling:
                raise self._text.error(f"Dangling meta character '{dangling}'")
            case "{":
                raise self._text.error("Illegal repetition")
            case "." | "^" | "$" as special:
                self._text.take_text(special)
                self._parts.append(self._special(special))
            case plain:
                self._text.take_text(plain)
                self._parts.append(escaped_literal(plain))
        self._quantifier()

    def _quantifier(self) -> None:
        if self._flags.x:
            self._text.take(_COMMENT)
        quantifier = self._text.take(_QUANTIFIER)
        if quantifier is not None:
            self._parts.append(quantifier.group())
        elif self._text.peek() == "{":
            unclosed = self._text.peek(1).isdigit()
            raise self._text.error("Unclosed counted closure" if unclosed else "Illegal repetition")

    def _quoted(self) -> None:
        r"""Translate what stands between `\Q` and `\E`; a quantifier applies to its last one."""
        for char in self._text.quoted():
            self._parts.append(escaped_literal(char))
        self._quantifier()

    def _special(self, char: str) -> str:
        flags = self._flags
        match char:
            case ".":
                if flags.s:
                    return r"[\s\S]"
                return r"[^\n]" if flags.d else f"[^{LINE_ENDS}]"
            case "^":
                if not flags.m:
                    return r"\A"
                return r"(?:\A|(?<=\n)(?!\Z))" if flags.d else _AT_LINE_START
        if flags.m:
            return r"(?=\n|\Z)" if flags.d else _AT_LINE_END
        return r"(?=\n?\Z)" if flags.d else _AT_END

    def _open(self) -> None:
        """Translate the start of a group, or flags for the rest of this one."""
        flags = self._text.take(_FLAGS)
        if flags is not None:
            changed = self._changed_flags(flags[1], flags[2] or "")
            if flags[3] == ")":
                self._close_scope()
                self._groups[-1].flags = changed
                self._open_scope()
            else:
                self._groups.append(_Group(self._flags, changed))
                self._parts.append(changed.opening())
            return
        start = self._text.take(_GROUP_START)
        if start is not None:
            self._parts.append(start.group())
        elif (name := self._text.take(_GROUP_NAME)) is not None:
            self._capturing += 1
            self._parts.append(f"(?P<{name[1]}>")
        elif self._text.take_text("(?"):
            raise self._text.error("Unknown inline modifier or look-around")
        else:
            self._text.take_text("(")
            self._capturing += 1
            self._parts.append("(")
        self._groups.append(_Group(self._flags, self._flags))

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise self._text.error("Unmatched closing ')'")
        self._text.take_text(")")
        self._close_scope()
        self._groups.pop()
        self._parts.append(")")

    def _alternative(self) -> None:
        # A scope would take the other alternatives in, so each gets its own.
        scoped = self._groups[-1].scoped
        self._close_scope()
        self._parts.append("|")
        if scoped:
            self._open_scope()

    def _open_scope(self) -> None:
        self._groups[-1].scoped = True
        self._parts.append(self._flags.opening())

    def _close_scope(self) -> None:
        if self._groups[-1].scoped:
            self._groups[-1].scoped = False
            self._parts.append(")")

    def _changed_flags(self, on: str, off: str) -> _Flags:
        if "U" in on:
            raise self._text.error("The flag U has no counterpart in Python")
        names = dict.fromkeys(on, True) | dict.fromkeys(off.replace("U", ""), False)
        return replace(self._flags, **names)

    def _escape(self) -> str:
        """Translate an escape outside of a set."""
        known = {
            "A": r"\A",
            "Z": _AT_END,
            "z": r"\Z",
            "b": r"\b",
            "B": r"\B",
            "R": rf"(?:\r\n|[{VERTICAL_SPACE}])",
            "h": f"[{HORIZONTAL_SPACE}]",
            "H": f"[^{HORIZONTAL_SPACE}]",
            "v": f"[{VERTICAL_SPACE}]",
            "V": f"[^{VERTICAL_SPACE}]",
            "d": "[0-9]",
            "D": "[^0-9]",
            "w": "[a-zA-Z0-9_]",
            "W": "[^a-zA-Z0-9_]",
            "s": r"[ \t-\r]",
            "S": r"[^ \t-\r]",
        }
        letter = self._text.peek(1)
        if letter in known:
            self._text.take_text("\\" + letter)
            return known[letter]
        if letter == "k":
            self._text.take_text("\\k")
            name = self._text.take(_REFERENCE_NAME)
            if name is None:
                raise self._text.error("\\k is not followed by '<' for named capturing group")
            return f"(?P={name[1]})"
        if letter in tuple("123456789"):
            return self._back_reference()
        if letter in {"p", "P"}:
            return f"[{self._sets.property_content()}]"
        return escaped_literal(self._text.escaped_character())

    def _back_reference(self) -> str:
        """Translate the number of a group; digits beyond the groups there are are literals."""
        self._text.take_text("\\")
        number = int(self._text.next())
        while (digit := self._text.peek()) and digit in "0123456789":
            if number * 10 + int(digit) > self._capturing:
                break
            number = number * 10 + int(self._text.next())
        return rf"(?:\{number})"
