"""Kafka's config providers: directories of secrets, properties files, environment variables.

Corresponds to ``DirectoryConfigProvider`` (KIP-421), ``FileConfigProvider`` (KIP-297),
``EnvVarConfigProvider`` (KIP-887) and ``AllowedPaths`` of Kafka, except that symbolic links are
resolved before the check: a link out of an allowed directory does not get around it.
"""

import logging
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from pyconnect_agent.core.java_text.regex import compile_java_regex
from pyconnect_agent.process.config_file import load_properties
from pyconnect_api.config_provider import ConfigData, ConfigProvider
from pyconnect_api.errors import ConfigException

_log = logging.getLogger(__name__)

ALLOWED_PATHS = "allowed.paths"
NOT_ALLOWED = "add it to config.providers.<name>.param.allowed.paths of the worker to allow it"


class AllowedPaths:
    """The allowed paths of one provider; without a list each path is allowed."""

    def __init__(self, setting: str | None) -> None:
        """Take the comma list; raise ConfigException for a path that is relative or missing."""
        self._roots: list[Path] | None = None
        if setting is not None and setting.strip():
            self._roots = []
            for item in setting.split(","):
                path = Path(item.strip())
                if not path.is_absolute():
                    raise ConfigException(f"Path {item.strip()} is not absolute")
                if not path.exists():
                    raise ConfigException(f"Path {item.strip()} does not exist")
                self._roots.append(path.resolve())

    def allowed(self, path: str) -> Path | None:
        """Return the resolved path, None if it is not an allowed one."""
        resolved = Path(path).resolve()
        if self._roots is None or any(resolved.is_relative_to(root) for root in self._roots):
            return resolved
        return None


class _FromFiles(ConfigProvider):
    """The base of providers that read allowed paths only."""

    def __init__(self) -> None:
        self._allowed = AllowedPaths(None)

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take the option ``allowed.paths``."""
        self._allowed = AllowedPaths(configs.get(ALLOWED_PATHS))


class DirectoryConfigProvider(_FromFiles):
    """``${dir:/path:file}``: the key is a file's name, the value its whole content, untrimmed."""

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the contents of the directory's regular files; nothing if it is not allowed.

        Files to which a link leads outside the allowed paths are left out. Raises ConfigException
        if a file cannot be read as UTF-8.
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


class FileConfigProvider(_FromFiles):
    """``${file:/path:key}``: reads the properties file again for every request.

    A changed file takes effect at the next resolution.
    """

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return properties of the file; nothing if the file is not allowed.

        Raises ConfigException if the file cannot be read.
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


ALLOWLIST_PATTERN = "allowlist.pattern"


class EnvVarConfigProvider(ConfigProvider):
    """``${env:NAME}``: the environment is that of the moment when the provider was configured."""

    def __init__(self) -> None:
        self._values: Mapping[str, str] = dict(os.environ)

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take ``allowlist.pattern``, which matches whole names; ConfigException if broken."""
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
        """Return variables; raise ConfigException if a path is given."""
        if path:
            raise ConfigException(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'"
            )
        if keys is None:
            return ConfigData(data=dict(self._values))
        return ConfigData(data={key: self._values[key] for key in keys if key in self._values})
