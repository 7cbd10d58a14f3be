"""Config, status and offset stores: a reducer of `core` over a compacted log.

Design: docs/explanation/design/stores.md. This module has the log of standalone workers, which ends
with its process. Kafka: MemoryConfigBackingStore, MemoryStatusBackingStore.
"""

import threading
from collections.abc import Sequence

from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.kafka.log import LogReader, ReadRecord
from pyconnect_agent.kafka.producer import OnDelivery


class MemoryLog:
    """A `kafka.log.Log` that keeps no record."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reader: LogReader | None = None
        self._end = 0

    def start(self, reader: LogReader) -> None:
        self._reader = reader
        reader.caught_up()

    def stop(self) -> None:
        """Do nothing: there are no clients."""

    def read_to_end(self, timeout_ms: float) -> None:
        """Do nothing: the reader has every record."""

    def write(self, records: Sequence[LogRecord], timeout_ms: float) -> None:  # noqa: ARG002
        assert self._reader is not None
        # The lock keeps the reports of changes in the order of the writes.
        with self._lock:
            for record in records:
                self._reader.apply(ReadRecord(0, self._end, 0, record.key, record.value))
                self._end += 1
            self._reader.applied()

    def send(self, record: LogRecord, on_delivery: OnDelivery) -> None:
        self.write([record], 0)
        on_delivery(None)

    def flush(self, timeout_ms: float) -> None:
        """Do nothing: no write is outstanding."""
