"""Parsed options of a shipped transformation or predicate, by type.

Layer: builtin. Corresponds to `SimpleConfig` of Kafka's transformations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_api import ConfigDef


@dataclass(frozen=True, slots=True)
class Options:
    """What `ConfigDef.parse` returned; asking for another type than defined is a mistake."""

    values: Mapping[str, object]

    @classmethod
    def parsed(cls, definition: ConfigDef, configs: Mapping[str, object]) -> Options:
        """Parse `configs`; raises ConfigException with Kafka's texts."""
        return cls(definition.parse(configs))

    def text(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str)
        return value

    def optional_text(self, name: str) -> str | None:
        value = self.values[name]
        assert value is None or isinstance(value, str)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values[name]
        assert isinstance(value, list)
        return tuple(value)

    def flag(self, name: str) -> bool:
        value = self.values[name]
        assert isinstance(value, bool)
        return value

    def optional_integer(self, name: str) -> int | None:
        value = self.values[name]
        assert value is None or isinstance(value, int)
        return value
