"""Parsed options of a shipped transformation or predicate, by type.

Layer: builtin. Corresponds to `SimpleConfig` of Kafka's transformations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.core.apache_release import ApachesPlugin
from pyconnect_api import ConfigDef


@dataclass(frozen=True, slots=True)
class Options:
    """The result of `ConfigDef.parse`; each option must be read by its defined type."""

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


class Shipped(ApachesPlugin):
    """Parses its options by the definition in `CONFIG_DEF`."""

    CONFIG_DEF: ConfigDef

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take the options; ConfigException for those the definition refuses."""
        self._configured(Options.parsed(self.CONFIG_DEF, configs))

    def _configured(self, options: Options) -> None:
        """Take the parsed options."""

    def config(self) -> ConfigDef:
        return self.CONFIG_DEF
