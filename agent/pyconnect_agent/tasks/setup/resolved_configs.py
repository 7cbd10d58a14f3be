"""The resolved configs that a task starts with, and the settings of its Kafka clients.

`core.clients.configs` decides on these settings; those without effect are logged here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.channel import RunTaskJob
from pyconnect_agent.core.clients.configs import ClientConfig
from pyconnect_agent.core.clients.librdkafka import LibrdkafkaConfig
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.tasks.setup.worker_view import PlainConfig, WorkerView


@dataclass(frozen=True, slots=True)
class TaskSetup:
    """Resolved configs of a task and its connector; neither has None values."""

    task_id: ConnectorTaskId
    worker: WorkerView
    job: RunTaskJob
    connector: PlainConfig
    task: PlainConfig
    connector_config: Mapping[str, str] = field(repr=False)
    task_config: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, job: RunTaskJob, worker: WorkerView) -> TaskSetup:
        """Resolve a job's configs. Raises the exceptions of config providers."""
        connector, task = worker.resolve(job.connector_config), worker.resolve(job.task_config)
        return cls(
            task_id=job.task_id,
            worker=worker,
            job=job,
            connector=connector,
            task=task,
            connector_config=connector.values,
            task_config=task.values,
        )

    def latest_task_config(self) -> Mapping[str, str]:
        """Resolve the task config again: a provider may have new values."""
        return self.worker.resolve(self.job.task_config).values


LOG = logging.getLogger(__name__)

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
