"""The values that user interfaces offer for the keys of plugins.

Layer: core. Corresponds to ``PluginsRecommenders`` of Kafka Connect 4.3.1. Without ``plugins``
nothing is recommended: some callers define the keys without knowing the plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.core.config.plugin_source import PluginSource
from pyconnect_agent.core.plugins.catalog import PluginKind


@dataclass(frozen=True, slots=True)
class ClassRecommender:
    """Recommends the classes of plugins of a kind."""

    plugins: PluginSource | None
    kind: PluginKind

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> tuple[str, ...]:
        del name, parsed
        return () if self.plugins is None else self.plugins.class_names(self.kind)

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        del name, parsed
        return True


@dataclass(frozen=True, slots=True)
class FixedRecommender:
    """Recommends the same values whatever else is configured."""

    values: tuple[str, ...]

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> tuple[str, ...]:
        del name, parsed
        return self.values

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        del name, parsed
        return True


@dataclass(frozen=True, slots=True)
class VersionRecommender:
    """Recommends the versions of the class another key names; hidden when it names none."""

    plugins: PluginSource | None
    class_key: str
    kind: PluginKind

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> tuple[str, ...]:
        del name
        chosen = parsed.get(self.class_key)
        if self.plugins is None or chosen is None:
            return ()
        return self.plugins.versions(str(chosen), self.kind)

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        del name
        return parsed.get(self.class_key) is not None
