"""Initialise a transactional id: fence its producers, end its transaction (KIP-98, KIP-360).

Layer: kafka. Blocks its thread. librdkafka looks for the coordinator when it is asked to, and again
half a second later if no broker was connected yet, which is usual of a client just made. Asked
again it looks at once. A call that timed out has ended nothing: the next one goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyconnect_agent.kafka import errors
from pyconnect_agent.kafka.deadline import Deadline

FIRST_CALL_S = 0.05
LONGEST_CALL_S = 0.5


def initialise(
    producer: Any, deadline: Deadline, give_up: Callable[[], bool] = lambda: False
) -> bool:
    """Initialise the id of a librdkafka producer; False when given up before.

    Raises the client's error: at once one that repeating does not cure, any other at the deadline.
    """
    call_s = FIRST_CALL_S
    while True:
        try:
            producer.init_transactions(min(call_s, deadline.remaining_s()))
        except errors.CLIENT_ERRORS as exc:
            error = errors.error_of(exc)
            if error is None or not error.retriable() or deadline.expired():
                raise
        else:
            return True
        if give_up():
            return False
        call_s = min(2 * call_s, LONGEST_CALL_S)
