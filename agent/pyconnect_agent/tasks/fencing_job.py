"""Fence the producers of a connector's older tasks; the leader asks (KIP-618).

Layer: tasks. Runs in a process of its own: the connector's config may refer to secrets, which are
resolved in children only.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pyconnect_agent.core.client_configs import fencing_producer
from pyconnect_agent.core.errors import AuthorizationError
from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_agent.kafka.fencing import fence
from pyconnect_agent.supervise.channel import FenceProducers, Message, ProducersFenced
from pyconnect_agent.tasks.answers import answer
from pyconnect_agent.tasks.worker_view import WorkerView

LOG = logging.getLogger(__name__)


def fence_producers(job: FenceProducers) -> Message:
    """Never raises: a failure is an answer."""
    return answer(lambda: _fenced(job))


def _fenced(job: FenceProducers) -> Message:
    worker = WorkerView(job.worker.properties, job.worker.plugins)
    config = worker.resolve(job.connector_config).values
    client_id = f"connector-worker-adminclient-{job.connector}"

    def producers(transactional_ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        return {
            transactional_id: fencing_producer(worker.config, config, client_id, transactional_id)
            .build()
            .properties
            for transactional_id in transactional_ids
        }

    deadline = Deadline(job.timeout_ms)
    LOG.info("fencing producers of older tasks", extra={"ids": len(job.transactional_ids)})
    fence(producers(job.transactional_ids), deadline.remaining_ms())
    try:
        fence(producers(job.ids_if_permitted), deadline.remaining_ms())
    except AuthorizationError as exc:
        LOG.info("id not fenced", extra={"reason": exc.message})
    return ProducersFenced()
