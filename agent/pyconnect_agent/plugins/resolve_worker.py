"""Replaces the references in a worker's own properties, in a separate process.

Kafka's `AbstractConfig` does the same in a worker's constructor. A config provider may be
third-party code, so the worker process starts this module as a process and sends it the properties.
These pass through pipes only, because the result holds secrets.

Kafka: `VariableResolver` is `WorkerConfigTransformer`.
"""

import json
import sys
from collections.abc import Mapping
from typing import Self, TextIO

from pyconnect_agent.core.config import below
from pyconnect_agent.core.config.variables import ResolvedConfig, resolve
from pyconnect_agent.core.plugin_catalog import Catalog, PluginDesc, PluginKind, PluginNotFoundError
from pyconnect_agent.java_processes.installation import JAVA_HOME_KEY, KAFKA_HOME_KEY
from pyconnect_agent.plugins.class_source import CatalogPluginSource
from pyconnect_agent.plugins.loading import instantiate
from pyconnect_api.config_provider import ConfigData, ConfigProvider
from pyconnect_api.configdef import ConfigType, invalid_value, parse_type
from pyconnect_api.errors import ConfigException

UNRESOLVED_KEYS = frozenset({"plugin.path", JAVA_HOME_KEY, KAFKA_HOME_KEY})
"""Worker keys that are read before the providers exist."""


class VariableResolver:
    """The providers named by a worker's properties; close it after use."""

    def __init__(self, worker_properties: Mapping[str, str], catalog: Catalog) -> None:
        """Load and configure the providers of ``config.providers``.

        Raises ConfigException for a provider without a known class, and errors of ``configure``.
        """
        names = parse_type(
            "config.providers", worker_properties.get("config.providers"), ConfigType.LIST
        )
        assert names is None or isinstance(names, list)
        self._providers: dict[str, ConfigProvider] = {}
        for name in names or ():
            key = f"config.providers.{name}.class"
            class_name = worker_properties.get(key)
            if class_name is None:
                raise ConfigException(
                    f'Missing required configuration "{key}" which has no default value.'
                )
            try:
                plugins = CatalogPluginSource(catalog)
                found = plugins.plugin(class_name.strip(), PluginKind.CONFIG_PROVIDER)
            except PluginNotFoundError as error:
                reason = f"Class {class_name} could not be found."
                raise invalid_value(key, class_name, reason) from error
            if not issubclass(found.python_class, ConfigProvider):
                reason = f"Class {class_name} does not implement the ConfigProvider interface"
                raise invalid_value(key, class_name, reason)
            provider = instantiate(found.python_class)
            assert isinstance(provider, ConfigProvider)
            self._providers[name] = provider
            provider.configure(below(worker_properties, f"config.providers.{name}.param."))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def resolve(self, config: Mapping[str, str | None]) -> ResolvedConfig:
        """Return ``config`` with its references replaced; raises errors of providers."""

        def look_up(name: str, path: str, keys: frozenset[str]) -> ConfigData | None:
            return self._providers[name].get(path, keys) if name in self._providers else None

        return resolve(config, look_up)

    def resolve_worker_properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return a worker's properties with references replaced, except in keys for plugins."""
        resolved = self.resolve(
            {name: value for name, value in properties.items() if name not in UNRESOLVED_KEYS}
        )
        replaced = {name: resolved.values[name] or "" for name in resolved.secret_keys}
        return {**properties, **replaced}

    def close(self) -> None:
        for provider in self._providers.values():
            provider.close()


MODULE = "pyconnect_agent.plugins.resolve_worker"
"""This module's name; `__name__` differs in the process that runs it."""


def to_input(properties: Mapping[str, str], catalog: Catalog) -> str:
    """Return the input of the process: unresolved properties, and known plugins."""
    plugins = [plugin.to_json() for plugin in catalog.plugins]
    return json.dumps({"properties": dict(properties), "plugins": plugins})


def main(given: TextIO, result: TextIO) -> int:
    """Write the resolved properties as a last line of JSON; return 2 after a failure."""
    data = json.load(given)
    catalog = Catalog(tuple(PluginDesc.from_json(item) for item in data["plugins"]))
    try:
        with VariableResolver(data["properties"], catalog) as resolver:
            resolved = resolver.resolve_worker_properties(data["properties"])
    # A provider may raise any exception; the operator sees only its text.
    except Exception as error:  # noqa: BLE001  plugin code
        result.write(f"\n{' '.join(str(error).split()) or type(error).__name__}\n")
        return 2
    result.write("\n" + json.dumps(resolved) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin, sys.stdout))
