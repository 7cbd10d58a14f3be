"""What a LakeSink task asks of the place that it writes to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from pyconnect_api import SinkRecord, TopicPartition


class Target(Protocol):
    """Files or tables. Methods may raise RetriableException and be called again."""

    def open(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Take partitions; return where those continue that the target knows."""

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the buffered rows of partitions."""

    def add(self, records: Sequence[SinkRecord]) -> None:
        """Take records; those that it took before are left out.

        DataException for a record that cannot be written: none behind it was taken.
        """

    def skip(self, record: SinkRecord) -> None:
        """Note that a record, the next of its partition, is not to be written."""

    def write_due(self) -> None:
        """Write the rows that are due by the clock."""

    def finish(self, partitions: Collection[TopicPartition]) -> None:
        """Write all that is buffered of partitions."""

    def next_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset before which every record is stored, None if that is not known."""

    def take_rewinds(self) -> Mapping[TopicPartition, int]:
        """Return, once, where partitions go on that another task has written to."""
