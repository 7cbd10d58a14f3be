"""Fence the producers of a connector's older tasks; the leader asks (KIP-618).

Runs in a process of its own: the connector's config may refer to secrets, which are resolved in
children only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyconnect_agent.channel import FenceProducersJob, Message, ProducersFenced
from pyconnect_agent.core.clients.configs import (
    ClientConfig,
    exactly_once_producer,
    fencing_producer,
)
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import AuthorizationError
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.fencing import fence
from pyconnect_agent.tasks.jobs.plugin_questions import answer
from pyconnect_agent.tasks.setup.worker_view import WorkerView

LOG = logging.getLogger(__name__)


def fence_producers(job: FenceProducersJob) -> Message:
    """Never raises: a failure is an answer."""

    def fenced(worker: WorkerView) -> Message:
        config = worker.resolve(job.connector_config).values
        # Changes of offsets use the producer's credentials, fencing those of the admin client.
        changing = _configs(exactly_once_producer, job, worker.config, config, job.ids_if_permitted)
        tasks = _configs(fencing_producer, job, worker.config, config, job.transactional_ids)
        deadline = Deadline(job.timeout_ms)
        LOG.info("fencing producers of older tasks", extra={"ids": len(tasks)})
        fence(tasks, deadline.remaining_ms())
        try:
            fence(changing, deadline.remaining_ms())
        except AuthorizationError as exc:
            LOG.info("id not fenced", extra={"reason": exc.message})
        return ProducersFenced()

    return answer(job.worker, fenced)


def _configs(
    configure: Callable[[WorkerConfig, Mapping[str, str], str, str], ClientConfig],
    job: FenceProducersJob,
    worker: WorkerConfig,
    config: Mapping[str, str],
    transactional_ids: Sequence[str],
) -> Mapping[str, Mapping[str, Any]]:
    """Return the settings of a producer for each id, in the words of librdkafka."""
    client_id = f"connector-worker-adminclient-{job.connector}"
    return {
        transactional_id: configure(worker, config, client_id, transactional_id).build().properties
        for transactional_id in transactional_ids
    }
