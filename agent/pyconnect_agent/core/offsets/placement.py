"""Which topic a source connector's offsets are in (KIP-618).

Layer: core. Kafka: `Worker.offsetStoreFor…` and `sameOffsetTopicAsWorker`. Unlike there, one topic
name on two spellings of the same brokers is one topic. Kafka Connect takes them for two and copies
offsets into the topic outside the transaction, where they outlive an aborted one. Only the ids of
both clusters show that they are one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_agent.core.config.client_overrides import client_servers
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTopic:
    """An offsets topic of a connector's own.

    `is_workers_name`: it is another topic than the worker's only if the connector's producer
    reaches another cluster.
    """

    name: str
    is_workers_name: bool


def own_topic(worker: WorkerConfig, connector_config: Mapping[str, str | None]) -> OwnTopic | None:
    """Return the topic that offsets go to, None when the worker's own store keeps them.

    With raw values of `connector_config` the answer may be a topic where it should be None.
    """
    if not isinstance(worker, DistributedConfig):
        return None
    given = connector_config.get("offsets.storage.topic")
    if given is None and not worker.exactly_once_source_enabled:
        return None
    name = given or worker.offset_storage_topic
    is_workers_name = name == worker.offset_storage_topic
    servers = client_servers(connector_config, worker, ClientKind.PRODUCER)
    if is_workers_name and servers == frozenset(worker.bootstrap_servers):
        return None
    return OwnTopic(name=name, is_workers_name=is_workers_name)
