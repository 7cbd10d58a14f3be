"""One configuration key, and what validation says about it.

Corresponds to Kafka's ``ConfigKey``, ``ConfigValue`` and ``Config``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

from pyconnect_api.config_types import ConfigType, convert_to_string, parse_type
from pyconnect_api.config_validators import Validator


class _NoDefault(Enum):
    NO_DEFAULT = "no default"


NO_DEFAULT: Final = _NoDefault.NO_DEFAULT
"""The default of a key that must be set."""


KeyInfo: TypeAlias = dict[str, bool | int | str | list[str] | None]
"""A key definition of the REST API."""


class Importance(Enum):
    """The importance of a key for users."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    """The width of a key's field in a user interface."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Recommender(Protocol):
    """Suggests values of a key, given the other parsed values."""

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        """Return the values that make sense; may raise ConfigException."""
        ...

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        """Return whether the key matters at all with these values."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key. ``default`` is parsed; `NO_DEFAULT` makes the key required.

    ``order_in_group`` is -1 and ``group`` None for keys that belong to no group. The display name
    is the name unless another is given; keys of Java plugins may have neither that nor
    documentation. ``internal`` keys work but are left out of documentation.
    """

    name: str
    type: ConfigType
    default: object = NO_DEFAULT
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    documentation: str | None = ""
    group: str | None = None
    order_in_group: int = -1
    width: Width = Width.NONE
    display_name: str | None = ""
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None
    internal: bool = False

    def __post_init__(self) -> None:
        """Parse and check the default; complete the display name."""
        if self.display_name == "":
            object.__setattr__(self, "display_name", self.name)
        if self.has_default:
            default = parse_type(self.name, self.default, self.type)
            object.__setattr__(self, "default", default)
            if self.validator is not None and self.type is not ConfigType.CLASS:
                self.validator.ensure_valid(self.name, default)

    @property
    def has_default(self) -> bool:
        """Whether the key may be left out."""
        return self.default is not NO_DEFAULT

    def to_json(self, prefix: str = "") -> KeyInfo:
        """Return the key definition of the REST API; ``prefix`` is put before the name."""
        return {
            "name": prefix + self.name,
            "type": self.type.value,
            "required": not self.has_default,
            "default_value": (
                convert_to_string(self.default, self.type) if self.has_default else None
            ),
            "importance": self.importance.value,
            "documentation": self.documentation,
            "group": self.group,
            "order_in_group": self.order_in_group,
            "width": self.width.value,
            "display_name": self.display_name,
            "dependents": list(self.dependents),
        }


@dataclass(slots=True)
class ConfigValue:
    """The result of validation for one key.

    Mutable on purpose: a connector's ``validate`` adds its own messages to the values it got from
    `ConfigDef.validate`.
    """

    name: str
    value: object = None
    recommended_values: list[object] = field(default_factory=list)
    error_messages: list[str] = field(default_factory=list)
    visible: bool = True

    def add_error_message(self, message: str) -> None:
        """Record one more error."""
        self.error_messages.append(message)


@dataclass(frozen=True, slots=True)
class Config:
    """The result of a connector's ``validate``."""

    config_values: Sequence[ConfigValue]
