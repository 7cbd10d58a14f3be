r"""Java's regular expressions, translated to those of the library `regex`.

Corresponds to `java.util.regex.Pattern`, whose syntax configurations use. The library has nested
sets, intersections, possessive quantifiers and Unicode's properties as Java has them. This module
translates elements with another meaning in Java: `\d`, `\w` and `\s` are ASCII; `.`, `^` and `$`
know more line ends; case is ignored among ASCII letters unless the flag `u` is set. An expression
without a counterpart (the flag `U`, some `javaXxx` properties) is refused (`re.error`).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pyconnect_api import LambdaValidator
from pyconnect_api.configdef import invalid_value

if TYPE_CHECKING:
    import regex


_HEXADECIMAL = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_NAMED = re.compile(r"N\{([^}]+)\}")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_HIGHEST_CODE = 0x10FFFF


class PatternText:
    """A pattern's text with a position that only moves forward."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._position = 0

    def at_end(self) -> bool:
        return self._position >= len(self.pattern)

    def peek(self, ahead: int = 0) -> str:
        """Return the character at the position plus `ahead`, empty at the end."""
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
        """Consume the text that the expression matches at the position; None without a match."""
        match = expected.match(self.pattern, self._position)
        if match is not None:
            self._position = match.end()
        return match

    def take_text(self, expected: str) -> bool:
        """Consume the expected text if it is at the position; return whether it was."""
        found = self.pattern.startswith(expected, self._position)
        if found:
            self._position += len(expected)
        return found

    def quoted(self) -> str:
        r"""Consume up to `\E`, or to the end; return the text before it."""
        end = self.pattern.find("\\E", self._position)
        text = self.pattern[self._position : end if end >= 0 else len(self.pattern)]
        self._position += len(text) + (2 if end >= 0 else 0)
        return text

    def escaped_character(self) -> str:
        """Consume an escape and return the character that it means; re.error if it means none."""
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


_LINE_ENDS = r"\n\r\x85\u2028\u2029"
_AT_END = rf"(?=(?:\r\n|[{_LINE_ENDS}])?\Z)"
_AT_LINE_END = r"(?:(?=[\r\x85\u2028\u2029]|\Z)|(?<!\r)(?=\n))"
_AT_LINE_START = r"(?:\A|(?<=[\n\x85\u2028\u2029])(?!\Z)|(?<=\r)(?![\n]|\Z))"
_CLASSES = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": r" \t-\r",
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0b\f\r\x85\u2028\u2029",
}
_ESCAPES = {
    "A": r"\A",
    "Z": _AT_END,
    "z": r"\Z",
    "b": r"\b",
    "B": r"\B",
    "G": r"\G",
    "X": r"\X",
    "R": rf"(?:\r\n|[{_CLASSES['v']}])",
}
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-\~",
    "Graph": r"!-\~",
    "Print": r" -\~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t-\r",
    "L1": r"\x00-\xff",
    "all": r"\x00-\U0010ffff",
}
_PROPERTIES = {
    "LC": r"\p{Lu}\p{Ll}\p{Lt}",
    "LD": r"\p{L}\p{Nd}",
    "isletter": r"\p{L}",
    "isdigit": r"\p{Nd}",
    "istitlecase": r"\p{Lt}",
    "ispunctuation": r"\p{P}",
    "iscontrol": r"\p{Cc}",
    "isassigned": r"\P{Cn}",
    "javalowercase": r"\p{Lowercase}",
    "javauppercase": r"\p{Uppercase}",
    "javatitlecase": r"\p{Lt}",
    "javadigit": r"\p{Nd}",
    "javaletter": r"\p{L}",
    "javaletterordigit": r"\p{L}\p{Nd}",
    "javaalphabetic": r"\p{Alphabetic}",
}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})[?+]?")
_FLAGS = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?([:)])")
_GROUP_START = re.compile(r"\(\?(?:[:=!>]|<[=!]|<[a-zA-Z][a-zA-Z0-9]*>)")
_REFERENCE_NAME = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")
_COMMENT = re.compile(r"(?:[ \t\n\x0b\f\r]|#[^\n\r\x85\u2028\u2029]*)+")
_BLANK = re.compile(r"[ \t\n\x0b\f\r]+")
_PROPERTY = re.compile(r"\\([pP])(?:\{([^}]*)\}|(.))", re.DOTALL)
_MAXIMUM_CACHED = 256


@lru_cache(_MAXIMUM_CACHED)
def compile_java_regex(pattern: str) -> regex.Pattern[str]:
    """Return a pattern of the same meaning; re.error for a fault or without a counterpart."""
    # Most workers never need the library, which takes 11 MiB.
    import regex

    try:
        return regex.compile(translated(pattern), regex.V1)
    except regex.error as error:
        raise re.error(f"{error}: {pattern}") from error


def _check_regex(name: str, value: object) -> None:
    # The default of `topics.regex`, checked in every process: it does not need the library.
    if value == "":
        return
    try:
        compile_java_regex(str(value))
    except re.error as error:
        raise invalid_value(name, value, f"Invalid regex: {error}") from error


VALID_REGEX = LambdaValidator(_check_regex, "valid regex")


def translated(pattern: str) -> str:
    """Return the pattern in the library's syntax, version 1."""
    return _Translator(pattern).translation()


@dataclass(frozen=True, slots=True)
class _Flags:
    """Flags in force at one place; all but `i` and `u` together are written out."""

    i: bool = False
    u: bool = False
    m: bool = False
    s: bool = False
    d: bool = False
    x: bool = False

    @property
    def any_case(self) -> bool:
        """Whether the library's flag has to ignore the case of all letters."""
        return self.i and self.u

    @property
    def ascii_case(self) -> bool:
        """Whether the case of ASCII letters is ignored."""
        return self.i and not self.u


class _Translator:
    """Translator of one pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = PatternText(pattern)
        self._parts: list[str] = []
        self._flags = _Flags()
        self._outer: list[_Flags] = []
        self._capturing = 0

    def translation(self) -> str:
        while not self._text.at_end():
            self._step()
        if self._outer:
            raise self._text.error("Unclosed group")
        return "".join(self._parts)

    def _step(self) -> None:
        """Translate one element together with its quantifier."""
        if self._flags.x and self._text.take(_COMMENT):
            return
        if self._text.take_text("\\Q"):
            self._parts += map(self._literal, self._text.quoted())
        else:
            match self._text.peek():
                case "|":
                    self._text.take_text("|")
                    self._parts.append("|")
                    return
                case "(":
                    self._open()
                    return
                case ")":
                    self._close()
                case "[":
                    self._parts.append(self._set())
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
                    self._parts.append(self._literal(plain))
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

    def _literal(self, char: str) -> str:
        if self._flags.ascii_case and char.isascii() and char.isalpha():
            return f"[{char}{char.swapcase()}]"
        return _escaped(char)

    def _special(self, char: str) -> str:
        flags = self._flags
        match char:
            case ".":
                if flags.s:
                    return r"[\s\S]"
                return r"[^\n]" if flags.d else f"[^{_LINE_ENDS}]"
            case "^":
                if not flags.m:
                    return r"\A"
                return r"(?:\A|(?<=\n)(?!\Z))" if flags.d else _AT_LINE_START
        if flags.m:
            return r"(?=\n|\Z)" if flags.d else _AT_LINE_END
        return r"(?=\n?\Z)" if flags.d else _AT_END

    def _open(self) -> None:
        """Translate the start of a group, or flags for the rest of the present group."""
        flags = self._text.take(_FLAGS)
        if flags is not None:
            on = flags[1]
            if "U" in on:
                raise self._text.error("The flag U has no counterpart in Python")
            names = dict.fromkeys(on, True) | dict.fromkeys(
                (flags[2] or "").replace("U", ""), False
            )
            changed = replace(self._flags, **names)
            if flags[3] == ")":
                if changed.any_case != self._flags.any_case:
                    self._parts.append("(?i)" if changed.any_case else "(?-i)")
            else:
                self._outer.append(self._flags)
                self._parts.append("(?i:" if changed.any_case else "(?-i:")
            self._flags = changed
            return
        start = self._text.take(_GROUP_START)
        if start is not None:
            self._capturing += start.group().endswith(">") and len(start.group()) > len("(?>")
            self._parts.append(start.group())
        elif self._text.take_text("(?"):
            raise self._text.error("Unknown inline modifier or look-around")
        else:
            self._text.take_text("(")
            self._capturing += 1
            self._parts.append("(")
        self._outer.append(self._flags)

    def _close(self) -> None:
        if not self._outer:
            raise self._text.error("Unmatched closing ')'")
        self._text.take_text(")")
        self._flags = self._outer.pop()
        self._parts.append(")")

    def _escape(self) -> str:
        """Translate an escape outside of a set."""
        letter = self._text.peek(1)
        if letter in _ESCAPES:
            self._text.take_text("\\" + letter)
            return _ESCAPES[letter]
        if letter == "k":
            self._text.take_text("\\k")
            name = self._text.take(_REFERENCE_NAME)
            if name is None:
                raise self._text.error("\\k is not followed by '<' for named capturing group")
            return self._reference(f"(?P={name[1]})")
        if letter in tuple("123456789"):
            self._text.take_text("\\")
            number = int(self._text.next())
            while (digit := self._text.peek()) and digit in "0123456789":
                if number * 10 + int(digit) > self._capturing:
                    break
                number = number * 10 + int(self._text.next())
            return self._reference(rf"(?:\{number})")
        if letter and letter.lower() in {*_CLASSES, "p"}:
            return f"[{self._class()}]"
        return self._literal(self._text.escaped_character())

    def _reference(self, reference: str) -> str:
        return f"(?i:{reference})" if self._flags.ascii_case else reference

    def _class(self) -> str:
        r"""Translate a class such as `\d` or `\p{Lu}` to the content of a set."""
        property_ = self._text.take(_PROPERTY)
        if property_ is None:
            letter = self._text.peek(1)
            self._text.take_text("\\" + letter)
            content = _CLASSES[letter.lower()]
            return content if letter.islower() else f"[^{content}]"
        name, negated = property_[2] if property_[3] is None else property_[3], property_[1] == "P"
        if name.startswith("^"):
            name, negated = name[1:], not negated
        content = self._property(name)
        return f"[^{content}]" if negated else content

    def _property(self, name: str) -> str:
        if name in _POSIX:
            cased = self._flags.ascii_case and name in {"Lower", "Upper"}
            return _POSIX["Alpha" if cased else name]
        known = _PROPERTIES.get(name) or _PROPERTIES.get(name.lower())
        if known is None and not re.fullmatch(r"[A-Za-z0-9_ =-]+", name):
            raise self._text.error(f"Unknown character property name {{{name}}}")
        return known or rf"\p{{{name}}}"

    def _set(self) -> str:
        """Translate a set, starting at its opening bracket."""
        self._text.take_text("[")
        negated = self._text.take_text("^")
        operands = [""]
        is_first = True
        while is_first or not self._text.take_text("]"):
            if self._flags.x and self._text.take(_BLANK):
                continue
            if self._text.at_end():
                raise self._text.error("Unclosed character class")
            if self._text.take_text("&&"):
                operands.append("")
            else:
                operands[-1] += self._item()
            is_first = False
        content = "&&".join(operand for operand in operands if operand)
        if not content:
            raise self._text.error("Unclosed character class")
        return f"[{'^' if negated else ''}{content}]"

    def _item(self) -> str:
        """Translate the next member of a set: a set, a class, a character or a range."""
        if self._text.peek() == "[":
            return self._set()
        if self._text.take_text("\\Q"):
            return "".join(self._range(char, char) for char in self._text.quoted())
        letter = self._text.peek(1) if self._text.peek() == "\\" else ""
        if letter and letter.lower() in {*_CLASSES, "p"}:
            return self._class()
        first = last = self._character()
        if self._text.peek() == "-" and self._text.peek(1) not in {"]", "[", ""}:
            self._text.take_text("-")
            last = self._character()
            if last < first:
                raise self._text.error("Illegal character range")
        return self._range(first, last)

    def _range(self, first: str, last: str) -> str:
        listed = _escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}"
        if self._flags.ascii_case:
            codes = range(ord(first), min(ord(last), 127) + 1)
            listed += "".join(chr(code).swapcase() for code in codes if chr(code).isalpha())
        return listed

    def _character(self) -> str:
        if self._text.peek() == "\\":
            return self._text.escaped_character()
        return self._text.next()


def _escaped(char: str) -> str:
    """Return the character escaped, so that it means itself inside and outside of sets."""
    if char.isalnum() or char == "_":
        return char
    return f"\\U{ord(char):08x}" if not char.isascii() or char.isspace() else f"\\{char}"
