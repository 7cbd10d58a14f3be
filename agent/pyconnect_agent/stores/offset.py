"""The offset store of distributed workers: an offset topic.

Layer: stores. Kafka: KafkaOffsetBackingStore.
Threading: `read` and `write` block and may come from any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyconnect_agent.kafka.log import Log
from pyconnect_agent.kafka.offset_image import OffsetImage


class KafkaOffsetStore:
    """An offset topic. Implements `ports.OffsetStore`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._image = OffsetImage()

    def start(self) -> None:
        """Start the log; WorkerConfigError, WorkerStartError as `CompactedLog.start`."""
        self._log.start(self._image)

    def stop(self) -> None:
        self._log.stop()

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        self._log.read_to_end(timeout_ms)
        return self._image.lookup(keys)

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        self._log.write(self._image.plan_write(entries), timeout_ms)

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        return self._image.keys_in_use(keys)

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        return self._image.connector_entries(connector)
