"""Values from environment variables of the worker: ``${env:NAME}``.

Layer: builtin. Corresponds to ``EnvVarConfigProvider`` of Kafka (KIP-887).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

from pyconnect_agent.core.java_text.regex import compile_java_regex
from pyconnect_api.config_provider import ConfigData, ConfigProvider
from pyconnect_api.errors import ConfigException

ALLOWLIST_PATTERN = "allowlist.pattern"


class EnvVarConfigProvider(ConfigProvider):
    """Sees the environment as it was when the provider was configured."""

    def __init__(self) -> None:
        self._values: Mapping[str, str] = dict(os.environ)

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take ``allowlist.pattern``, which names match as a whole; ConfigException if broken."""
        text = configs.get(ALLOWLIST_PATTERN, ".*")
        try:
            pattern = compile_java_regex(text)
        except re.error as error:
            raise ConfigException(
                f"Invalid value {text} for configuration {ALLOWLIST_PATTERN}: {error}"
            ) from error
        self._values = {
            name: value for name, value in os.environ.items() if pattern.fullmatch(name)
        }

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return variables; raises ConfigException when a path is given."""
        if path:
            raise ConfigException(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'"
            )
        if keys is None:
            return ConfigData(data=dict(self._values))
        return ConfigData(data={key: self._values[key] for key in keys if key in self._values})
