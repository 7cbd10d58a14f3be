"""Types of configuration values, their text forms, and checks of single values.

Corresponds to ``ConfigDef.Type``, ``parseType``, ``convertToString``, ``Password`` and the
implementations of ``ConfigDef.Validator`` in Kafka (``ValidList`` as of KIP-1161); error texts are
Kafka's. This module imports no class by its name: the given resolver decides the meaning of a CLASS
value. The text form (``str``) of a validator describes the valid values in generated documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias, assert_never, runtime_checkable

from pyconnect_api.errors import ConfigException
from pyconnect_api.java_text import double_text

HIDDEN = "[hidden]"
"""The text in place of a secret."""

_BLANKS = "".join(map(chr, range(0x21)))
_COMMA_WITH_WHITESPACE = re.compile(r"\s*,\s*", re.ASCII)
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_FLOAT = re.compile(
    r"([+-]?)(NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)


class ConfigType(Enum):
    """The type of a parsed value.

    BOOLEAN bool, STRING str, INT, SHORT and LONG int of 32, 16 and 64 bits, DOUBLE float, LIST
    list[str], CLASS the result of the resolver, PASSWORD `Password`.
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
"""Turns a class name or alias into the value of a CLASS setting.

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
    name: str, value: object, config_type: ConfigType, resolve_class: ClassResolver | None = None
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

    ``config_type`` is None for a value whose key has no definition.
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
        # int() alone would also accept underscores and digits of other scripts.
        found = _INTEGER.fullmatch(text)
        # Without leading zeros: int() refuses texts of more than 4,300 digits.
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


@runtime_checkable
class Validator(Protocol):
    """Accepts or refuses a parsed value."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Raise ConfigException when ``value`` (None when unset or unparsable) is not valid."""
        ...


@dataclass(frozen=True, slots=True)
class Range:
    """A number within bounds, which are themselves valid; None means unbounded."""

    minimum: int | float | None = None
    maximum: int | float | None = None

    @classmethod
    def at_least(cls, minimum: float) -> Range:
        """Accept numbers from ``minimum`` on."""
        return cls(minimum, None)

    @classmethod
    def between(cls, minimum: float, maximum: float) -> Range:
        """Accept numbers from ``minimum`` to ``maximum``."""
        return cls(minimum, maximum)

    def ensure_valid(self, name: str, value: object) -> None:
        if value is None:
            raise invalid_value(name, None, "Value must be non-null")
        assert isinstance(value, (int, float))
        if self.minimum is not None and value < self.minimum:
            raise invalid_value(name, value, f"Value must be at least {to_text(self.minimum)}")
        if self.maximum is not None and value > self.maximum:
            raise invalid_value(name, value, f"Value must be no more than {to_text(self.maximum)}")

    def __str__(self) -> str:
        bounds = [
            *([] if self.minimum is None else [to_text(self.minimum)]),
            "...",
            *([] if self.maximum is None else [to_text(self.maximum)]),
        ]
        return f"[{','.join(bounds)}]"


@dataclass(frozen=True, slots=True)
class ValidString:
    """One of the given texts."""

    valid: tuple[str, ...]

    @classmethod
    def one_of(cls, *valid: str) -> ValidString:
        """Accept exactly these texts (Kafka: ``ValidString.in``)."""
        return cls(valid)

    def ensure_valid(self, name: str, value: object) -> None:
        if value not in self.valid:
            raise invalid_value(name, value, f"String must be one of: {', '.join(self.valid)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.valid)}]"


@dataclass(frozen=True, slots=True)
class CaseInsensitiveValidString:
    """One of the given texts, in any case; messages name them in upper case."""

    valid: tuple[str, ...]

    @classmethod
    def one_of(cls, *valid: str) -> CaseInsensitiveValidString:
        """Accept these texts in any case."""
        return cls(tuple(text.upper() for text in valid))

    def ensure_valid(self, name: str, value: object) -> None:
        if not isinstance(value, str) or value.upper() not in self.valid:
            options = ", ".join(self.valid)
            raise invalid_value(name, value, f"String must be one of (case insensitive): {options}")

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.valid)}]"


@dataclass(frozen=True, slots=True)
class ValidList:
    """A list without repeated or empty entries, optionally only of the given texts."""

    valid: tuple[str, ...] = ()
    allow_empty: bool = True
    allow_null: bool = False

    @classmethod
    def one_of(cls, *valid: str, allow_empty: bool = True) -> ValidList:
        """Accept lists of these texts."""
        if not valid and not allow_empty:
            raise ValueError(
                "At least one valid string must be provided when empty values are not allowed"
            )
        return cls(valid, allow_empty)

    @classmethod
    def any_non_duplicate_values(cls, *, allow_empty: bool, allow_null: bool) -> ValidList:
        """Accept lists of any texts, each once."""
        return cls((), allow_empty, allow_null)

    def ensure_valid(self, name: str, value: object) -> None:
        if value is None:
            if self.allow_null:
                return
            raise ConfigException(f"Configuration '{name}' values must not be null.")
        assert isinstance(value, Sequence)
        if not value and not self.allow_empty:
            options = f"[{', '.join(self.valid)}]" if self.valid else "any non-empty value"
            raise ConfigException(
                f"Configuration '{name}' must not be empty. Valid values include: {options}"
            )
        if len(set(value)) != len(value):
            raise ConfigException(f"Configuration '{name}' values must not be duplicated.")
        for item in value:
            if item == "":
                raise ConfigException(f"Configuration '{name}' values must not be empty.")
            if self.valid:
                ValidString(self.valid).ensure_valid(name, item)

    def __str__(self) -> str:
        return f"[{', '.join(self.valid)}]" if self.valid else ""


@dataclass(frozen=True, slots=True)
class ListSize:
    """A list of at most ``maximum`` entries."""

    maximum: int

    @classmethod
    def at_most(cls, maximum: int) -> ListSize:
        """Accept lists of up to ``maximum`` entries."""
        return cls(maximum)

    def ensure_valid(self, name: str, value: object) -> None:
        assert isinstance(value, Sequence)
        if len(value) > self.maximum:
            raise invalid_value(name, value, f"exceeds maximum list size of [{self.maximum}].")

    def __str__(self) -> str:
        return f"List containing maximum of {self.maximum} elements"


@dataclass(frozen=True, slots=True)
class NonNullValidator:
    """Any value but None."""

    def ensure_valid(self, name: str, value: object) -> None:
        if value is None:
            raise invalid_value(name, None, "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


@dataclass(frozen=True, slots=True)
class NonEmptyString:
    """None, or a text of at least one character."""

    def ensure_valid(self, name: str, value: object) -> None:
        if value == "":
            raise invalid_value(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


@dataclass(frozen=True, slots=True)
class NonEmptyStringWithoutControlChars:
    """None, or a text without ISO control characters (U+0000-001F, U+007F-009F)."""

    def ensure_valid(self, name: str, value: object) -> None:
        if value is None:
            return
        assert isinstance(value, str)
        if not value:
            raise invalid_value(name, value, "String may not be empty")
        found = [ord(char) for char in value if ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F]
        if found:
            codes = ", ".join(map(str, found))
            raise invalid_value(
                name,
                value,
                "String may not contain control sequences "
                f"but had the following ASCII chars: {codes}",
            )

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


@dataclass(frozen=True, slots=True)
class LambdaValidator:
    """A check given as a function ``(name, value)`` that raises, with its description."""

    check: Callable[[str, object], object] = field(repr=False)
    description: str

    def ensure_valid(self, name: str, value: object) -> None:
        self.check(name, value)

    def __str__(self) -> str:
        return self.description


@dataclass(frozen=True, slots=True)
class CompositeValidator:
    """Several checks in order; the first that fails is reported."""

    validators: tuple[Validator, ...]

    @classmethod
    def of(cls, *validators: Validator) -> CompositeValidator:
        """Combine checks."""
        return cls(validators)

    def ensure_valid(self, name: str, value: object) -> None:
        for validator in self.validators:
            validator.ensure_valid(name, value)

    def __str__(self) -> str:
        return ", ".join(map(str, self.validators))


def or_none(validator: Validator) -> LambdaValidator:
    """Return ``validator``, but accepting None."""

    def check(name: str, value: object) -> None:
        if value is not None:
            validator.ensure_valid(name, value)

    return LambdaValidator(check, str(validator))


def unique(kind: str) -> CompositeValidator:
    """Return a check that a list is set and has no alias twice; ``kind`` describes it."""

    def check(name: str, value: object) -> None:
        assert isinstance(value, Iterable)
        aliases = list(value)
        if len(set(aliases)) < len(aliases):
            raise invalid_value(name, aliases, "Duplicate alias provided.")

    return CompositeValidator.of(NonNullValidator(), LambdaValidator(check, f"unique {kind}"))
