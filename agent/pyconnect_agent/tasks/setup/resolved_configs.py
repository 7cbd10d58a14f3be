"""The resolved configs that a task starts with.

Layer: tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.channel import RunTaskJob
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
