"""Secrets of connectors' configurations, which may be references to config providers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

PROVIDERS = {
    "file": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "directory": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}
"""The usual names of providers; their definitions are in workers' files."""
_REFERENCE = re.compile(r"\$\{([^:}]+):")


def with_providers(secrets: Mapping[str, str | None]) -> Mapping[str, str]:
    """Return the secrets that are set, with definitions of the config providers they refer to.

    Providers have their usual names, because only workers know the definitions.
    """
    found = {name: value for name, value in secrets.items() if value}
    used = {name for value in found.values() for name in _REFERENCE.findall(value)}
    named = sorted(used & PROVIDERS.keys())
    if named:
        found["config.providers"] = ",".join(named)
        found |= {f"config.providers.{name}.class": PROVIDERS[name] for name in named}
    return found
