"""Checks of single configuration values.

Corresponds to ``ConfigDef.Validator`` and its implementations in Kafka (``ValidList`` as of
KIP-1161); error texts are Kafka's. The text form (``str``) of a validator describes the valid
values in generated documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pyconnect_api.config_types import invalid_value, to_text
from pyconnect_api.errors import ConfigException


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
    """Return a check that a list is set and repeats no alias; ``kind`` describes it."""

    def check(name: str, value: object) -> None:
        assert isinstance(value, Iterable)
        aliases = list(value)
        if len(set(aliases)) < len(aliases):
            raise invalid_value(name, aliases, "Duplicate alias provided.")

    return CompositeValidator.of(NonNullValidator(), LambdaValidator(check, f"unique {kind}"))
