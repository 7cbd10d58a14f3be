"""Short jobs that read a connector's offsets, in a process of their own.

Layer: tasks. Kafka: the parts of `Worker` for KIP-875 that need the connector's resolved config:
its overrides may hold secrets, which no worker process sees.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_agent.channel import (
    ConsumerOffsets,
    Message,
    OwnOffsets,
    ReadOffsetsJob,
)
from pyconnect_agent.core.clients.configs import connector_admin
from pyconnect_agent.core.plugins.catalog import PluginKind
from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_agent.kafka.group_offsets import GroupOffsets
from pyconnect_agent.kafka.offset_image import OffsetImage
from pyconnect_agent.tasks.in_java.process import java_class_of
from pyconnect_agent.tasks.jobs.plugin_questions import answer
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_agent.tasks.source.offsets.own_topic import LogUse, own_offset_log
from pyconnect_api import SinkConnector
from pyconnect_clients.connect_names import sink_group_id


def read_offsets(job: ReadOffsetsJob) -> Message:
    """Never raises: a failure is an answer."""
    read = _read_own if job.own else _read_committed
    return answer(job.worker, lambda worker: read(job, worker))


def _read_committed(job: ReadOffsetsJob, worker: WorkerView) -> Message:
    config = worker.resolve(job.config).values
    if not _is_sink(worker, config):
        return ConsumerOffsets(committed=None)
    admin = connector_admin(worker.config, config, f"connector-worker-adminclient-{job.connector}")
    group = sink_group_id(job.connector, config, worker.config.originals)
    committed = GroupOffsets(admin, group, Deadline(job.timeout_ms)).committed()
    return ConsumerOffsets(committed=committed)


def _is_sink(worker: WorkerView, config: Mapping[str, str]) -> bool:
    """Return whether a config names a sink; starts no Java. Raises ConnectException."""
    java = java_class_of(worker, config)
    if java is None:
        return isinstance(worker.connector(config), SinkConnector)
    return any(plugin.kind is PluginKind.SINK for plugin in worker.catalog.java.find(java.name))


def _read_own(job: ReadOffsetsJob, worker: WorkerView) -> Message:
    config = worker.resolve(job.config).values
    use = LogUse(client=job.connector, is_brief=True)
    found = own_offset_log(worker.config, job.connector, config, use)
    if found is None:
        return OwnOffsets(entries={})
    _, log = found
    image = OffsetImage()
    log.start(image)
    return OwnOffsets(entries=image.connector_entries(job.connector))
