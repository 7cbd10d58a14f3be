"""The values that user interfaces offer for the keys of plugins.

Layer: core. Corresponds to ``PluginsRecommenders`` of Kafka Connect 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recommended:
    """Recommends what ``choose`` returns for the values of all keys; None hides the key."""

    choose: Callable[[Mapping[str, object]], tuple[str, ...] | None]

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> tuple[str, ...]:
        del name
        return self.choose(parsed) or ()

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        del name
        return self.choose(parsed) is not None
