"""Which topics a sink consumes (Kafka: SinkConnectorConfig).

Layer: tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_agent.core.config.connector_checks import check_sink, is_set
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_api import ConfigException, ConfigValue

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
