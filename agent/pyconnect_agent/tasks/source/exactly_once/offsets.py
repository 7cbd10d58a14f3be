"""The source offsets of the records in an open transaction.

Layer: tasks. Only of records that the producer took: others must not be committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyconnect_agent.core.offsets.source import OffsetWriter, PartitionOffset, SourceEntries
from pyconnect_agent.tasks.source.columns import by_partition
from pyconnect_api import DataException, SourceRecord


class TransactionOffsets:
    """Keeps the newest offset of each source partition until a flush of them succeeded."""

    def __init__(self, connector: str) -> None:
        self._writer = OffsetWriter(connector)
        # That of the last record, not yet with the writer: most tasks stay with one partition.
        self._newest: PartitionOffset | None = None
        self._error: DataException | None = None

    def note(self, record: SourceRecord) -> None:
        self._note((record.source_partition, record.source_offset))

    def note_many(self, records: Sequence[SourceRecord]) -> None:
        if records:
            for partition, offset, _ in by_partition(records):
                self._note((partition, offset))

    def forget_errors(self) -> None:
        """Forget errors of the offsets of a transaction that was aborted."""
        self._error = None

    def begin_flush(self) -> SourceEntries:
        """Return the entries to write; empty when there are none, and no flush began.

        Raises DataException when an offset has no bytes.
        """
        if self._newest is not None:
            self._writer.put([self._newest])
            self._newest = None
        entries = self._writer.begin_flush()
        if self._error is not None:
            raise self._error
        return entries

    def end_flush(self) -> None:
        self._writer.end_flush()

    def cancel_flush(self) -> None:
        self._writer.cancel_flush()

    def _note(self, newest: PartitionOffset) -> None:
        if self._newest is not None and newest[0] is not self._newest[0]:
            try:
                self._writer.put([self._newest])
            except DataException as exc:
                self._error = exc
        self._newest = newest
