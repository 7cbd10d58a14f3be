"""What Connect forces upon the clients of its internal topics, in librdkafka's words.

Layer: kafka. Kafka: KafkaBasedLog and the three stores; spec internal-topics.md §1.2. The base
configurations are the worker's top-level properties, already translated for the kind of client.
"""

from __future__ import annotations

from typing import Any

from pyconnect_agent.kafka.clients import ClientConfig

STATUS_DELIVERY_TIMEOUT_MS = 120_000
CONSUMER_QUEUE_KILOBYTES = 8_192


def producer_config(
    base: ClientConfig, client_id: str, *, store_retries: bool = False
) -> dict[str, Any]:
    """Return the configuration of an internal topic's producer.

    `store_retries`: the store decides itself which failed sends to repeat (status topic).
    """
    forced: dict[str, Any] = {
        "client.id": client_id,
        "acks": "all",
        "max.in.flight.requests.per.connection": 1,
        "enable.idempotence": False,
        # Java workers look for a key where murmur2 puts it; librdkafka's default is CRC32.
        "partitioner": "murmur2_random",
    }
    if store_retries:
        forced["message.send.max.retries"] = 0
        defaults: dict[str, Any] = {"message.timeout.ms": STATUS_DELIVERY_TIMEOUT_MS}
    else:
        forced["message.timeout.ms"] = 0  # no limit, Java's delivery.timeout.ms=2147483647
        defaults = {}
    return {"linger.ms": 0, **defaults, **base, **forced}


def leader_producer_config(
    base: ClientConfig, client_id: str, transactional_id: str
) -> dict[str, Any]:
    """Return the configuration of the leader's transactional producer (KIP-618).

    Delivery has no limit of its own: librdkafka refuses one beyond `transaction.timeout.ms` and
    follows that when unset.
    """
    forced: dict[str, Any] = {
        "client.id": client_id,
        "transactional.id": transactional_id,
        "enable.idempotence": True,
        "acks": "all",
        "max.in.flight.requests.per.connection": 5,
        "partitioner": "murmur2_random",
    }
    return {"linger.ms": 0, **base, **forced}


def consumer_config(
    base: ClientConfig, client_id: str, *, read_committed: bool = False
) -> dict[str, Any]:
    """Return the configuration of an internal topic's consumer; it never commits.

    Without `read_committed` the isolation level is the worker's own, Java's default if unset.
    """
    defaults: dict[str, Any] = {
        "group.id": client_id,  # librdkafka insists on one
        "isolation.level": "read_uncommitted",
        "queued.max.messages.kbytes": CONSUMER_QUEUE_KILOBYTES,
        "fetch.queue.backoff.ms": 10,
    }
    forced: dict[str, Any] = {
        "client.id": client_id,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
    }
    if read_committed:
        forced["isolation.level"] = "read_committed"
    return {**defaults, **base, **forced}
