"""Fence the producers of a connector's older tasks; the leader asks (KIP-618).

Layer: tasks. Runs in a process of its own: the connector's config may refer to secrets, which are
resolved in children only.
"""

from __future__ import annotations

from pyconnect_agent.core.client_configs import fencing_producer
from pyconnect_agent.kafka.fencing import fence
from pyconnect_agent.supervise.channel import FenceProducers, Message, ProducersFenced
from pyconnect_agent.tasks.answers import answer
from pyconnect_agent.tasks.worker_view import WorkerView


def fence_producers(job: FenceProducers) -> Message:
    """Never raises: a failure is an answer."""
    return answer(lambda: _fenced(job))


def _fenced(job: FenceProducers) -> Message:
    worker = WorkerView(job.worker.properties, job.worker.plugins)
    config = worker.resolve(job.connector_config).values
    client_id = f"connector-worker-adminclient-{job.connector}"
    producers = {
        transactional_id: fencing_producer(worker.config, config, client_id, transactional_id)
        .build()
        .properties
        for transactional_id in job.transactional_ids
    }
    fence(producers, job.timeout_ms)
    return ProducersFenced()
