"""The committed offsets of consumer groups.

Layer: kafka. Kafka: the part of Java's Admin client that `Worker` uses for the offsets of sink
connectors. Threading: any thread; each call blocks its own.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions

from pyconnect_agent.core.offsets.connector_offsets import CommittedOffset
from pyconnect_agent.kafka import clients, errors

_NO_OFFSET = -1001
"""librdkafka's offset of a partition without a committed offset."""


class GroupOffsets:
    """The offsets of one consumer group; its client ends with the last reference."""

    def __init__(self, config: clients.ClientConfig, group: str) -> None:
        self._client = clients.create_admin(config)
        self._group = group

    def committed(self, timeout_ms: int) -> tuple[CommittedOffset, ...]:
        """Return all committed offsets, sorted; none when there is no such group.

        Raises KafkaError.
        """
        request = ConsumerGroupTopicPartitions(self._group)
        try:
            futures: dict[Any, Future[Any]] = self._client.list_consumer_group_offsets(
                [request], require_stable=False, request_timeout=timeout_ms / 1000
            )
            result = futures[self._group].result(timeout_ms / 1000 + 1)
        except (*errors.CLIENT_ERRORS, TimeoutError) as exc:
            if errors.code_of(exc) == errors.GROUP_ID_NOT_FOUND:
                return ()
            raise errors.translate(
                exc, f"Failed to list offsets of consumer group '{self._group}'"
            ) from exc
        found = []
        for partition in result.topic_partitions or ():
            if partition.error is not None:
                raise errors.translate(
                    partition.error, f"Failed to list offsets of consumer group '{self._group}'"
                )
            if partition.offset != _NO_OFFSET:
                found.append(
                    CommittedOffset(partition.topic, partition.partition, partition.offset)
                )
        return tuple(sorted(found))
