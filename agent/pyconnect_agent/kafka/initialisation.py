"""Initialise a transactional id: fence its producers, end its transaction (KIP-98, KIP-360).

Layer: kafka. Blocks its thread. Each call makes librdkafka look for the coordinator at once. If no
broker is connected yet, as is usual for a new client, librdkafka looks again only half a second
later, so this module repeats short calls. A call after a timeout continues the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_clients.brokers import failures

FIRST_CALL_S = 0.05
LONGEST_CALL_S = 0.5


def initialise(
    producer: Any, deadline: Deadline, give_up: Callable[[], bool] = lambda: False
) -> bool:
    """Initialise the id of a librdkafka producer; False when given up before.

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
        # Serves the client's errors: a wrong protocol, say, is logged while this call is repeated.
        producer.poll(0)
        if give_up():
            return False
        call_s = min(2 * call_s, LONGEST_CALL_S)
