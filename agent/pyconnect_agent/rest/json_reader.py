"""JSON texts of request bodies, token by token, with Jackson's error texts (spec §1.3).

Layer: rest, pure. Binding reads in document order, so whichever comes first is reported: a wrong
kind or a malformed token. Every error is a `BodyError`, answered with status 500. Columns count
characters from 1.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum

_WHITESPACE = re.compile(r"[ \t\n\r]*")
_PLAIN_STRING = re.compile(r'"([^"\\\x00-\x1f]*)"')
_STRING_CHUNK = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_HEX = frozenset("0123456789abcdefABCDEF")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_VALUES = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_SOURCE = "Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"


class Token(Enum):
    """Kinds of tokens; the value is Jackson's name."""

    START_OBJECT = "START_OBJECT"
    END_OBJECT = "END_OBJECT"
    START_ARRAY = "START_ARRAY"
    END_ARRAY = "END_ARRAY"
    FIELD_NAME = "FIELD_NAME"
    STRING = "VALUE_STRING"
    INTEGER = "VALUE_NUMBER_INT"
    FLOAT = "VALUE_NUMBER_FLOAT"
    TRUE = "VALUE_TRUE"
    FALSE = "VALUE_FALSE"
    NULL = "VALUE_NULL"
    END_OF_INPUT = "NOT_AVAILABLE"


_LITERALS = {"true": Token.TRUE, "false": Token.FALSE, "null": Token.NULL}


class BodyError(Exception):
    """A request body cannot be read or bound; the message is Jackson's."""


class _Expected(Enum):
    VALUE = 0
    FIRST = 1
    """A value or name, or the end of the container just opened."""
    SEPARATOR = 2
    COLON = 3


@dataclass(slots=True)
class _Container:
    is_object: bool
    start: int

    @property
    def kind(self) -> str:
        return "Object" if self.is_object else "Array"


class JsonReader:
    """Reads one document; `text` of a token is its string or number as written, else its JSON."""

    def __init__(self, body: bytes) -> None:
        self._document = _decoded(body)
        self._position = 0
        self._containers: list[_Container] = []
        self._expected = _Expected.VALUE
        self.token_start = 0
        self.text = ""

    def next(self) -> Token:
        """Return the next token's kind; END_OF_INPUT between values of the top level only."""
        self._skip_whitespace()
        self.token_start = self._position
        character = self._document[self._position : self._position + 1]
        container = self._containers[-1] if self._containers else None
        if container is None:
            return self._value(character) if character else Token.END_OF_INPUT
        if not character:
            raise self._ended_in(container)
        if self._expected is _Expected.COLON:
            character = self._after_colon(character, container)
            return self._value(character)
        closing = "}" if container.is_object else "]"
        if character == closing and self._expected is not _Expected.VALUE:
            return self._close(container)
        if self._expected is _Expected.SEPARATOR:
            character = self._after_comma(character, container)
        return self._name(character) if container.is_object else self._value(character)

    def skip_children(self) -> None:
        """Read past the object or array whose start was the last token."""
        depth = 1
        while depth:
            token = self.next()
            if token in (Token.START_OBJECT, Token.START_ARRAY):
                depth += 1
            elif token in (Token.END_OBJECT, Token.END_ARRAY):
                depth -= 1

    def error(self, message: str, position: int | None = None) -> BodyError:
        """Return an error that tells where it happened, by default at the last token."""
        at = self.token_start if position is None else position
        return BodyError(f"{message}\n at {self._location(at)}")

    def _location(self, position: int) -> str:
        line = self._document.count("\n", 0, position) + 1
        column = position - self._document.rfind("\n", 0, position)
        return f"[{_SOURCE}; line: {line}, column: {column}]"

    def _skip_whitespace(self) -> None:
        found = _WHITESPACE.match(self._document, self._position)
        self._position = found.end() if found else self._position
        character = self._document[self._position : self._position + 1]
        if character and character < " ":
            raise self.error(
                f"Illegal character ((CTRL-CHAR, code {ord(character)})): only regular white space "
                "(\\r, \\n, \\t) is allowed between tokens",
                self._position + 1,
            )

    def _ended_in(self, container: _Container) -> BodyError:
        end = len(self._document)
        if self._expected in (_Expected.FIRST, _Expected.SEPARATOR):
            return self.error(
                f"Unexpected end-of-input: expected close marker for {container.kind} "
                f"(start marker at {self._location(container.start)})",
                end,
            )
        return self.error(f"Unexpected end-of-input within/between {container.kind} entries", end)

    def _after_colon(self, character: str, container: _Container) -> str:
        if character != ":":
            raise self._unexpected(
                character, "was expecting a colon to separate field name and value"
            )
        return self._advance_to_token(container, _Expected.VALUE)

    def _after_comma(self, character: str, container: _Container) -> str:
        if character in "}]":
            raise self._wrong_close(character, container)
        if character != ",":
            raise self._unexpected(
                character, f"was expecting comma to separate {container.kind} entries"
            )
        return self._advance_to_token(container, _Expected.VALUE)

    def _advance_to_token(self, container: _Container, expected: _Expected) -> str:
        self._position += 1
        self._expected = expected
        self._skip_whitespace()
        self.token_start = self._position
        character = self._document[self._position : self._position + 1]
        if not character:
            raise self._ended_in(container)
        return character

    def _close(self, container: _Container) -> Token:
        self._containers.pop()
        self._position += 1
        self._after_value()
        self.text = "}" if container.is_object else "]"
        return Token.END_OBJECT if container.is_object else Token.END_ARRAY

    def _wrong_close(self, character: str, container: _Container | None) -> BodyError:
        if container is None:
            kind = "Object" if character == "}" else "Array"
            return self.error(f"Unexpected close marker '{character}': no open {kind} to close")
        closing = "}" if container.is_object else "]"
        return self.error(
            f"Unexpected close marker '{character}': expected '{closing}' (for {container.kind} "
            f"starting at {self._location(container.start)})"
        )

    def _after_value(self) -> None:
        self._expected = _Expected.SEPARATOR if self._containers else _Expected.VALUE

    def _name(self, character: str) -> Token:
        if character != '"':
            raise self._unexpected(character, "was expecting double-quote to start field name")
        self.text = self._string("in field name")
        self._expected = _Expected.COLON
        return Token.FIELD_NAME

    def _value(self, character: str) -> Token:
        if character == '"':
            self.text = self._string("in VALUE_STRING")
            self._after_value()
            return Token.STRING
        if character in "{[":
            self._containers.append(_Container(character == "{", self._position))
            self._position += 1
            self._expected = _Expected.FIRST
            self.text = character
            return Token.START_OBJECT if character == "{" else Token.START_ARRAY
        if character == "-" or character in "0123456789":
            return self._number()
        return self._literal(character)

    def _literal(self, character: str) -> Token:
        if character in ("_", "$") or character.isalpha():
            end = self._position + 1
            while end < len(self._document) and _is_identifier_part(self._document[end]):
                end += 1
            word = self._document[self._position : end]
            if word in ("NaN", "Infinity"):
                raise self._non_standard(word, end)
            if word not in _LITERALS:
                raise self.error(f"Unrecognized token '{word}': was expecting {_VALUES}")
            self._position = end
            self._after_value()
            self.text = word
            return _LITERALS[word]
        if character in "}]" and not self._containers:
            raise self._wrong_close(character, None)
        if character in "}],":
            raise self._unexpected(character, "expected a value")
        if character == "/":
            raise self._unexpected(
                character,
                "maybe a (non-standard) comment? (not recognized as one since Feature "
                "'ALLOW_COMMENTS' not enabled for parser)",
            )
        if character == "+":
            raise self.error(
                "Unexpected character ('+' (code 43)) in numeric value: JSON spec does not allow "
                "numbers to have plus signs: enable "
                "`JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow",
                self._position + 1,
            )
        raise self._unexpected(character, f"expected a valid value {_VALUES}")

    def _number(self) -> Token:
        start = self._position
        found = _NUMBER.match(self._document, start)
        if found is None:
            raise self._bad_minus(start)
        end = found.end()
        following = self._document[end : end + 1]
        self.text = found.group()
        if self.text in ("0", "-0") and following.isdigit():
            raise self.error("Invalid numeric value: Leading zeroes not allowed", end)
        if following == "." and found[1] is None and found[2] is None:
            raise self._bad_number(end + 1, "Decimal point not followed by a digit")
        if following and following in "eE" and found[2] is None:
            after_sign = end + 1 + (self._document[end + 1 : end + 2] in ("+", "-"))
            raise self._bad_number(after_sign, "Exponent indicator not followed by a digit")
        if not self._containers and following and following not in " \t\n\r":
            raise self._unexpected(following, "Expected space separating root-level values", end)
        self._position = end
        self._after_value()
        return Token.INTEGER if found[1] is None and found[2] is None else Token.FLOAT

    def _bad_minus(self, start: int) -> BodyError:
        if self._document.startswith("-Infinity", start):
            return self._non_standard("-Infinity", start + len("-Infinity"))
        return self._bad_number(
            start + 1, "expected digit (0-9) to follow minus sign, for valid numeric value"
        )

    def _bad_number(self, position: int, reason: str) -> BodyError:
        character = self._document[position : position + 1]
        if not character:
            return self.error("Unexpected end-of-input in numeric value", position)
        return self.error(
            f"Unexpected character ({_described(character)}) in numeric value: {reason}", position
        )

    def _non_standard(self, word: str, position: int) -> BodyError:
        return self.error(
            f"Non-standard token '{word}': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` "
            "to allow",
            position,
        )

    def _unexpected(self, character: str, reason: str, position: int | None = None) -> BodyError:
        return self.error(f"Unexpected character ({_described(character)}): {reason}", position)

    def _string(self, place: str) -> str:
        plain = _PLAIN_STRING.match(self._document, self._position)
        if plain:
            self._position = plain.end()
            return plain[1]
        parts: list[str] = []
        position = self._position + 1
        while True:
            chunk = _STRING_CHUNK.match(self._document, position)
            if chunk:
                parts.append(chunk.group())
                position = chunk.end()
            character = self._document[position : position + 1]
            if not character:
                raise self.error(f"Unexpected end-of-input {place}", position)
            if character == '"':
                self._position = position + 1
                return _joined_surrogates("".join(parts))
            if character != "\\":
                raise self.error(
                    f"Illegal unquoted character ({_described(character)}): has to be escaped "
                    "using backslash to be included in string value",
                    position + 1,
                )
            text, position = self._escape(position + 1, place)
            parts.append(text)

    def _escape(self, position: int, place: str) -> tuple[str, int]:
        character = self._document[position : position + 1]
        if not character:
            raise self.error(f"Unexpected end-of-input {place}", position)
        if character in _ESCAPES:
            return _ESCAPES[character], position + 1
        if character != "u":
            raise self.error(f"Unrecognized character escape {_described(character)}", position + 1)
        for offset in range(1, 5):
            digit = self._document[position + offset : position + offset + 1]
            if not digit:
                raise self.error(f"Unexpected end-of-input {place}", position + offset)
            if digit not in _HEX:
                raise self.error(
                    f"Unexpected character ({_described(digit)}): expected a hex-digit for "
                    "character escape sequence",
                    position + offset + 1,
                )
        return chr(int(self._document[position + 1 : position + 5], 16)), position + 5


def _described(character: str) -> str:
    code = ord(character)
    if code < 32:
        return f"(CTRL-CHAR, code {code})"
    return f"'{character}' (code {code}{f' / 0x{code:x}' if code > 255 else ''})"


def _is_identifier_part(character: str) -> bool:
    return character.isalnum() or character in "_$"


def _joined_surrogates(text: str) -> str:
    """Make one character of each escaped pair; a lone half stays."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _decoded(body: bytes) -> str:
    try:
        return body.decode(json.detect_encoding(body))
    except UnicodeDecodeError as exc:
        place = "start" if exc.reason == "invalid start byte" else "middle"
        at = exc.start if place == "start" else exc.end
        value = exc.object[at] if at < len(exc.object) else 0
        raise BodyError(
            f"Invalid UTF-8 {place} byte 0x{value:x}\n at [{_SOURCE}; byte offset: {at}]"
        ) from exc
