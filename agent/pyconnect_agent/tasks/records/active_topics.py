"""Report to the worker which topics a task uses (KIP-558).

Kafka: `WorkerTask.recordActiveTopic`, which asks the status store for each record; here the worker
hears of a topic at its first use, and then once per period in which it was used again, so that a
topic that was reset in between is listed again.

Threading: `used` anywhere, `refresh` on the task's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PERIOD_S = 5.0


class ActiveTopics:
    """Calls `report` with the names of topics."""

    def __init__(
        self, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report
        self._clock = clock
        self._known: set[str] = set()
        self._used_again: set[str] = set()
        self._period_ends_s = clock() + PERIOD_S

    def used(self, topic: str) -> None:
        """Note that a record went to the topic or came from it; quick enough for each record."""
        if topic in self._known:
            self._used_again.add(topic)
        else:
            self._known.add(topic)
            self._report(topic)

    def refresh(self) -> None:
        """Report topics that were used again, when it is time; to be called once per batch."""
        now_s = self._clock()
        if now_s < self._period_ends_s:
            return
        self._period_ends_s = now_s + PERIOD_S
        # Copied at once: another thread may add to the set at any time.
        topics = frozenset(self._used_again)
        self._used_again -= topics
        for topic in topics:
            self._report(topic)
