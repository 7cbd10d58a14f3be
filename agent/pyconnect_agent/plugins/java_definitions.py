"""The settings of Java plugins as ConfigDefs whose validators and recommenders ask Java.

Layer: plugins. Types, defaults and texts are copied when the definition is made. A value goes to
Java as text, and Java parses it again by the type of the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyconnect_api.configdef import (
    NO_DEFAULT,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    Password,
    Width,
    to_text,
)


class Ask(Protocol):
    """Asks the Java process about one class."""

    def __call__(self, method: str, **arguments: object) -> Any:  # whatever JSON can hold
        """Return the answer. Raises the plugin's exception as a ConnectException."""
        ...


def definition_of(keys: Sequence[Mapping[str, Any]], ask: Ask) -> ConfigDef:
    """Return the definition that Java described."""
    definition = ConfigDef()
    for key in keys:
        name = str(key["name"])
        config_type = ConfigType(key["type"])
        definition.define_key(
            ConfigKey(
                name=name,
                type=config_type,
                default=NO_DEFAULT if key["required"] else key["default"],
                validator=_JavaValidator(name, ask) if key["validated"] else None,
                importance=Importance(key["importance"]),
                documentation=key["documentation"] or "",
                group=key["group"],
                order_in_group=key["order"],
                width=Width(key["width"]),
                display_name=key["display"],
                dependents=tuple(key["dependents"]),
                recommender=_JavaRecommender(name, ask) if key["recommended"] else None,
                internal=key["internal"],
            )
        )
    return definition


@dataclass(frozen=True, slots=True)
class _JavaValidator:
    """`key`: the name in Java; an embedded key is checked by this name too."""

    key: str
    ask: Ask

    def ensure_valid(self, name: str, value: object) -> None:
        """Raise ConfigException with Java's text."""
        del name
        self.ask("check", key=self.key, value=_plain_text(value))

    def __str__(self) -> str:
        return "a validator of the plugin"


@dataclass(frozen=True, slots=True)
class _JavaRecommender:
    key: str
    ask: Ask

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        del name
        values = self._answer(parsed)["values"]
        assert isinstance(values, list)
        return values

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        del name
        return bool(self._answer(parsed)["visible"])

    def _answer(self, parsed: Mapping[str, object]) -> Mapping[str, object]:
        texts = {name: _plain_text(value) for name, value in parsed.items()}
        answer: Mapping[str, object] = self.ask("recommend", key=self.key, parsed=texts)
        return answer


def _plain_text(value: object) -> str | None:
    """Return a text that Java parses to the same value, also for a secret."""
    if value is None:
        return None
    if isinstance(value, Password):
        return value.value
    if isinstance(value, list):
        return ",".join(map(to_text, value))
    return to_text(value)
