"""Fence producers by initialising their transactional ids (Kafka: `Admin.fenceProducers`, KIP-618).

Layer: kafka. librdkafka has no such admin call: a transactional producer per id does the same, and
aborts the transaction that the id may have open. Nothing is ever written with these producers.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka import errors
from pyconnect_agent.kafka.clients import create_producer
from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_agent.kafka.initialisation import initialise

AT_ONCE = 8


def fence(producers: Mapping[str, Mapping[str, Any]], timeout_ms: int) -> None:
    """Initialise each transactional id with its librdkafka configuration.

    Raises KafkaError naming an id that was not fenced in time, or that may not be.
    """
    deadline = Deadline(timeout_ms)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="fencing") as pool:
        fencings = [
            pool.submit(_fence, transactional_id, config, deadline)
            for transactional_id, config in producers.items()
        ]
        try:
            for fencing in fencings:
                fencing.result()
        except KafkaError:
            for fencing in fencings:
                fencing.cancel()
            raise


def _fence(transactional_id: str, config: Mapping[str, Any], deadline: Deadline) -> None:
    with errors.translated(
        f"Failed to fence the producer with transactional id '{transactional_id}'"
    ):
        initialise(create_producer(config), deadline)
