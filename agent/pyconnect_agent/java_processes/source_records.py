"""Source records from a Java process: already converted, and decoded only when needed.

For most records only the columns are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from pyconnect_agent.java_processes.frames import Headers, SourceBatch, from_json, unpack_headers
from pyconnect_api import SourceRecord


class JavaSourceRecord(SourceRecord):
    """`number` counts a task's records. Key and value are bytes for Kafka.

    `is_dropped`: by a transformation. `failure`: the report of a failed conversion, or None.
    """

    __slots__ = ("failure", "is_dropped", "kafka_headers", "number")

    number: int
    kafka_headers: Headers
    is_dropped: bool
    failure: Mapping[str, Any] | None

    def __repr__(self) -> str:
        """Return what Java shows of a record that failed, if the connector logs that."""
        shown = None if self.failure is None else self.failure.get("record")
        return super().__repr__() if shown is None else str(shown)


class JavaSourceRecords(Sequence[SourceRecord]):
    """Records of a poll, in the columns of `SourceBatch`.

    `numbers` are those of the records. `dropped` and `failures` are by places in this sequence.
    """

    __slots__ = ("_made", "batch", "dropped", "failures", "numbers")

    def __init__(
        self,
        batch: SourceBatch,
        numbers: Sequence[int],
        dropped: frozenset[int],
        failures: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self.batch = batch
        self.numbers = numbers
        self.dropped = dropped
        self.failures = failures
        self._made: list[SourceRecord] | None = None

    @classmethod
    def of(cls, batch: SourceBatch) -> JavaSourceRecords:
        """Return the records of a batch."""
        facts, first = batch.facts, batch.facts.get("first", 0)
        failures = {failure["row"]: failure for failure in facts.get("failures", ())}
        numbers = range(first, first + len(batch.values))
        return cls(batch, numbers, frozenset(facts.get("dropped", ())), failures)

    def at(self, places: Sequence[int]) -> JavaSourceRecords:
        """Return the records at some places; none of them may be dropped or failed."""
        numbers = [self.numbers[place] for place in places]
        return JavaSourceRecords(self.batch.at(places), numbers, frozenset(), {})

    def by_partition(self) -> list[tuple[Any, Any, Sequence[int]]]:
        """Return each source partition, its last offset and the places of its records."""
        last, *others = set(self.batch.places)
        if not others:
            return [(self._partition(last), self._offset(-1), range(len(self)))]
        found: dict[int, list[int]] = {}
        for index, place in enumerate(self.batch.places):
            found.setdefault(place, []).append(index)
        return [
            (self._partition(place), self._offset(mine[-1]), mine) for place, mine in found.items()
        ]

    def __len__(self) -> int:
        return len(self.batch.values)

    def __iter__(self) -> Iterator[SourceRecord]:
        return iter(self._records())

    @overload
    def __getitem__(self, index: int) -> SourceRecord: ...
    @overload
    def __getitem__(self, index: slice) -> JavaSourceRecords: ...
    def __getitem__(self, index: int | slice) -> SourceRecord | JavaSourceRecords:
        if not isinstance(index, slice):
            return self._records()[index]
        start, stop, step = index.indices(len(self))
        assert step == 1
        part = JavaSourceRecords(
            self.batch.part(index),
            self.numbers[index],
            frozenset(place - start for place in self.dropped if start <= place < stop),
            {at - start: failed for at, failed in self.failures.items() if start <= at < stop},
        )
        # Records are distinguished by identity.
        part._made = None if self._made is None else self._made[index]
        return part

    def _records(self) -> list[SourceRecord]:
        if self._made is not None:
            return self._made
        batch = self.batch
        made: list[SourceRecord] = []
        for place, partition in enumerate(batch.partitions):
            record = JavaSourceRecord(
                self._partition(batch.places[place]),
                self._offset(place),
                batch.topics[place],
                None if partition < 0 else partition,
                None,
                batch.keys[place],
                None,
                batch.values[place],
                batch.timestamps[place],
            )
            packed = None if batch.headers is None else batch.headers[place]
            record.number = self.numbers[place]
            record.kafka_headers = unpack_headers(packed)
            record.is_dropped = place in self.dropped
            record.failure = self.failures.get(place)
            made.append(record)
        self._made = made
        return made

    def _offset(self, place: int) -> Any:
        offset = self.batch.offsets[place]
        return None if offset is None else from_json(offset)

    def _partition(self, place: int) -> Any:
        return self.batch.facts["places"][place]
