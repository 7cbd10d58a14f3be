"""Many records at once, as columns: a record is made only when it is read.

Kafka has nothing like it. Making a record object costs more than all else that a worker does with
a line of text, so a task that has the same of every record may return a `SourceRecords` from
`poll`, and one that needs nothing but the values may take them from a `SinkRecords`. Both are
sequences of records otherwise, and nothing has to know them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from pyconnect_api.record import SinkRecord, SourceRecord
from pyconnect_api.schema import Schema

R = TypeVar("R", SourceRecord, SinkRecord)


class _Records(Sequence[R], Generic[R]):
    """`values` are those of the records, in their order; neither may be changed."""

    __slots__ = ("_made", "values")

    def __init__(self, values: Sequence[object]) -> None:
        self.values = values
        self._made: list[R] | None = None

    def _make(self) -> list[R]:
        raise NotImplementedError

    def _records(self) -> list[R]:
        """Return the records; the same objects each time."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[R]:
        return iter(self._records())

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...
    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        return self._records()[index]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._records()!r})"


class SourceRecords(_Records[SourceRecord]):
    """Records of one source partition for one topic, whose schemas and timestamp are the same.

    `source_offsets` and `keys` are as long as `values`; `keys` None means no keys. Of the offsets
    mostly only the last one is looked at, so they may be a sequence that makes them when asked.
    """

    __slots__ = (
        "key_schema",
        "keys",
        "source_offsets",
        "source_partition",
        "timestamp",
        "topic",
        "value_schema",
    )

    def __init__(
        self,
        source_partition: Any,
        source_offsets: Sequence[Any],
        topic: str,
        value_schema: Schema | None,
        values: Sequence[object],
        *,
        key_schema: Schema | None = None,
        keys: Sequence[object] | None = None,
        timestamp: int | None = None,
    ) -> None:
        super().__init__(values)
        keys = [None] * len(values) if keys is None else keys
        if not len(source_offsets) == len(keys) == len(values):
            raise ValueError("There must be as many offsets and keys as values")
        self.source_partition = source_partition
        self.source_offsets = source_offsets
        self.topic = topic
        self.value_schema = value_schema
        self.key_schema = key_schema
        self.keys = keys
        self.timestamp = timestamp

    @overload
    def __getitem__(self, index: int) -> SourceRecord: ...
    @overload
    def __getitem__(self, index: slice) -> "SourceRecords": ...
    def __getitem__(self, index: int | slice) -> "SourceRecord | SourceRecords":
        if not isinstance(index, slice):
            return self._records()[index]
        part = SourceRecords(
            self.source_partition,
            self.source_offsets[index],
            self.topic,
            self.value_schema,
            self.values[index],
            key_schema=self.key_schema,
            keys=self.keys[index],
            timestamp=self.timestamp,
        )
        # Records are distinguished by identity.
        part._made = None if self._made is None else self._made[index]
        return part

    def _make(self) -> list[SourceRecord]:
        partition, topic, timestamp = self.source_partition, self.topic, self.timestamp
        key_schema, value_schema = self.key_schema, self.value_schema
        return [
            SourceRecord(
                partition, offset, topic, None, key_schema, key, value_schema, value, timestamp
            )
            for offset, key, value in zip(self.source_offsets, self.keys, self.values, strict=True)
        ]


class SinkRecords(_Records[SinkRecord]):
    """Records as the worker gives them to `put`, when nothing had to be done to any of them."""

    __slots__ = ("_maker",)

    def __init__(self, values: Sequence[object], make: Callable[[], list[SinkRecord]]) -> None:
        """`make` returns a record for each value; it is called at most once."""
        super().__init__(values)
        self._maker = make

    def _make(self) -> list[SinkRecord]:
        return self._maker()
