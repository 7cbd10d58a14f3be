"""Configurations of workers and connectors: their keys, checks and values. Pure.

This module selects the properties under a prefix, as Kafka's `AbstractConfig.originalsWithPrefix`.
"""

from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")


def below(properties: Mapping[str, Value], prefix: str) -> dict[str, Value]:
    """Return the properties that start with ``prefix``, with the prefix removed."""
    return {
        name.removeprefix(prefix): value
        for name, value in properties.items()
        if name.startswith(prefix)
    }


def aliases(properties: Mapping[str, str | None], key: str) -> list[str]:
    """Return the aliases in a list of plugins, such as `transforms`; settings are keyed by them."""
    return [alias.strip() for alias in (properties.get(key) or "").split(",") if alias.strip()]
