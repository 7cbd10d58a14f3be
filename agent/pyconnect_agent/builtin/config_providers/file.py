"""Values from Java properties files: ``${file:/path/to/file.properties:key}``.

Layer: builtin. Corresponds to ``FileConfigProvider`` of Kafka (KIP-297).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from pyconnect_agent.builtin.config_providers.allowed_paths import (
    ALLOWED_PATHS,
    NOT_ALLOWED,
    AllowedPaths,
)
from pyconnect_agent.files.config_file import load_properties
from pyconnect_api.config_provider import ConfigData, ConfigProvider
from pyconnect_api.errors import ConfigException

_log = logging.getLogger(__name__)


class FileConfigProvider(ConfigProvider):
    """Reads the file again for every request, so a change counts at the next resolution."""

    def __init__(self) -> None:
        self._allowed = AllowedPaths(None)

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take ``allowed.paths``."""
        self._allowed = AllowedPaths(configs.get(ALLOWED_PATHS))

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return properties of the file; nothing when it is not an allowed one.

        Raises ConfigException when the file cannot be read.
        """
        if not path:
            return ConfigData(data={})
        file = self._allowed.allowed(path)
        if file is None:
            _log.warning("The path %s is not read: %s", path, NOT_ALLOWED)
            return ConfigData(data={})
        try:
            values = load_properties(file)
        except ConfigException as error:
            raise ConfigException(f"Could not read properties from file {path}") from error
        if keys is not None:
            values = {key: value for key, value in values.items() if key in keys}
        return ConfigData(data=values)
