"""Offsets of a sink task: consumed, accepted, committed (Kafka: WorkerSinkTask's three maps).

Every offset is that of the next record, as a group commits it. One owner, the task's thread.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pyconnect_api import TopicPartition

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """Offsets to commit, and the refused ones of `pre_commit`: partition, offset and reason."""

    offsets: Offsets
    refused: tuple[tuple[TopicPartition, int, str], ...] = ()


@dataclass(slots=True)
class SinkOffsets:
    """Offsets of a task: `consumed` of batches before `put` accepts them, `current` after."""

    consumed: Offsets = field(default_factory=dict)
    current: Offsets = field(default_factory=dict)
    committed: Offsets = field(default_factory=dict)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Start partitions at their positions, which count as committed and as current."""
        self.committed.update(positions)
        self.current.update(positions)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop everything about revoked or lost partitions.

        Kafka keeps revoked ones in two of its maps, from where a stale offset can come back.
        """
        for partition in partitions:
            self.consumed.pop(partition, None)
            self.current.pop(partition, None)
            self.committed.pop(partition, None)

    def accept(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that the task has accepted all records before these offsets."""
        self.current.update(offsets)
        for partition, offset in offsets.items():
            if self.consumed.get(partition) == offset:
                del self.consumed[partition]

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue at other offsets: those that a task asked for, or the last commit."""
        self.committed.update(offsets)
        self.current.update(offsets)
        for partition in offsets:
            self.consumed.pop(partition, None)

    def uncommitted(self) -> int:
        """Return the number of consumed records without committed offsets; never negative."""
        return sum(
            max(0, self.consumed.get(partition, current) - self.committed.get(partition, current))
            for partition, current in tuple(self.current.items())
        )

    def offered(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return the offsets that `pre_commit` gets for these partitions."""
        wanted = set(partitions)
        return {p: offset for p, offset in self.current.items() if p in wanted}

    def base(self, offered: Mapping[TopicPartition, int]) -> Offsets:
        """Return the last commit of the offered partitions."""
        return {p: offset for p, offset in self.committed.items() if p in offered}


def validate(
    *,
    base: Mapping[TopicPartition, int],
    offered: Mapping[TopicPartition, int],
    provided: Mapping[TopicPartition, int],
    assignment: Collection[TopicPartition],
) -> Validated:
    """Return the committable offsets of `provided`; other partitions stay at `base`.

    An offset below the last commit is allowed, one beyond the offered offsets is not.
    """
    offsets = dict(base)
    refused: list[tuple[TopicPartition, int, str]] = []
    for partition, offset in provided.items():
        if partition in offsets:
            if offset <= offered[partition]:
                offsets[partition] = offset
            else:
                refused.append((partition, offset, "not yet consumed"))
        elif partition not in assignment:
            refused.append((partition, offset, "partition not assigned"))
    return Validated(offsets=offsets, refused=tuple(refused))
