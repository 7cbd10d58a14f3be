"""Checks of a connector and its config before they are used, and its task configs.

Kafka: what `Worker.startConnector` finds by constructing `SinkConnectorConfig`,
`SourceConnectorConfig` and `WorkerConnector`. A request to create the connector passes some of it.
"""

from __future__ import annotations

import hmac
import json
import logging
import pkgutil
from collections.abc import Mapping
from contextlib import suppress

from pyconnect_agent.channel import GenerateTaskConfigsRequest, TaskConfigs
from pyconnect_agent.core.config.connector_checks import TOPICS, TOPICS_REGEX, check_sink_config
from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.config.topic_creation import topic_creation_groups
from pyconnect_agent.core.config.variables import restore_references
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.tasks.connector.host import TooManyTasksError
from pyconnect_agent.tasks.setup.plugins import plain_task_configs
from pyconnect_agent.tasks.setup.worker_view import WorkerView
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


def task_class_in(
    task_config: Mapping[str, str], connector: Connector
) -> type[SourceTask | SinkTask]:
    """Return the class that the started connector has named for a task; `connector` is not started.

    It may depend on the connector's config. The connector is asked if the name is that of no class
    here: a Java worker has written it, or the class is within a function.
    """
    with suppress(ImportError, AttributeError, ValueError):
        found = pkgutil.resolve_name(task_config.get(TASK_CLASS, ""))
        if isinstance(found, type) and issubclass(found, SourceTask | SinkTask):
            return found
    return task_class_of(connector)


LOG = logging.getLogger(__name__)

TASK_CLASS = "task.class"
TASKS_MAX_ENFORCE = "tasks.max.enforce"


def generate_task_configs(
    connector: Connector, request: GenerateTaskConfigsRequest, worker: WorkerView
) -> TaskConfigs:
    """Ask the connector, complete the answer, put references back.

    Raises TooManyTasksError, ConnectException, and exceptions of the connector.
    """
    resolved = worker.resolve(request.config).values
    settings = ConnectorSettings.parse(resolved)
    found: object = connector.task_configs(settings.tasks_max)
    made = plain_task_configs(found, type(connector).__qualname__)
    check_task_count(settings, len(made))
    task_class = task_class_of(connector)
    # Built-in tasks say the Java class they stand for, which Java workers of the group can start.
    own_name = f"{task_class.__module__}.{task_class.__qualname__}"
    added = {TASK_CLASS: str(getattr(task_class, "java_name", own_name))}
    added |= {key: resolved[key] for key in (TOPICS, TOPICS_REGEX) if key in resolved}
    applied = request.applied_config
    text = json.dumps(sorted(resolved.items())).encode()
    return TaskConfigs(
        request_id=request.request_id,
        configs=tuple(restore_references(request.config, {**config, **added}) for config in made),
        connector_config_changed=applied is None or worker.resolve(applied).values != resolved,
        values_digest=hmac.digest(request.digest_key, text, "sha256"),
    )


def check_task_count(settings: ConnectorSettings, count: int) -> None:
    """Hold a task set to `tasks.max`. Raises TooManyTasksError (Kafka: Worker.checkTasksMax)."""
    name, tasks_max = settings.name, settings.tasks_max
    if count <= tasks_max:
        return
    if settings.tasks_max_enforce:
        raise TooManyTasksError(
            f"The connector {name} has generated {count} tasks, which is greater than {tasks_max}, "
            "the maximum number of tasks it is configured to create. This behaviour should be "
            "considered a bug and is disallowed. If necessary, it can be permitted by "
            f"reconfiguring the connector with '{TASKS_MAX_ENFORCE}' set to false; however, this "
            "option will be removed in a future release of Kafka Connect."
        )
    LOG.warning(
        "connector made more tasks than it is configured to; tasks.max.enforce=false allows it",
        extra={"connector": name, "tasks": count, "tasks_max": tasks_max},
    )
