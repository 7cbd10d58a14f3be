"""The offset store of distributed workers: an offset topic.

Layer: stores. Kafka: KafkaOffsetBackingStore; spec internal-topics.md §3.
Threading: `read` and `write` block and may come from any thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from pyconnect_agent.core.offsetlog import OffsetLog
from pyconnect_agent.kafka.log import Log, ReadRecord
from pyconnect_agent.stores.notices import log_notices

_log = logging.getLogger(__name__)


class KafkaOffsetStore:
    """An offset topic. Implements `ports.OffsetStore`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._offsets = OffsetLog()

    def start(self) -> None:
        """WorkerConfigError, WorkerStartError as `CompactedLog.start`."""
        self._log.start(_OffsetReader(self._lock, self._offsets))

    def stop(self) -> None:
        self._log.stop()

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        self._log.read_to_end(timeout_ms)
        with self._lock:
            return {key: self._offsets.lookup(key) for key in keys}

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        with self._lock:
            records = self._offsets.plan_write(entries.items())
        self._log.write(records, timeout_ms)

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        with self._lock:
            return self._offsets.connector_entries(connector)


class _OffsetReader:
    """What the tailing thread calls."""

    def __init__(self, lock: threading.Lock, offsets: OffsetLog) -> None:
        self._lock = lock
        self._offsets = offsets

    def apply(self, record: ReadRecord) -> None:
        with self._lock:
            notices = self._offsets.apply(record.key, record.value, record.timestamp_ms)
        if notices:
            log_notices(_log, notices)

    def applied(self) -> None:
        """Offsets are visible as soon as they are applied."""

    def caught_up(self) -> None:
        """Offsets are visible as soon as they are applied."""
