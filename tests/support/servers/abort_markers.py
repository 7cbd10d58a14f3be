"""Transactions that were aborted, by the markers that the broker wrote into the topics.

Consumers never show these; kafka-python's classes read the log's batches.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from pyconnect_cli.kafka.admin import KafkaAccess, connected
from pyconnect_clients.brokers.protocol import KafkaProtocol
from tests.support.servers.topics import ANSWER_S, partitions_of

_BY_TOPIC_NAME = 12
"""The last version of the request that names topics; later ones have ids."""
_MANY_BYTES = 8_000_000
_ABORT = 0


def aborted_transactions(bootstrap_servers: str, topics: Iterable[str]) -> int:
    """Count the transactions of these topics that ended with an abort.

    The markers of one producer and epoch count as one transaction: it has one in each partition.
    That is right for transactions that end with their producer, not for those that a task aborts.
    """
    found: set[tuple[int, int]] = set()
    with connected(KafkaAccess(bootstrap=bootstrap_servers), lambda: ANSWER_S) as protocol:
        for topic in topics:
            for partition in partitions_of(bootstrap_servers, topic):
                found |= {
                    (batch.producer_id, batch.producer_epoch)
                    for batch in _batches(protocol, topic, partition)
                    if batch.is_control_batch and _is_abort(batch)
                }
    return len(found)


def _is_abort(batch: Any) -> bool:
    """The key of a marker: its version, and its type (0 abort, 1 commit), both int16."""
    (marker,) = batch
    return struct.unpack(">hh", marker.key[:4])[1] == _ABORT


def _batches(protocol: KafkaProtocol, topic: str, partition: int) -> Iterator[Any]:
    offset = 0
    while True:
        answer = _fetch(protocol, topic, partition, offset)
        if answer.error_code:
            raise AssertionError(f"{topic}-{partition} at {offset}: error {answer.error_code}")
        records = MemoryRecords(bytes(answer.records or b""))
        if not records.has_next():
            return
        while (batch := records.next_batch()) is not None:
            offset = batch.base_offset + batch.last_offset_delta + 1
            yield batch


def _fetch(protocol: KafkaProtocol, topic: str, partition: int, offset: int) -> Any:
    place = FetchRequest.FetchTopic.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=_MANY_BYTES
    )
    request = FetchRequest(
        max_wait_ms=20,
        min_bytes=0,
        max_bytes=_MANY_BYTES,
        isolation_level=0,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[place])],
        max_version=_BY_TOPIC_NAME,
    )
    # A test's broker is alone: it leads every partition.
    answer = protocol.send(f"read {topic}", request, protocol.brokers()[0])
    return answer.responses[0].partitions[0]
