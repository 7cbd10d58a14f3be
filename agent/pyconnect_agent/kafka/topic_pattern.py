"""The topics of a cluster that match a sink's `topics.regex`, looked up at intervals.

The module replaces the pattern subscription of Java's consumer, because librdkafka's has a narrower
syntax. The look-up runs on the consumer's thread: on another thread a request for the list would
wait while the client consumes.
"""

import logging
import time
from collections.abc import Callable, Collection

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.java_text.regex import compile_java_regex

LOG = logging.getLogger(__name__)

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Kafka's internal topics, which no pattern matches (Java: `exclude.internal.topics`)."""

RETRY_S = 5.0


class MatchingTopics:
    """The topics whose whole names match `pattern`.

    `topic_names` lists all topics or raises KafkaError; it is called by the first `change`, and
    then every `interval_s`. Raises re.error for an invalid pattern.
    """

    def __init__(
        self,
        pattern: str,
        topic_names: Callable[[], Collection[str]],
        *,
        interval_s: float,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._matches = compile_java_regex(pattern).fullmatch
        self._topic_names = topic_names
        self._interval_s = interval_s
        self._now_s = now_s
        self._next_s = now_s()
        self._found: tuple[str, ...] = ()

    def change(self) -> tuple[str, ...] | None:
        """Return the sorted names if they changed since the last call, else None."""
        if self._now_s() < self._next_s:
            return None
        try:
            names = self._topic_names()
        except KafkaError as exc:
            LOG.warning("topics could not be listed, trying again", extra={"reason": str(exc)})
            self._next_s = self._now_s() + min(RETRY_S, self._interval_s)
            return None
        self._next_s = self._now_s() + self._interval_s
        found = tuple(sorted(n for n in names if n not in INTERNAL_TOPICS and self._matches(n)))
        if found == self._found:
            return None
        self._found = found
        return found
