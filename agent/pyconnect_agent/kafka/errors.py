"""The translation of client errors into the agent's, and the time of a call of several steps.

`pyconnect_clients.brokers.failures` classifies failures, for other packages too. Above this
layer there are only `core.errors`, and callers check `retriable`, never the text. Each step of
a call gets the time that remains; the clock is the monotonic one.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyconnect_agent.core import errors
from pyconnect_clients.brokers.failures import REQUEST_ERRORS, FailureKind, error_of, failure_of

_CLASSES = {
    FailureKind.RECORD_TOO_LARGE: errors.RecordTooLargeError,
    FailureKind.FENCED: errors.ProducerFencedError,
    FailureKind.DENIED: errors.AuthorizationError,
    FailureKind.NOT_AUTHENTICATED: errors.AuthenticationError,
    FailureKind.OTHER: errors.KafkaError,
}


def translate(
    failure: BaseException | Any, action: str, *, grant: str | None = None
) -> errors.KafkaError:
    """Turn a client's exception or delivery error into an error of the agent.

    `action` begins the message: the failed operation and its object. `grant` ends the message of
    a denial: the missing right, and the client that lacks it.
    """
    found = failure_of(failure)
    error = error_of(failure)
    message = f"{action}: {found.text}" + ("" if error is None else f" ({error.name()})")
    if grant and found.kind is FailureKind.DENIED:
        message = f"{message}. Grant {grant}."
    return _CLASSES.get(found.kind, errors.RetriableKafkaError)(message)


@contextmanager
def translated(
    action: str, translation: Callable[[BaseException, str], errors.KafkaError] = translate
) -> Iterator[None]:
    """Raise a client's exception as an error of the agent."""
    try:
        yield
    except REQUEST_ERRORS as exc:
        raise translation(exc, action) from exc


class Deadline:
    """The moment `timeout_ms` after its construction."""

    __slots__ = ("_end_s",)

    def __init__(self, timeout_ms: float) -> None:
        self._end_s = time.monotonic() + timeout_ms / 1000

    def remaining_s(self) -> float:
        """Return the seconds left, never negative."""
        return max(0.0, self._end_s - time.monotonic())

    def remaining_ms(self) -> int:
        """Return the milliseconds left, never negative."""
        return int(self.remaining_s() * 1000)

    def expired(self) -> bool:
        return self.remaining_s() <= 0
