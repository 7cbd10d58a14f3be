"""Types of configuration values and their text forms.

Corresponds to ``ConfigDef.Type``, ``parseType``, ``convertToString`` and ``Password`` of Kafka;
error texts are Kafka's. Class names are never imported here: what a CLASS value means is up to the
resolver that is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, assert_never

from pyconnect_api.errors import ConfigException
from pyconnect_api.java_text import double_text

HIDDEN = "[hidden]"
"""The text that is shown instead of a secret."""

_BLANKS = "".join(map(chr, range(0x21)))
_COMMA_WITH_WHITESPACE = re.compile(r"\s*,\s*", re.ASCII)
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_FLOAT = re.compile(
    r"([+-]?)(NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)


class ConfigType(Enum):
    """The type of a parsed value.

    BOOLEAN bool, STRING str, INT, SHORT and LONG int of 32, 16 and 64 bits, DOUBLE float, LIST
    list[str], CLASS what the resolver returns, PASSWORD `Password`.
    """

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105  the name of a type


ClassResolver: TypeAlias = Callable[[str], object]
"""Turns a class name or alias into what the CLASS value is to be.

Raises LookupError when there is no such class. The text form of the result (``str``) must be the
class's name, unless it is a Python class.
"""


@dataclass(frozen=True, slots=True)
class Password:
    """A secret: shown as ``[hidden]`` wherever it is printed."""

    value: str

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN


def invalid_value(name: str, value: object, message: str) -> ConfigException:
    """Return Kafka's error for a bad value: ``Invalid value <v> for configuration <n>: …``."""
    return ConfigException(f"Invalid value {to_text(value)} for configuration {name}: {message}")


def parse_type(
    name: str,
    value: object,
    config_type: ConfigType,
    resolve_class: ClassResolver | None = None,
) -> object:
    """Return ``value`` as a value of ``config_type``; None stays None.

    Texts are trimmed. Without ``resolve_class`` a CLASS text stays the trimmed text. Raises
    ConfigException with Kafka's text when the value is of another type.
    """
    if value is None:
        return None
    text = value.strip(_BLANKS) if isinstance(value, str) else None
    match config_type:
        case ConfigType.BOOLEAN:
            return _parse_boolean(name, value, text)
        case ConfigType.STRING:
            if text is None:
                raise _wrong_kind(name, value, "a string")
            return text
        case ConfigType.PASSWORD:
            if isinstance(value, Password):
                return value
            if text is None:
                raise _wrong_kind(name, value, "a string")
            return Password(text)
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_integer(name, value, text, config_type)
        case ConfigType.DOUBLE:
            return _parse_double(name, value, text)
        case ConfigType.LIST:
            if text is not None:
                return _COMMA_WITH_WHITESPACE.split(text) if text else []
            if isinstance(value, Sequence) and not isinstance(value, bytes):
                return list(value)
            raise invalid_value(name, value, "Expected a comma separated list.")
        case ConfigType.CLASS:
            return _parse_class(name, value, text, resolve_class)
    assert_never(config_type)


def convert_to_string(value: object, config_type: ConfigType | None) -> str | None:
    """Return the text form of a parsed value as the REST API shows it; None for None.

    ``config_type`` is None for values that no definition knows.
    """
    if value is None:
        return None
    if (
        config_type is ConfigType.LIST
        and isinstance(value, Sequence)
        and not isinstance(value, str)
    ):
        return ",".join(to_text(item) for item in value)
    return to_text(value)


def to_text(value: object) -> str:
    """Return the text Kafka, written in Java, shows for a value: ``null``, ``true``, ``[a, b]``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(to_text(item) for item in value) + "]"
    return str(value)


def _parse_boolean(name: str, value: object, text: str | None) -> bool:
    if isinstance(value, bool):
        return value
    lowered = "" if text is None else text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    raise invalid_value(name, value, "Expected value to be either true or false")


_INTEGER_WIDTHS = {
    ConfigType.SHORT: (16, "a 16-bit integer (short)"),
    ConfigType.INT: (32, "a 32-bit integer"),
    ConfigType.LONG: (64, "a 64-bit integer (long)"),
}


def _parse_integer(name: str, value: object, text: str | None, config_type: ConfigType) -> int:
    bits, description = _INTEGER_WIDTHS[config_type]
    limit = 1 << (bits - 1)
    if text is not None:
        # int() alone would also take underscores and digits of other scripts.
        found = _INTEGER.fullmatch(text)
        # Without the zeros in front: it refuses texts of more than 4,300 digits.
        if found and -limit <= (number := int(found[1] + found[2])) < limit:
            return number
        raise invalid_value(name, value, f"Not a number of type {config_type.value}")
    if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
        return value
    raise _wrong_kind(name, value, description)


def _parse_double(name: str, value: object, text: str | None) -> float:
    if text is not None:
        found = _FLOAT.fullmatch(text)
        if not found:
            raise invalid_value(name, value, "Not a number of type DOUBLE")
        return float(found[1] + found[2].rstrip("fFdD"))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise _wrong_kind(name, value, "a double")


def _parse_class(
    name: str, value: object, text: str | None, resolve_class: ClassResolver | None
) -> object:
    if text is None:
        return value
    if resolve_class is None:
        return text
    try:
        return resolve_class(text)
    except LookupError as error:
        raise invalid_value(name, value, f"Class {value} could not be found.") from error


def _wrong_kind(name: str, value: object, expected: str) -> ConfigException:
    found = type(value).__name__
    return invalid_value(name, value, f"Expected value to be {expected}, but it was a {found}")
