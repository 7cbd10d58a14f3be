"""Checks that concern several keys of a connector configuration, or ask the connector itself.

Corresponds to ``SinkConnectorConfig.validate`` and to the checks ``DistributedHerder`` adds for
sinks (consumer group) and sources (KIP-618). Errors are added to the results of earlier checks.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_agent.core.config.client_overrides import client_servers
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.java_text.regex import compile_java_regex
from pyconnect_api import ConfigException
from pyconnect_api.configdef import ConfigType, ConfigValue, parse_type, to_text
from pyconnect_api.connector import (
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    SourceConnector,
)
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC, SINK_GROUP_PREFIX

RawConfig: TypeAlias = Mapping[str, str | None]


def is_set(text: str | None) -> bool:
    """Return whether a value is set and not blank."""
    return text is not None and bool(text.strip())


def check_sink(config: RawConfig, results: dict[str, ConfigValue], worker: WorkerConfig) -> None:
    topics, regex = config.get("topics"), config.get("topics.regex")
    has_topics, has_regex = is_set(topics), is_set(regex)
    if has_topics == has_regex:
        message = (
            "topics and topics.regex are mutually exclusive options, but both are set."
            if has_topics
            else "Must configure one of topics or topics.regex"
        )
        results["topics"].add_error_message(message)
        results["topics.regex"].add_error_message(message)
    _check_dead_letter_queue(config, results)
    if isinstance(worker, DistributedConfig):
        _check_consumer_group(config, results, worker.group_id)


def _check_dead_letter_queue(config: RawConfig, results: Mapping[str, ConfigValue]) -> None:
    dlq, regex = (config.get(DEAD_LETTER_TOPIC) or "").strip(), config.get("topics.regex") or ""
    if not dlq:
        return
    parsed = parse_type("topics", config.get("topics"), ConfigType.LIST)
    topics = [topic for topic in parsed if topic] if isinstance(parsed, list) else []
    if dlq in topics:
        results["topics"].add_error_message(
            f"The DLQ topic '{dlq}' may not be included in the list of topics "
            f"('topics={to_text(list(dict.fromkeys(topics)))}') consumed by the connector"
        )
    if not is_set(regex) or results["topics.regex"].error_messages:
        return
    if compile_java_regex(regex).fullmatch(dlq):
        results["topics.regex"].add_error_message(
            f"The DLQ topic '{dlq}' may not be matched by the regex for the topics "
            f"('topics.regex={regex}') consumed by the connector"
        )


def _check_consumer_group(
    config: RawConfig, results: dict[str, ConfigValue], worker_group: str
) -> None:
    override = "consumer.override.group.id"
    if override in config:
        group = config[override]
        result = results.setdefault(override, ConfigValue(override, group))
        if group == worker_group:
            result.add_error_message(
                f"Consumer group {group} conflicts with Connect worker group {worker_group}"
            )
    elif worker_group == f"{SINK_GROUP_PREFIX}{results['name'].value}":
        results["name"].add_error_message(
            f"Consumer group for sink connector named {results['name'].value} "
            f"conflicts with Connect worker group {worker_group}"
        )


def check_source(
    config: RawConfig,
    results: dict[str, ConfigValue],
    connector: SourceConnector,
    worker: WorkerConfig,
) -> None:
    """Check exactly-once support; standalone workers have none to check."""
    if not isinstance(worker, DistributedConfig):
        return
    support, boundary = results["exactly.once.support"], results["transaction.boundary"]
    if not support.error_messages and str(support.value).lower() == "required":
        if not worker.exactly_once_source_enabled:
            support.add_error_message(
                "This worker does not have exactly-once source support enabled."
            )
        message = _hook_error(lambda: _exactly_once_error(connector, config))
        if message:
            support.add_error_message(message)
    if not boundary.error_messages and str(boundary.value).lower() == "connector":
        message = _hook_error(lambda: _boundary_error(connector, config))
        if message:
            boundary.add_error_message(message)
    if worker.exactly_once_source_enabled:
        _check_one_cluster(config, results, worker)


def _check_one_cluster(
    config: RawConfig, results: dict[str, ConfigValue], worker: DistributedConfig
) -> None:
    """Refuse a config whose clients reach different clusters.

    Kafka Connect accepts it and then fences on the wrong cluster, which seems to succeed.
    """
    servers = {
        kind: client_servers(config, worker, kind)
        for kind in (ClientKind.PRODUCER, ClientKind.CONSUMER, ClientKind.ADMIN)
    }
    if len(set(servers.values())) == 1:
        return
    key = "producer.override.bootstrap.servers"
    found = ", ".join(
        f"{kind.name.lower()} {','.join(sorted(names))}" for kind, names in servers.items()
    )
    results.setdefault(key, ConfigValue(key, config.get(key))).add_error_message(
        "With exactly-once support, the clients of a source connector must reach the same Kafka "
        f"cluster, but their bootstrap.servers differ: {found}. Set bootstrap.servers alike below "
        "producer.override., consumer.override. and admin.override."
    )


def _hook_error(hook: Callable[[], str | None]) -> str | None:
    try:
        return hook()
    # The hook is the plugin's code, which may raise anything.
    except Exception as error:  # noqa: BLE001  plugin code
        text = str(error).strip()
        tail = f": {text}" if text else "; please see the worker logs for more details."
        return f"An unexpected error occurred during validation{tail}"


def _exactly_once_error(connector: SourceConnector, config: RawConfig) -> str | None:
    match connector.exactly_once_support(config):
        case ExactlyOnceSupport.SUPPORTED:
            return None
        case ExactlyOnceSupport.UNSUPPORTED:
            return (
                "The connector does not support exactly-once semantics with the provided "
                "configuration."
            )
        case None:
            return (
                "The connector does not implement the API required for preflight validation of "
                "exactly-once source support. Please consult the documentation for the connector "
                "to determine whether it supports exactly-once semantics, and then consider "
                'reconfiguring the connector to use the value "requested" for this property '
                "(which will disable this preflight check and allow the connector to be created)."
            )


def _boundary_error(connector: SourceConnector, config: RawConfig) -> str | None:
    # The annotation excludes None, but a plugin may return it.
    answer: object = connector.can_define_transaction_boundaries(config)
    if answer is ConnectorTransactionBoundaries.SUPPORTED:
        return None
    if answer is None:
        return (
            "This connector has returned a null value from its canDefineTransactionBoundaries "
            "method, which is not permitted. The connector will be treated as if it cannot define "
            "its own transaction boundaries, and cannot be configured with 'transaction.boundary' "
            "set to 'connector'."
        )
    return (
        "The connector does not support connector-defined transaction boundaries with the given "
        "configuration. Please reconfigure it to use a different transaction boundary definition."
    )


TOPICS = "topics"
TOPICS_REGEX = "topics.regex"


def check_sink_config(config: Mapping[str, str], worker: WorkerConfig) -> None:
    """Raise ConfigException unless the config says which topics to consume."""
    keys = (TOPICS, TOPICS_REGEX, "name")
    results = {name: ConfigValue(name, config.get(name)) for name in keys}
    check_sink(config, results, worker)
    for name, result in results.items():
        if result.error_messages:
            raise ConfigException(
                f"Invalid value {config.get(name)} for configuration {name}: "
                f"{result.error_messages[0]}"
            )


def topics_of(config: Mapping[str, str]) -> list[str] | None:
    """Return the listed topics in order, each once; None when a pattern is configured."""
    if not is_set(config.get(TOPICS)):
        return None
    names = (name.strip() for name in config[TOPICS].split(","))
    return list(dict.fromkeys(name for name in names if name))
