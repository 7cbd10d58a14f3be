"""Checks of a connector and its config before they are used.

Layer: tasks. Kafka: what `Worker.startConnector` finds by constructing `SinkConnectorConfig`,
`SourceConnectorConfig` and `WorkerConnector`. A request to create the connector passes some of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_agent.core.config.topic_creation import topic_creation_groups
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.tasks.sink.topics import check_sink_config
from pyconnect_api import (
    ConfigException,
    ConnectException,
    Connector,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
)


def check_connector_config(
    worker: WorkerConfig,
    raw: Mapping[str, str | None],
    connector: Connector,
    config: Mapping[str, str],
) -> None:
    """Raise ConfigException, or ConnectException for a class that is not a connector.

    `config` is `raw` resolved, without its null values: those pass validation for keys of the
    connector's own.
    """
    if isinstance(connector, SinkConnector):
        check_sink_config(config, worker)
    elif isinstance(connector, SourceConnector):
        if worker.topic_creation_enable:
            topic_creation_groups(config)
    else:
        raise ConnectException(
            "Connector implementations must be a subclass of either SourceConnector or "
            "SinkConnector"
        )
    for name, text in raw.items():
        if text is None:
            raise ConfigException(
                f"Non-string value found in original settings for key {name}: null"
            )


def task_class_of(connector: Connector) -> type[SourceTask | SinkTask]:
    """Return the class of a connector's tasks. Raises ConnectException when it is not one."""
    found: object = connector.task_class()
    if isinstance(found, type) and issubclass(found, SourceTask | SinkTask):
        return found
    raise ConnectException(
        "Tasks must be a subclass of either SourceTask or SinkTask, but "
        f"{type(connector).__qualname__}.task_class() returned {found!r}"
    )
