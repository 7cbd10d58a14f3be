"""What a child knows of its worker: configuration, plugins, config providers.

Layer: tasks. Made once per process, from the job.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyconnect_agent.core.config.variables import ResolvedConfig, mask, resolve
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.plugin_catalog import (
    Catalog,
    PluginDesc,
    PluginKind,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)
from pyconnect_agent.plugins.class_source import CatalogPluginSource
from pyconnect_agent.plugins.discovery import installed_catalog
from pyconnect_agent.plugins.loading import instantiate
from pyconnect_agent.supervise.channel import StringMap
from pyconnect_agent.tasks.transform_chain import TransformationStage
from pyconnect_api import (
    ConfigData,
    ConfigException,
    ConfigProvider,
    ConnectException,
    Connector,
    Converter,
    HeaderConverter,
    Predicate,
    Transformation,
)

LOG = logging.getLogger(__name__)

CONVERTER_TYPE = "converter.type"
VERSION_OPTION = "plugin.version"
"""KIP-891: a version or version range, beside the class it is about."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A config with its variables replaced; `values` has no None."""

    raw: StringMap
    resolution: ResolvedConfig = field(repr=False)

    @property
    def values(self) -> dict[str, str]:
        return {k: v for k, v in self.resolution.values.items() if v is not None}


class WorkerView:
    """`plugins` empty: those of the distribution and of installed entry points."""

    def __init__(self, properties: StringMap, plugins: Collection[PluginDesc] = ()) -> None:
        given = {name: value for name, value in properties.items() if value is not None}
        kind = DistributedConfig if "config.storage.topic" in given else WorkerConfig
        self.config = kind.parse(given)
        catalog = Catalog(tuple(plugins)) if plugins else installed_catalog()
        self.plugins = CatalogPluginSource(catalog)
        self._providers: dict[str, ConfigProvider] = {}
        self._secrets: dict[str, str] = {}

    # --- variables ---

    def resolve(self, config: StringMap) -> Resolved:
        """Replace `${provider:path:key}`. Raises what a provider raises."""
        resolution = resolve(config, self._look_up)
        # A new one: other threads mask with the one before.
        self._secrets = {**self._secrets, **resolution.secrets}
        return Resolved(config, resolution)

    def mask(self, text: str) -> str:
        """Put back to its reference what providers have supplied so far."""
        return mask(text, self._secrets)

    def _look_up(self, name: str, path: str, keys: frozenset[str]) -> ConfigData | None:
        if name not in self.config.config_providers:
            return None
        provider = self._providers.get(name)
        if provider is None:
            provider = self._providers[name] = self._provider(name)
        return provider.get(path, keys)

    def _provider(self, name: str) -> ConfigProvider:
        prefix = f"config.providers.{name}."
        class_name = self.config.originals.get(f"{prefix}class")
        if not class_name:
            raise ConfigException(f'Missing required configuration "{prefix}class"')
        provider: ConfigProvider = self._new(
            ConfigProvider, class_name, PluginKind.CONFIG_PROVIDER, f"{prefix}class"
        )
        provider.configure(self.config.with_prefix(f"{prefix}param."))
        return provider

    # --- plugins ---

    def connector(self, config: Mapping[str, str]) -> Connector:
        """Construct the connector of a config. Raises ConnectException."""
        name = config.get("connector.class", "")
        try:
            found = self.plugins.connector(name, config.get("connector.plugin.version"))
        except PluginNotFoundError as exc:
            raise ConnectException(str(exc)) from exc
        connector = instantiate(found.python_class)
        assert isinstance(connector, Connector)
        return connector

    def converter(self, role: str, config: Mapping[str, str]) -> Converter:
        """Make the `key` or `value` converter: the connector's if it names one, else the worker's.

        Options come from whichever names the class; the two are not merged.
        """
        key = f"{role}.converter"
        class_name, options = self._converter_choice(
            key, config, getattr(self.config, f"{role}_converter")
        )
        converter: Converter = self._new(
            Converter, class_name, PluginKind.CONVERTER, key, options.get(VERSION_OPTION)
        )
        converter.configure({**options, CONVERTER_TYPE: role}, role == "key")
        return converter

    def header_converter(self, config: Mapping[str, str]) -> HeaderConverter:
        key = "header.converter"
        class_name, options = self._converter_choice(key, config, self.config.header_converter)
        converter: HeaderConverter = self._new(
            HeaderConverter,
            class_name,
            PluginKind.HEADER_CONVERTER,
            key,
            options.get(VERSION_OPTION),
        )
        converter.configure({**options, CONVERTER_TYPE: "header"})
        return converter

    def transformations(self, config: Mapping[str, str]) -> list[TransformationStage]:
        """Make and configure the chain of a connector."""
        stages: list[TransformationStage] = []
        for alias in _aliases(config, "transforms"):
            options = _below(config, f"transforms.{alias}.")
            predicate_alias = options.pop("predicate", None)
            negate = options.pop("negate", "false").strip().lower() == "true"
            transformation: Transformation[Any] = self._new(
                Transformation,
                options.pop("type", ""),
                PluginKind.TRANSFORMATION,
                f"transforms.{alias}.type",
                options.pop(VERSION_OPTION, None),
            )
            transformation.configure(options)
            stages.append(
                TransformationStage(
                    alias=alias,
                    transformation=transformation,
                    predicate=self._predicate(config, predicate_alias),
                    predicate_alias=predicate_alias,
                    negate=negate,
                )
            )
        return stages

    def _predicate(self, config: Mapping[str, str], alias: str | None) -> Predicate[Any] | None:
        if alias is None:
            return None
        options = _below(config, f"predicates.{alias}.")
        predicate: Predicate[Any] = self._new(
            Predicate,
            options.pop("type", ""),
            PluginKind.PREDICATE,
            f"predicates.{alias}.type",
            options.pop(VERSION_OPTION, None),
        )
        predicate.configure(options)
        return predicate

    def _converter_choice(
        self, key: str, config: Mapping[str, str], workers: str
    ) -> tuple[str, dict[str, str]]:
        if key in config:
            return config[key], _below(config, f"{key}.")
        return workers, self.config.with_prefix(f"{key}.")

    def _new(
        self,
        base: Any,  # abstract classes
        name: str,
        kind: PluginKind,
        key: str,
        version_range: str | None = None,
    ) -> Any:
        if not name:
            raise ConfigException(
                f'Missing required configuration "{key}" which has no default value.'
            )
        try:
            found = self.plugins.plugin(name, kind, version_range)
        except PluginVersionNotFoundError as exc:
            raise ConfigException(str(exc)) from exc
        except PluginNotFoundError as exc:
            raise ConfigException(
                f"Invalid value {name} for configuration {key}: Class {name} could not be found."
            ) from exc
        if not issubclass(found.python_class, base):
            raise ConfigException(
                f"Invalid value {name} for configuration {key}: "
                f"Class {name} does not implement the {base.__name__} interface"
            )
        return instantiate(found.python_class)


def _below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in config.items() if k.startswith(prefix)}


def _aliases(config: Mapping[str, str], key: str) -> list[str]:
    return [alias.strip() for alias in config.get(key, "").split(",") if alias.strip()]
