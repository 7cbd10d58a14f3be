"""Fence producers by initialising their transactional ids (Kafka: `Admin.fenceProducers`, KIP-618).

librdkafka has no such admin call: a transactional producer per id does the same, and aborts the
transaction that the id may have open. These producers never write a record.

Each call makes librdkafka look for the coordinator at once. If no broker is connected yet, as is
usual for a new client, librdkafka looks again only half a second later, so `initialise` repeats
short calls (KIP-98, KIP-360). A call after a timeout continues the one before.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka import errors
from pyconnect_agent.kafka.clients import create_producer
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_clients.brokers import failures

FIRST_CALL_S = 0.05
LONGEST_CALL_S = 0.5


def initialise(
    producer: Any, deadline: Deadline, give_up: Callable[[], bool] = lambda: False
) -> bool:
    """Initialise the id of a librdkafka producer; return False if the caller gave up before.

    Raises the client's error: at once if a retry does not cure it, otherwise at the deadline.
    """
    call_s = FIRST_CALL_S
    while True:
        try:
            producer.init_transactions(min(call_s, deadline.remaining_s()))
        except failures.CLIENT_ERRORS as exc:
            error = failures.error_of(exc)
            if error is None or not error.retriable() or deadline.expired():
                raise
        else:
            return True
        # The poll calls error callbacks: a wrong protocol, for example, is logged during the
        # retries.
        producer.poll(0)
        if give_up():
            return False
        call_s = min(2 * call_s, LONGEST_CALL_S)


AT_ONCE = 8


def fence(producers: Mapping[str, Mapping[str, Any]], timeout_ms: int) -> None:
    """Initialise each transactional id with its librdkafka configuration.

    Raises KafkaError with an id that was not fenced in time, or that may not be fenced.
    """
    deadline = Deadline(timeout_ms)

    def fence_one(transactional_id: str, config: Mapping[str, Any]) -> None:
        with errors.translated(
            f"Failed to fence the producer with transactional id '{transactional_id}'"
        ):
            initialise(create_producer(config), deadline)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="fencing") as pool:
        fencings = [pool.submit(fence_one, *each) for each in producers.items()]
        try:
            for fencing in fencings:
                fencing.result()
        except KafkaError:
            for fencing in fencings:
                fencing.cancel()
            raise
