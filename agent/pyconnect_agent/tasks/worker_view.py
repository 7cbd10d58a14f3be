"""The view that a child has of its worker: configuration, plugins, config providers.

The view is made once per process, from the job; so are the resolved configs that a task starts
with.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Self

from pyconnect_agent.channel.requests import RunTaskJob, StringMap
from pyconnect_agent.core.clients.configs import ClientConfig
from pyconnect_agent.core.clients.librdkafka import LibrdkafkaConfig
from pyconnect_agent.core.config import aliases
from pyconnect_agent.core.config.agent_keys import HEAP, OPTIONS
from pyconnect_agent.core.config.effective import literal_secrets
from pyconnect_agent.core.config.plugin_source import PluginSource
from pyconnect_agent.core.config.variables import ResolvedConfig, mask, resolve
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.plugin_catalog import (
    ApachesPlugin,
    Catalog,
    PluginDesc,
    PluginKind,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)
from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_agent.java_processes.launch import JavaInstallation, java_options
from pyconnect_agent.java_processes.questions import JavaQuestions
from pyconnect_agent.plugins.class_source import CatalogPluginSource, JavaPluginSource
from pyconnect_agent.plugins.java_classes import (
    is_java_connector,
    is_other_side,
    java_host_class,
    java_host_jars,
    plugin_locations,
)
from pyconnect_agent.plugins.loading import instantiate
from pyconnect_agent.plugins.scan import installed_catalog
from pyconnect_api import (
    ConfigData,
    ConfigException,
    ConfigProvider,
    ConfigValue,
    ConnectException,
    Connector,
)

LOG = logging.getLogger(__name__)


@contextmanager
def plugin_named(name: str, key: str) -> Iterator[None]:
    """Raise ConfigException, with Kafka's texts, when the block does not find a config's plugin.

    The name at `key` may be empty, its class may not be found, or may not be there in a version.
    """
    if not name:
        raise ConfigException(f'Missing required configuration "{key}" which has no default value.')
    try:
        yield
    except PluginVersionNotFoundError as exc:
        raise ConfigException(str(exc)) from exc
    except PluginNotFoundError as exc:
        raise ConfigException(
            f"Invalid value {name} for configuration {key}: Class {name} could not be found."
        ) from exc


@dataclass(frozen=True, slots=True)
class PlainConfig:
    """A config with its variables replaced; `values` has no None."""

    resolution: ResolvedConfig = field(repr=False)

    @property
    def values(self) -> dict[str, str]:
        return {k: v for k, v in self.resolution.values.items() if v is not None}


class KeptQuestions:
    """A Java process that is kept for the questions of several validations.

    All of them have the same connector's location and the same options.
    """

    def __init__(self) -> None:
        self.questions: JavaQuestions | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.questions is not None:
            self.questions.close()

    def forget(self) -> bool:
        """Have the process forget the last config; return whether it can be used again."""
        return self.questions is not None and self.questions.forget()


class WorkerView:
    """The worker's configuration and plugins; an empty `plugins` means the installed plugins.

    These are the plugins of the distribution and of installed entry points.
    """

    def __init__(
        self,
        properties: StringMap,
        plugins: Collection[PluginDesc] = (),
        kept: KeptQuestions | None = None,
    ) -> None:
        given = {name: value for name, value in properties.items() if value is not None}
        kind = DistributedConfig if "config.storage.topic" in given else WorkerConfig
        self.config = kind.parse(given)
        self.catalog = (
            Catalog(tuple(plugins))
            if plugins
            else installed_catalog(self.config.agent_connect_release)
        )
        self.plugins = CatalogPluginSource(self.catalog)
        self._kept = kept
        self._java_questions: JavaQuestions | None = None
        self._providers: dict[str, ConfigProvider] = {}
        self._secrets: dict[str, str] = {}

    def resolve(self, config: StringMap) -> PlainConfig:
        """Replace `${provider:path:key}`. Raises the exceptions of providers."""
        resolution = resolve(config, self._look_up)
        # A new map, as other threads mask with the old one.
        self._secrets = {**literal_secrets(config), **self._secrets, **resolution.secrets}
        return PlainConfig(resolution)

    def plugins_for(self, config: Mapping[str, str | None]) -> PluginSource:
        """Return the plugins that a connector of this config may name.

        These are those of its language, and transformations and predicates that only the other has.
        """
        values = {k: v for k, v in config.items() if v is not None}
        if is_java_connector(self.catalog, config):
            return self.java_plugins(values)
        return CatalogPluginSource(
            self.catalog,
            cache(partial(self.java_plugins, values)),
            in_jars=java_host_class(self.catalog, config) is not None,
        )

    def java_plugins(self, config: Mapping[str, str]) -> JavaPluginSource:
        """Return the Java plugins; a Java process answers questions about them until `close`.

        The process has the options of the connector's own processes. To be called once.
        """
        jars = java_host_jars(self.catalog, config)
        if self._kept is not None and self._kept.questions is not None:
            return JavaPluginSource(self.catalog, self._kept.questions, jars)
        try:
            options = java_options(self.config.originals, config)
        except ConfigException:  # `process_errors` reports it
            options = java_options(self.config.originals, {})
        self._java_questions = JavaQuestions(
            lambda: self.java_installation(config),
            options,
            locations=lambda: plugin_locations(self.catalog),
        )
        if self._kept is not None:
            self._kept.questions = self._java_questions
        return JavaPluginSource(self.catalog, self._java_questions, jars)

    def java_installation(self, config: Mapping[str, str]) -> JavaInstallation:
        """Return the Java installation of a connector's processes. Raises ConnectException."""
        found = java_host_class(self.catalog, config)
        return find_installation(self.config.originals, kafka=found.kafka if found else "")

    def process_errors(self, config: StringMap) -> Iterator[ConfigValue]:
        """Yield the errors of a connector's keys that the validation of single keys does not find.

        These are the keys of its Java processes, and stages with classes of both languages.
        """
        for alias in aliases(config, "transforms"):
            try:
                is_other_side(self.catalog, config, alias)
            except ConnectException as exc:
                key = f"transforms.{alias}.type"
                yield ConfigValue(key, config.get(key), error_messages=[str(exc)])
        if java_host_class(self.catalog, config) is None:
            return
        for key in (HEAP, OPTIONS):
            value = config.get(key)
            try:
                if value is not None:
                    java_options(self.config.originals, {key: value})
            except ConfigException as exc:
                yield ConfigValue(key, value, error_messages=[str(exc)])

    def close(self) -> None:
        """End the Java process that answered questions, if there is one and it is not kept."""
        if self._java_questions is not None and self._kept is None:
            self._java_questions.close()

    def mask(self, text: str) -> str:
        """Put references in place of values of providers, and hide secrets of configs."""
        return mask(text, self._secrets)

    def _look_up(self, name: str, path: str, keys: frozenset[str]) -> ConfigData | None:
        if name not in self.config.config_providers:
            return None
        if name not in self._providers:
            prefix = f"config.providers.{name}."
            class_name = self.config.originals.get(f"{prefix}class")
            if not class_name:
                raise ConfigException(f'Missing required configuration "{prefix}class"')
            provider: ConfigProvider = self.new(
                ConfigProvider, class_name, PluginKind.CONFIG_PROVIDER, f"{prefix}class"
            )
            provider.configure(self.config.with_prefix(f"{prefix}param."))
            self._providers[name] = provider
        return self._providers[name].get(path, keys)

    def connector(self, config: Mapping[str, str]) -> Connector:
        """Construct the connector of a config. Raises ConnectException."""
        name = config.get("connector.class", "")
        try:
            found = self.plugins.connector(name, config.get("connector.plugin.version"))
        except PluginNotFoundError as exc:
            raise ConnectException(str(exc)) from exc
        connector = self.instance(found.python_class)
        assert isinstance(connector, Connector)
        return connector

    def new(
        self,
        base: Any,  # abstract classes
        name: str,
        kind: PluginKind,
        key: str,
        version_range: str | None = None,
    ) -> Any:
        """Construct a plugin that a config names at `key`.

        Raises ConfigException with Kafka's texts.
        """
        with plugin_named(name, key):
            found = self.plugins.plugin(name, kind, version_range)
        if not issubclass(found.python_class, base):
            raise ConfigException(
                f"Invalid value {name} for configuration {key}: "
                f"Class {name} does not implement the {base.__name__} interface"
            )
        return self.instance(found.python_class)

    def instance(self, plugin_class: type) -> object:
        """Construct a plugin. Raises ConnectException."""
        made = instantiate(plugin_class)
        if isinstance(made, ApachesPlugin):
            made.release = self.config.agent_connect_release
        return made


@dataclass(frozen=True, slots=True)
class TaskSetup:
    """Resolved configs of a task and its connector; neither has None values."""

    task_id: ConnectorTaskId
    worker: WorkerView
    job: RunTaskJob
    connector_config: Mapping[str, str] = field(repr=False)
    task_config: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, job: RunTaskJob, worker: WorkerView) -> TaskSetup:
        """Resolve a job's configs. Raises the exceptions of config providers."""
        connector, task = worker.resolve(job.connector_config), worker.resolve(job.task_config)
        return cls(job.task_id, worker, job, connector.values, task.values)

    def latest_task_config(self) -> Mapping[str, str]:
        """Resolve the task config again: a provider may have new values."""
        return self.worker.resolve(self.job.task_config).values


API_TIMEOUT_MS = 60_000
"""Java's default of `default.api.timeout.ms`."""


def built(config: ClientConfig) -> LibrdkafkaConfig:
    """Return librdkafka's configuration, and log its warnings.

    Raises ConfigException for a value that cannot be used.
    """
    built = config.build()
    for warning in built.warnings:
        LOG.warning("client setting is not used as given", extra={"reason": warning})
    return built
