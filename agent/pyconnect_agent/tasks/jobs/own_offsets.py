"""Reads the entries of a connector's own offsets topic, in a process of its own.

Layer: tasks. Kafka: the connector store behind `Worker.sourceConnectorOffsets` (KIP-875). The
overrides with which the topic is read may hold secrets, which no worker process sees.
"""

from __future__ import annotations

from pyconnect_agent.channel import Message, OwnOffsets, ReadOwnOffsetsJob
from pyconnect_agent.kafka.offset_image import OffsetImage
from pyconnect_agent.tasks.jobs.plugin_questions import answer
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_agent.tasks.source.offsets.own_topic import LogUse, own_offset_log


def read_own_offsets(job: ReadOwnOffsetsJob) -> Message:
    """Never raises: a failure is an answer."""
    return answer(job.worker, lambda worker: _read(job, worker))


def _read(job: ReadOwnOffsetsJob, worker: WorkerView) -> Message:
    config = worker.resolve(job.config).values
    use = LogUse(client=job.connector, is_brief=True)
    found = own_offset_log(worker.config, job.connector, config, use)
    if found is None:
        return OwnOffsets(entries={})
    _, log = found
    image = OffsetImage()
    log.start(image)
    return OwnOffsets(entries=image.connector_entries(job.connector))
