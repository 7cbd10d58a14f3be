"""The content of an offset topic, kept up to date by the log that reads it.

Kafka: the data map of KafkaOffsetBackingStore. Serves the worker's own offset store and, in their
processes, connectors and tasks with an offsets topic of their own. Threading: the log's thread
applies, any thread asks.
"""

import logging
import threading
from collections.abc import Mapping, Sequence

from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.internal_topics.offsetlog import OffsetLog
from pyconnect_agent.kafka.log import ReadRecord, log_notices

_log = logging.getLogger(__name__)


class OffsetImage:
    """The `log.LogReader` of offsets. Each answer reflects all records that were read so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offsets = OffsetLog()

    def lookup(self, keys: Sequence[bytes]) -> dict[bytes, bytes | None]:
        """Return values by key; keys with equal content are the same."""
        with self._lock:
            return {key: self._offsets.lookup(key) for key in keys}

    def plan_write(self, entries: Mapping[bytes, bytes | None]) -> tuple[LogRecord, ...]:
        """Return the records that write entries under keys in use; see `OffsetLog.plan_write`."""
        with self._lock:
            return self._offsets.plan_write(entries.items())

    def keys_in_use(self, keys: Sequence[bytes]) -> dict[bytes, tuple[bytes, ...]]:
        """Return the live raw keys of equal content, newest first; none for a key not in use."""
        with self._lock:
            return {key: self._offsets.keys_in_use(key) for key in keys}

    def connector_entries(self, connector: str) -> dict[bytes, bytes]:
        """Return every live raw entry of a connector."""
        with self._lock:
            return self._offsets.connector_entries(connector)

    def apply(self, record: ReadRecord) -> None:
        with self._lock:
            notices = self._offsets.apply(record.key, record.value, record.timestamp_ms)
        if notices:
            log_notices(_log, notices)

    def applied(self) -> None:
        """Do nothing: offsets are visible as soon as they are applied."""

    def caught_up(self) -> None:
        """Do nothing: offsets are visible as soon as they are applied."""
