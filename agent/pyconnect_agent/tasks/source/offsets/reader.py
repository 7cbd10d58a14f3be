"""Reads committed source offsets through the worker (Kafka: OffsetStorageReaderImpl).

Layer: tasks. Entries whose bytes cannot be decoded are logged and left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.offsets.source import parse_offset, partition_key
from pyconnect_api import ConnectException, DataException, OffsetStorageReader

LOG = logging.getLogger(__name__)

ReadOffsets = Callable[[tuple[bytes, ...], int], Mapping[bytes, bytes | None]]
"""Looks up raw keys within so many ms, after reading to the end. Raises AgentError."""

TIMEOUT_MS = 60_000


class WorkerOffsetReader(OffsetStorageReader):
    """Any thread may read; `close` makes further reads fail."""

    def __init__(self, connector: str, read: ReadOffsets) -> None:
        self._connector = connector
        self._read = read
        self._closed = False

    def close(self) -> None:
        self._closed = True

    def offset(self, partition: Mapping[str, object]) -> Mapping[str, object] | None:
        found = self.offsets([partition])
        return found[0][1] if found else None

    def offsets(
        self, partitions: Sequence[Mapping[str, object]]
    ) -> Sequence[tuple[Mapping[str, object], Mapping[str, object] | None]]:
        if self._closed:
            raise ConnectException(
                "Offset reader closed while attempting to read offsets. "
                "The task or connector was stopped."
            )
        keys = [partition_key(self._connector, partition) for partition in partitions]
        try:
            values = self._read(tuple(dict.fromkeys(keys)), TIMEOUT_MS)
        except (AgentError, OSError) as exc:
            raise ConnectException("Failed to fetch offsets.") from exc
        result: list[tuple[Mapping[str, object], Mapping[str, object] | None]] = []
        for partition, key in zip(partitions, keys, strict=True):
            try:
                result.append((partition, parse_offset(values.get(key))))
            except DataException:
                LOG.exception("stored offset cannot be decoded", extra={"partition": partition})
        return result
