"""Short jobs about a connector's offsets, in a process of their own.

Layer: tasks. Kafka: the parts of `Worker` for KIP-875 that need the connector's resolved config:
its overrides may hold secrets, which no worker process sees.
"""

from __future__ import annotations

from pyconnect_agent.channel import ConsumerOffsets, Message, ReadConsumerOffsetsJob
from pyconnect_agent.core.clients.configs import connector_admin
from pyconnect_agent.kafka.group_offsets import GroupOffsets
from pyconnect_agent.tasks.jobs.plugin_questions import answer
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_api import SinkConnector
from pyconnect_clients.connect_names import sink_group_id


def read_consumer_offsets(job: ReadConsumerOffsetsJob) -> Message:
    """Never raises: a failure is an answer."""
    return answer(job.worker, lambda worker: _read(job, worker))


def _read(job: ReadConsumerOffsetsJob, worker: WorkerView) -> Message:
    config = worker.resolve(job.config).values
    if not isinstance(worker.connector(config), SinkConnector):
        return ConsumerOffsets(committed=None)
    admin = connector_admin(worker.config, config, f"connector-worker-adminclient-{job.connector}")
    group = sink_group_id(job.connector, config, worker.config.originals)
    committed = GroupOffsets(admin.build().properties, group).committed(job.timeout_ms)
    return ConsumerOffsets(committed=committed)
