r"""Sets of characters in Java's regular expressions, such as `[a-z&&[^aeiou]]`.

Layer: core. A set becomes a Python set where it can; one that contains intersections or complements
becomes a group with lookaheads that matches the same single characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pyconnect_agent.core.java_character_properties import property_characters
from pyconnect_agent.core.java_pattern_text import PatternText

LINE_ENDS = r"\n\r\x85\u2028\u2029"
HORIZONTAL_SPACE = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
VERTICAL_SPACE = r"\n\x0b\f\r\x85\u2028\u2029"

_CLASSES = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": r" \t-\r",
    "h": HORIZONTAL_SPACE,
    "v": VERTICAL_SPACE,
}
_ANY = r"[\s\S]"
_PROPERTY = re.compile(r"\\([pP])(?:\{([^}]*)\}|(.))", re.DOTALL)
_BLANK = re.compile(r"[ \t\n\x0b\f\r]+")


def escaped_literal(char: str) -> str:
    """Return the character so that it stands for itself, inside and outside of sets."""
    if char.isalnum() or char == "_":
        return char
    return f"\\U{ord(char):08x}" if not char.isascii() or char.isspace() else f"\\{char}"


@dataclass(slots=True)
class _Union:
    """Characters of a set: those that a Python set can list, and other expressions for one."""

    content: list[str] = field(default_factory=list)
    expressions: list[str] = field(default_factory=list)

    def is_empty(self) -> bool:
        return not self.content and not self.expressions

    def expression(self) -> str:
        """Return what matches one character of the set."""
        listed = [f"[{''.join(self.content)}]"] if self.content else []
        alternatives = listed + self.expressions
        return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"

    def complement(self) -> str:
        """Return what matches one character that is not in the set."""
        if not self.expressions:
            return f"[^{''.join(self.content)}]"
        return f"(?:(?!{self.expression()}){_ANY})"


class CharacterSetReader:
    """Reads sets and properties at the position of a pattern's text."""

    def __init__(self, text: PatternText) -> None:
        self._text = text

    def property_content(self) -> str:
        r"""Consume `\p{…}` or `\P{…}` and return it as content of a Python set."""
        match = self._text.take(_PROPERTY)
        if match is None:
            raise self._text.error("Unknown character property")
        name, negated = match[2] if match[3] is None else match[3], match[1] == "P"
        if name.startswith("^"):
            name, negated = name[1:], not negated
        content = property_characters(name)
        return content if not negated else _complement_content(content)

    def read(self, *, ignore_blanks: bool) -> str:
        """Consume a set, from its opening bracket on, and return the translation."""
        union = self._set(ignore_blanks)
        return union.expression()

    def _set(self, ignore_blanks: bool) -> _Union:
        self._text.take_text("[")
        negated = self._text.take_text("^")
        operands: list[_Union] = []
        union = _Union()
        is_first = True
        while is_first or not self._text.take_text("]"):
            if ignore_blanks and self._text.take(_BLANK):
                continue
            if self._text.at_end():
                raise self._text.error("Unclosed character class")
            if self._text.take_text("&&"):
                operands.append(union)
                union = _Union()
            else:
                self._item(union, ignore_blanks)
            is_first = False
        operands.append(union)
        combined = _intersection([operand for operand in operands if not operand.is_empty()])
        if combined.is_empty():
            raise self._text.error("Unclosed character class")
        return _Union(expressions=[combined.complement()]) if negated else combined

    def _item(self, union: _Union, ignore_blanks: bool) -> None:
        """Add the next member to the union: a set, a class, a character or a range."""
        if self._text.peek() == "[":
            inner = self._set(ignore_blanks)
            union.content += inner.content
            union.expressions += inner.expressions
            return
        if self._text.take_text("\\Q"):
            union.content += map(escaped_literal, self._text.quoted())
            return
        letter = self._text.peek(1) if self._text.peek() == "\\" else ""
        if letter and letter in "pP":
            union.content.append(self.property_content())
        elif letter and letter.lower() in _CLASSES:
            self._text.take_text("\\" + letter)
            content = _CLASSES[letter.lower()]
            union.content.append(content if letter.islower() else _complement_content(content))
        else:
            self._range(union)

    def _range(self, union: _Union) -> None:
        first = self._character()
        if self._text.peek() != "-" or self._text.peek(1) in {"]", "[", ""}:
            union.content.append(escaped_literal(first))
            return
        self._text.take_text("-")
        last = self._character()
        if last < first:
            raise self._text.error("Illegal character range")
        union.content.append(f"{escaped_literal(first)}-{escaped_literal(last)}")

    def _character(self) -> str:
        if self._text.peek() == "\\":
            return self._text.escaped_character()
        return self._text.next()


def _intersection(operands: list[_Union]) -> _Union:
    if len(operands) <= 1:
        return operands[0] if operands else _Union()
    *conditions, last = (operand.expression() for operand in operands)
    lookaheads = "".join(f"(?={condition})" for condition in conditions)
    return _Union(expressions=[f"(?:{lookaheads}{last})"])


def _complement_content(content: str) -> str:
    """Return the ranges of characters that a set of this content does not match."""
    excluded = re.compile(f"[{content}]")
    ranges: list[str] = []
    first: int | None = None
    for code in range(0x110001):
        inside = code <= 0x10FFFF and not excluded.match(chr(code))
        if inside and first is None:
            first = code
        elif not inside and first is not None:
            ranges.append(f"\\U{first:08x}-\\U{code - 1:08x}")
            first = None
    return "".join(ranges)
