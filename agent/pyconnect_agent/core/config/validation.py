"""Validation of a whole connector configuration.

Corresponds to ``AbstractHerder.validateConnectorConfig`` and the checks that ``DistributedHerder``
adds, of Kafka Connect 4.3.1, with its quirks of counting. It runs plugin code through the classes
it is given, so it is called in child processes only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from pyconnect_agent.core.config import below
from pyconnect_agent.core.config.agent_keys import agent_infos
from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_agent.core.config.client_overrides import OverridePolicy, override_infos
from pyconnect_agent.core.config.config_infos import (
    ConfigInfo,
    ConfigInfos,
    connector_infos,
    merge_infos,
    prefixed_infos,
)
from pyconnect_agent.core.config.connector_checks import RawConfig, check_sink, check_source, is_set
from pyconnect_agent.core.config.connector_config import (
    CONVERTERS,
    PluginDefaults,
    connector_config_def,
    sink_config_def,
    source_config_def,
)
from pyconnect_agent.core.config.plugin_source import (
    PluginClass,
    PluginSource,
    class_resolver,
    enriched,
)
from pyconnect_agent.core.config.topic_creation import uses_topic_creation
from pyconnect_agent.core.config.variables import mask
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.plugin_catalog import (
    RELEASE_4_4,
    PluginKind,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)
from pyconnect_api.configdef import Config, ConfigDef, ConfigValue, KeyInfo, to_text
from pyconnect_api.connector import Connector, SourceConnector
from pyconnect_api.errors import ConnectException
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC

_NULL_VALUE = "Null value can not be supplied as the configuration value."
_INVALID_REFERENCE = (
    "Invalid value for configuration '{}': the value resolved from the config provider reference"
    " failed validation"
)


def validate_connector_config(
    config: RawConfig,
    *,
    plugins: PluginSource,
    worker: WorkerConfig,
    raw_config: RawConfig | None = None,
    secrets: Mapping[str, str] = MappingProxyType({}),
    process_errors: Iterable[ConfigValue] = (),
) -> ConfigInfos:
    """Return the complete result of validating a connector configuration.

    ``process_errors`` are errors of keys for the connector's Java processes.

    ``config`` has its variables resolved; ``raw_config`` is how it was submitted: where the two
    differ, the raw text is shown, and ``secrets`` are masked in messages. Raises BadRequestError
    without a usable ``connector.class``, ConfigException for a client override of the wrong type,
    and ConnectException when a plugin breaks its contract.
    """
    raw = config if raw_config is None else raw_config
    release = worker.agent_connect_release
    class_name = config.get("connector.class")
    if class_name is None:
        if release == RELEASE_4_4:
            raise BadRequestError("Connector config contains no connector type")
        shown = ", ".join(f"{name}={to_text(value)}" for name, value in raw.items())
        raise BadRequestError(f"Connector config {{{shown}}} contains no connector type")
    version_error = _connector_version_error(config, class_name, plugins)
    if version_error is None:
        infos = _validated(config, class_name, plugins, worker, process_errors)
    else:
        infos = _infos_of_unknown_version(config, class_name, plugins, version_error)
    infos = merge_infos(class_name, [infos, agent_infos(config, raw)])
    return _with_raw_values(infos, config, raw, secrets, release)


def connector_key_infos(connector: PluginClass, plugins: PluginSource) -> list[KeyInfo]:
    """Return the key definitions of a connector plugin: its own, then the framework's."""
    instance = _instance(connector)
    own = _own_definition(instance, connector)
    defaults = PluginDefaults(
        connector_versions=plugins.versions(connector.name, PluginKind.CONNECTOR),
        plugins=plugins,
        converters={},
        versions={},
    )
    is_source = isinstance(instance, SourceConnector)
    framework = source_config_def(defaults) if is_source else sink_config_def(defaults)
    others = [info for info in framework.to_key_info() if info["name"] not in own.keys]
    return own.to_key_info() + others


def _validated(
    config: RawConfig,
    class_name: str,
    plugins: PluginSource,
    worker: WorkerConfig,
    process_errors: Iterable[ConfigValue],
) -> ConfigInfos:
    try:
        connector_class = plugins.connector(class_name, config.get("connector.plugin.version"))
    except PluginNotFoundError as error:
        raise BadRequestError(f"{ConnectException.java_name}: {error}") from error
    connector = _instance(connector_class)
    defaults = _plugin_defaults(config, connector_class, plugins, worker)
    is_source = isinstance(connector, SourceConnector)
    framework = enriched(
        source_config_def(defaults) if is_source else sink_config_def(defaults), config, plugins
    )
    results = framework.validate_all(config, class_resolver(plugins))
    _check_converter_versions(config, results, plugins)
    if isinstance(connector, SourceConnector):
        check_source(config, results, connector, worker)
    else:
        check_sink(config, results, worker)
    _refuse_nulls(config, results)
    own = _own_definition(connector, connector_class)
    own_result = _own_result(connector, connector_class, config)
    converters = _converter_infos(config, results, plugins, worker)
    main = connector_infos(
        class_name,
        {**framework.keys, **own.keys},
        [*results.values(), *own_result.config_values, *process_errors],
        dict.fromkeys((*framework.groups, *own.groups)),
    )
    policy = OverridePolicy.of_worker(worker)
    overrides = [
        override_infos(config, kind, policy, worker.agent_connect_release)
        for kind in _clients_used(config, is_source=is_source, worker=worker)
    ]
    return merge_infos(class_name, [main, *overrides, *converters])


def _instance(connector_class: PluginClass) -> Connector:
    try:
        connector = connector_class.python_class()
    # The constructor is the plugin's code, which may raise anything.
    except Exception as error:
        raise ConnectException(f"Could not construct {connector_class.name}: {error}") from error
    assert isinstance(connector, Connector)
    return connector


def _own_definition(connector: Connector, connector_class: PluginClass) -> ConfigDef:
    definition = connector.config()
    if not isinstance(definition, ConfigDef):
        raise BadRequestError(
            f"{connector_class.name}.config() must return a ConfigDef that is not null."
        )
    return definition


def _own_result(connector: Connector, connector_class: PluginClass, config: RawConfig) -> Config:
    method = f"{connector_class.name}.validate()"
    found = connector.validate(config)
    if not isinstance(found, Config):
        raise BadRequestError(f"{method} must return a Config that is not null.")
    for value in found.config_values:
        texts: tuple[object, ...] = (value.name, *value.error_messages)
        for text in texts:
            if not isinstance(text, str):
                raise BadRequestError(
                    f"{method} returned a {type(text).__qualname__} as the name or as an error "
                    f"message of the key {value.name!r}, expected str."
                )
    return found


def _plugin_defaults(
    config: RawConfig, connector: PluginClass, plugins: PluginSource, worker: WorkerConfig
) -> PluginDefaults:
    worker_classes = worker.converters
    converters: dict[str, PluginClass | None] = {}
    versions: dict[str, str | None] = {}
    for key, (_, kind) in CONVERTERS.items():
        try:
            converters[key] = plugins.find(worker_classes[key])
        except (LookupError, ConnectException):
            converters[key] = None  # this default is checked when the worker starts
        given = config.get(key)
        known = plugins.versions(worker_classes[key] if given is None else given, kind)
        versions[f"{key}.plugin.version"] = known[-1] if known else None
    return PluginDefaults(
        connector_versions=plugins.versions(connector.name, PluginKind.CONNECTOR),
        plugins=plugins,
        converters=converters,
        versions=versions,
    )


def _connector_version_error(
    config: RawConfig, class_name: str, plugins: PluginSource
) -> str | None:
    wanted = config.get("connector.plugin.version")
    if wanted is not None:
        try:
            plugins.connector(class_name, wanted)
        except PluginVersionNotFoundError as error:
            return str(error)
        except (LookupError, ConnectException):
            pass  # the look-up of the class itself reports the error
    return None


def _infos_of_unknown_version(
    config: RawConfig, class_name: str, plugins: PluginSource, error: str
) -> ConfigInfos:
    """Report the error at the class and version keys, among the framework's keys only."""
    defaults = PluginDefaults(
        connector_versions=plugins.versions(class_name, PluginKind.CONNECTOR),
        converters={},
        versions={},
    )
    definition = connector_config_def(defaults)
    results = definition.validate_all(config, class_resolver(plugins))
    for key in ("connector.class", "connector.plugin.version"):
        results[key].add_error_message(error)
    _refuse_nulls(config, results)
    return connector_infos(class_name, definition.keys, results.values(), definition.groups)


def _refuse_nulls(config: RawConfig, results: dict[str, ConfigValue]) -> None:
    for name, value in config.items():
        if value is None:
            results.setdefault(name, ConfigValue(name)).add_error_message(_NULL_VALUE)


def _check_converter_versions(
    config: RawConfig, results: Mapping[str, ConfigValue], plugins: PluginSource
) -> None:
    """Report a version range that no version satisfies, at both of the converter's keys."""
    for key, (_, kind) in CONVERTERS.items():
        converter, wanted = config.get(key), config.get(f"{key}.plugin.version")
        if converter is None or wanted is None:
            continue
        try:
            plugins.plugin(converter, kind, wanted)
        except PluginVersionNotFoundError as error:
            results[key].add_error_message(str(error))
            results[f"{key}.plugin.version"].add_error_message(str(error))
        except (LookupError, ConnectException):
            pass  # the class key has an error already


def _converter_infos(
    config: RawConfig,
    results: Mapping[str, ConfigValue],
    plugins: PluginSource,
    worker: WorkerConfig,
) -> list[ConfigInfos]:
    """Validate the settings of the converters that the connector names; errors go to ``results``.

    The worker's default converters must be loadable too. Apache's worker only finds out when a task
    starts.
    """
    infos = []
    defaults = worker.converters
    for key in ("header.converter", "key.converter", "value.converter"):
        result, named = results[key], config.get(key)
        if result.error_messages:
            continue
        description = key.replace(".", " ")
        try:
            found = plugins.find(defaults[key] if named is None else named)
            definition = found.python_class().config()
        except LookupError:
            continue  # the worker's default is checked when the worker starts
        # The plugin's code may raise anything.
        except Exception as error:  # noqa: BLE001  plugin code
            text = f": {error}" if str(error) else ""
            result.add_error_message(f"Failed to load ConfigDef from {description}{text}")
            continue
        if named is None or not isinstance(definition, ConfigDef):
            continue
        prefix = f"{key}."
        options = below(config, prefix)
        options.setdefault("converter.type", key.partition(".")[0])
        values = definition.validate(options, class_resolver(plugins))
        infos.append(prefixed_infos(definition.keys, values, prefix))
    return infos


def _clients_used(config: RawConfig, *, is_source: bool, worker: WorkerConfig) -> list[ClientKind]:
    """Return the kinds of clients whose overrides count, in the order of the report."""
    own_offsets_topic = (
        is_source
        and isinstance(worker, DistributedConfig)
        and (worker.exactly_once_source_enabled or is_set(config.get("offsets.storage.topic")))
    )
    has_dlq = not is_source and is_set(config.get(DEAD_LETTER_TOPIC))
    uses_admin = uses_topic_creation(config) if is_source else has_dlq
    used = []
    if is_source or has_dlq:
        used.append(ClientKind.PRODUCER)
    if not is_source or own_offsets_topic:
        used.append(ClientKind.CONSUMER)
    if uses_admin or own_offsets_topic:
        used.append(ClientKind.ADMIN)
    return used


def _with_raw_values(
    infos: ConfigInfos, config: RawConfig, raw: RawConfig, secrets: Mapping[str, str], release: str
) -> ConfigInfos:
    """Show references instead of resolved values, in values and in messages.

    Since 4.4 an error only says which reference stands for a value that is not valid.
    """
    if config == raw:
        return infos

    def shown(info: ConfigInfo) -> ConfigInfo:
        value = info.value
        if value is None:
            return info
        name = value.name
        errors = tuple(mask(error, secrets) for error in value.errors)
        if raw.get(name) == config.get(name):
            return replace(info, value=replace(value, errors=errors))
        said = replace(value, value=raw.get(name), errors=errors)
        if release == RELEASE_4_4:
            errors = (_INVALID_REFERENCE.format(name),) if errors else ()
            said = replace(said, recommended_values=(), errors=errors)
        return replace(info, value=said)

    configs = tuple(map(shown, infos.configs))
    count = infos.error_count
    if release == RELEASE_4_4:
        count = sum(len(info.value.errors) for info in configs if info.value is not None)
    return replace(infos, configs=configs, error_count=count)
