"""Values from files of a directory, as container platforms mount secrets: ``${dir:/path:file}``.

Layer: builtin. Corresponds to ``DirectoryConfigProvider`` of Kafka (KIP-421).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from pyconnect_agent.builtin.config_providers.allowed_paths import (
    ALLOWED_PATHS,
    NOT_ALLOWED,
    AllowedPaths,
)
from pyconnect_api.config_provider import ConfigData, ConfigProvider
from pyconnect_api.errors import ConfigException

_log = logging.getLogger(__name__)


class DirectoryConfigProvider(ConfigProvider):
    """The key is a file's name, the value its whole content, untrimmed."""

    def __init__(self) -> None:
        self._allowed = AllowedPaths(None)

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take ``allowed.paths``."""
        self._allowed = AllowedPaths(configs.get(ALLOWED_PATHS))

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the contents of regular files in the directory; nothing when it is not allowed.

        A file that a link leads out of the allowed paths is left out. Raises ConfigException when
        a file cannot be read as UTF-8.
        """
        if not path:
            return ConfigData(data={})
        directory = self._allowed.allowed(path)
        if directory is None or not directory.is_dir():
            reason = NOT_ALLOWED if directory is None else "it is not a directory"
            _log.warning("The path %s is not read: %s", path, reason)
            return ConfigData(data={})
        values: dict[str, str] = {}
        for entry in sorted(directory.iterdir()):
            if keys is not None and entry.name not in keys:
                continue
            file = self._allowed.allowed(str(entry))
            if file is None or not file.is_file():
                continue
            try:
                values[entry.name] = file.read_bytes().decode()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigException(
                    f"Could not read file {entry} for property {entry.name}"
                ) from error
        return ConfigData(data=values)
