"""The bytes between this process and a Java process.

The module is pure. A frame is

| bytes | content                                       |
|-------|-----------------------------------------------|
| 4     | length of the rest, little endian             |
| 1     | kind                                          |
| 4     | id: pairs an answer with its question, else 0 |
| rest  | payload                                       |

Payloads are JSON, except batches of records. These are a length, that many bytes of JSON (the
facts), and columns, little endian, one after the other. A column of values with variable length has
first 32 bits for each value, then their bytes. From a source the 32 bits are the end offset,
inverted for a null; for a sink they are the length, -1 for a null. If all values of such a column
are null, the column is left out and the facts name it; for a sink they have the bytes of all values
otherwise. The packed headers of a record are their number, then for each header the length of the
name, the name, the length of the value (-1: null) and the value.

| batch of a source | columns                                                                     |
|-------------------|-----------------------------------------------------------------------------|
| for each record   | topic's place, source partition's place, partition (32 bits each, together) |
|                   | timestamp (64 bits, 0: now), source offset, key, value, headers             |

| batch for a sink  | columns                                                                     |
|-------------------|-----------------------------------------------------------------------------|
|                   | topic's place, partition (32 bits each), offset, timestamp (64 bits each)   |
|                   | type of the timestamp (8 bits), key, value, headers                         |

Source records are already converted, and are decoded only when needed: for most of them only the
columns are used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from operator import itemgetter
from typing import Any, TypeAlias, overload

import msgspec

from pyconnect_api import SourceRecord

HEAD = struct.Struct("<IBi")
_LENGTH = struct.Struct("<I")
_SIGNED = struct.Struct("<i")

Json: TypeAlias = Any
Headers: TypeAlias = list[tuple[str, bytes | None]]


class FrameKind(IntEnum):
    """The kind of a frame; the comment names the sender."""

    JOB = 1  # Python: the first frame
    CALL = 2  # Python
    ANSWER = 3  # both
    ASK = 4  # Java
    BATCH = 5  # Java: records of a poll, or a part of them
    CREDIT = 6  # Python: poll once
    DELIVER = 7  # Python: records for `put`
    ACKS = 8  # Python: results of records
    LOG = 9  # Java
    LEVELS = 10  # Python: of loggers, by name
    STACKS = 11  # Python
    MBEANS = 12  # Python
    TRANSFORM = 13  # both: records for transformations on the other side
    TRANSFORMED = 14  # both: the answer, an outcome for each of these records


def frame(kind: FrameKind, request_id: int, *parts: bytes) -> list[bytes]:
    length = sum(map(len, parts)) + HEAD.size - _LENGTH.size
    return [HEAD.pack(length, kind, request_id), *parts]


def json_bytes(value: Json) -> bytes:
    return msgspec.json.encode(value)


def from_json(payload: bytes | memoryview) -> Json:
    return msgspec.json.decode(payload)


@dataclass(slots=True)
class SourceBatch:
    """Records of a poll in columns; `facts`: the Java process's facts about all of them."""

    facts: dict[str, Any]
    topics: Sequence[str]
    places: Sequence[int]
    partitions: Sequence[int]
    timestamps: Sequence[int]
    offsets: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[bytes | None] | None

    def part(self, rows: slice) -> SourceBatch:
        """Return some of the records, with the facts of all."""
        return self._selected(itemgetter(rows))

    def at(self, places: Sequence[int]) -> SourceBatch:
        """Return the records at some places, with the facts of all."""
        return self._selected(lambda column: [column[place] for place in places])

    def _selected(self, select: Callable[[Any], Any]) -> SourceBatch:
        columns = [getattr(self, column.name) for column in fields(self)[1:]]
        selected: list[Any] = [None if column is None else select(column) for column in columns]
        return SourceBatch(self.facts, *selected)


def decode_source(payload: memoryview) -> SourceBatch:
    """Read a batch; `places` are indexes of `facts["places"]`."""
    columns = _Columns(payload)
    facts: dict[str, Any] = from_json(columns.take(columns.number()))
    count = facts["count"]
    integers = columns.take(12 * count).cast("i").tolist()
    names = facts["topics"]
    if len(names) == 1:
        topics = names * count
    else:
        topics = [names[place] for place in integers[::3]]
    return SourceBatch(
        facts=facts,
        topics=topics,
        places=integers[1::3],
        partitions=integers[2::3],
        timestamps=columns.take(8 * count).cast("q").tolist(),
        offsets=columns.values(count) if facts["offsets"] else [None] * count,
        keys=columns.blob(count, used=facts["keys"]),
        values=columns.blob(count, used=facts["values"]),
        headers=columns.blob(count, used=True) if facts["headers"] else None,
    )


@dataclass(frozen=True, slots=True)
class SinkBatch:
    """Consumed records as columns; `facts` names the columns."""

    facts: Mapping[str, Any]
    columns: Sequence[bytes]

    def payload(self, **facts: Any) -> list[bytes]:
        """Return the pieces of the payload with further facts."""
        head = json_bytes({**self.facts, **facts})
        return [_LENGTH.pack(len(head)), head, *self.columns]


def encode_sink(
    *,
    names: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    offsets: Sequence[int],
    timestamps: Sequence[int],
    types: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Headers | None],
) -> SinkBatch:
    """Return a batch; `names`: each topic once; `types` are those of the timestamps."""
    count = len(topics)
    places = {name: place for place, name in enumerate(names)}
    packed: Sequence[bytes | None] = headers  # type: ignore[assignment]  # all None, or else:
    if any(headers):
        packed = list(map(pack_headers, headers))
    blobs = {"keys": keys, "values": values, "headers": packed}
    columns = [
        bytes(4 * count) if len(names) == 1 else _packed("i", [places[topic] for topic in topics]),
        _mostly_equal("i", partitions),
        _packed("q", offsets),
        _packed("q", timestamps),
        _mostly_equal("b", types),
    ]
    sizes: dict[str, int | None] = {}
    for name, blob in blobs.items():
        encoded = _blob(blob)
        sizes[name] = encoded and len(encoded[1])
        columns += encoded or ()
    return SinkBatch({"count": count, "topics": names, **sizes}, columns)


def pack_headers(headers: Headers | None) -> bytes | None:
    """Return the headers of a record as one value, None without any."""
    if not headers:
        return None
    parts = [_SIGNED.pack(len(headers))]
    for name, value in headers:
        text = name.encode()
        parts += (_SIGNED.pack(len(text)), text)
        if value is None:
            parts.append(_SIGNED.pack(-1))
        else:
            parts += (_SIGNED.pack(len(value)), value)
    return b"".join(parts)


def unpack_headers(packed: bytes | None) -> Headers:
    if packed is None:
        return []
    columns = _Columns(memoryview(packed))
    headers: Headers = []
    for _ in range(columns.number()):
        name = str(columns.take(columns.number()), "utf-8")
        length = columns.number()
        headers.append((name, None if length < 0 else bytes(columns.take(length))))
    return headers


class _Values(Sequence[bytes | None]):
    """A column of values that are cut out at their use; of offsets mostly only the last is used."""

    __slots__ = ("_data", "_ends")

    def __init__(self, ends: Sequence[int], data: bytes) -> None:
        self._ends = ends
        self._data = data

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> bytes | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes | None]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes | None] | None:
        places = range(len(self._ends))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        end, start = self._ends[places], self._ends[places - 1] if places else 0
        return None if end < 0 else self._data[start if start >= 0 else ~start : end]


class _Columns:
    """A reader of columns, one after the other."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def take(self, size: int) -> memoryview:
        start, self._at = self._at, self._at + size
        return self._view[start : self._at]

    def number(self) -> int:
        (number,) = _SIGNED.unpack(self.take(_SIGNED.size))
        return int(number)

    def blob(self, count: int, *, used: bool) -> list[bytes | None]:
        if not used:
            return [None] * count
        ends, data = self._ends_and_data(count)
        if min(ends) >= 0:
            return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        values: list[bytes | None] = []
        start = 0
        for end in ends:
            values.append(None if end < 0 else data[start:end])
            start = end if end >= 0 else start
        return values

    def values(self, count: int) -> _Values:
        return _Values(*self._ends_and_data(count))

    def _ends_and_data(self, count: int) -> tuple[list[int], bytes]:
        ends = self.take(4 * count).cast("i").tolist()
        last = ends[-1]
        return ends, bytes(self.take(last if last >= 0 else ~last))


def _mostly_equal(code: str, numbers: Sequence[int]) -> bytes:
    if numbers and numbers.count(numbers[0]) == len(numbers):
        return _packed(code, numbers[:1]) * len(numbers)
    return _packed(code, numbers)


def _packed(code: str, numbers: Sequence[int]) -> bytes:
    # An array would take twice as long for offsets and lengths.
    return struct.pack(f"{len(numbers)}{code}", *numbers)


def _blob(values: Sequence[bytes | None]) -> tuple[bytes, bytes] | None:
    """Return the lengths and the bytes of values, None if all are null."""
    data: Iterable[bytes | None] = values
    try:
        lengths = list(map(len, values))  # type: ignore[arg-type]  # fails at the first null
    except TypeError:
        if values.count(None) == len(values):
            return None
        lengths = [-1 if value is None else len(value) for value in values]
        data = filter(None, values)
    return _packed("i", lengths), b"".join(data)  # type: ignore[arg-type]  # no null


class JavaSourceRecord(SourceRecord):
    """A record of a Java task; key and value are bytes for Kafka, `number` counts its records.

    `is_dropped`: by a transformation. `failure`: the report of a failed conversion, or None.
    """

    __slots__ = ("failure", "is_dropped", "kafka_headers", "number")

    number: int
    kafka_headers: Headers
    is_dropped: bool
    failure: Mapping[str, Any] | None

    def __repr__(self) -> str:
        """Return Java's text of a failed record, if the connector logs it."""
        shown = None if self.failure is None else self.failure.get("record")
        return super().__repr__() if shown is None else str(shown)


class JavaSourceRecords(Sequence[SourceRecord]):
    """Records of a poll, in the columns of `SourceBatch`.

    `numbers` are those of the records. Keys of `dropped` and `failures` are places in this
    sequence.
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
