"""The attempts of a task whose calls fail for a reason that may pass, such as a lost connection."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyconnect_api import ConnectException, RetriableException, StopSignal
from pyconnect_connectors.settings import BACKOFF_MS, RETRIES, setting

LOG = logging.getLogger(__name__)


class Attempts:
    """Counts failures in a row; the worker repeats the call. `event`: the text of the log."""

    def __init__(self, event: str, *, max_retries: int, backoff_ms: int) -> None:
        self._event = event
        self._max_retries = max_retries
        self._backoff_ms = backoff_ms
        self._failures = 0
        self._must_wait = False

    def wait(self, stop_requested: StopSignal) -> bool:
        """Wait before a source's next attempt; return False when the task is to stop.

        Not before the failure was raised: the worker shows it in the status.
        """
        if not self._must_wait:
            return True
        self._must_wait = False
        return not stop_requested.wait(self._backoff_ms / 1000)

    @contextmanager
    def limited(self, timeout: Callable[[int], None] | None = None) -> Iterator[None]:
        """Raise ConnectException in place of the last attempt's error.

        `timeout`: that of a sink's context, which tells the worker when to repeat the call.
        """
        try:
            yield
        except RetriableException as error:
            self._failures += 1
            if self._failures > self._max_retries:
                raise ConnectException(f"{error} ({self._failures} attempts)") from error
            LOG.warning(self._event, extra={"reason": str(error)})
            self._must_wait = True
            if timeout is not None:
                timeout(self._backoff_ms)
            raise
        self._failures = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """The settings that `settings.define_retries` defines."""

    max_retries: int = setting(RETRIES)
    backoff_ms: int = setting(BACKOFF_MS)

    def attempts(self, event: str) -> Attempts:
        return Attempts(event, max_retries=self.max_retries, backoff_ms=self.backoff_ms)
