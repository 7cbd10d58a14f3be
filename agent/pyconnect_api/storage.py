"""Read access to the stored offsets of a source connector.

Corresponds to Kafka Connect's ``OffsetStorageReader``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeAlias

SourcePartition: TypeAlias = Mapping[str, object]
"""Names one input of a source connector; string keys, values None, bool, int, float or str."""

SourceOffset: TypeAlias = Mapping[str, object]
"""A position within a source partition; same restrictions as `SourcePartition`."""


class OffsetStorageReader(ABC):
    """Looks up the offsets that were last committed for source partitions.

    Reads go to the store, never to offsets that are still to be flushed. Integers come back as
    ``int`` whatever their original width.
    """

    @abstractmethod
    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """Return the last committed offset of ``partition``, or None when there is none.

        Raises ConnectException when the worker has cancelled the task or connector.
        """

    @abstractmethod
    def offsets(
        self, partitions: Sequence[SourcePartition]
    ) -> Sequence[tuple[SourcePartition, SourceOffset | None]]:
        """Return ``(partition, offset or None)`` for every partition, in the given order.

        Entries whose stored bytes cannot be decoded are logged and left out. Raises
        ConnectException when the worker has cancelled the task or connector.
        """
