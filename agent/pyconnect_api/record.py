"""Records of tasks: data with schemas, before or after the converters.

Corresponds to `ConnectRecord`, `SourceRecord` and `SinkRecord` of Kafka Connect. A task handles one
object per record, so these are plain slotted classes: immutable by convention, with headers that
are made only when asked for. Equality is by all fields; code that has to distinguish equal records
compares identities.

Unlike Kafka, many records can also be columns. Making a record object costs more than the rest of a
worker's work for a line of text. So a task whose records differ only in value, key and offset may
return a `SourceRecords` from `poll`, and a task that needs only the values may take them from a
`SinkRecords`. A record is made only when it is read. Both classes are sequences of records, so code
that does not know them works with them too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, Self, TypeVar, overload

from pyconnect_api.header import ConnectHeaders, Header
from pyconnect_api.schema import Schema


class TimestampType(Enum):
    """The origin of a consumed record's timestamp; the value is Kafka's name."""

    NO_TIMESTAMP_TYPE = "NoTimestampType"
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.value


class ConnectRecord:
    """The common base of source and sink records; it has no instances of its own.

    `timestamp` is milliseconds since the epoch or None. A schema of None means schemaless data.
    """

    __slots__ = (
        "_headers",
        "kafka_partition",
        "key",
        "key_schema",
        "timestamp",
        "topic",
        "value",
        "value_schema",
    )

    topic: str | None
    kafka_partition: int | None
    key_schema: Schema | None
    key: object
    value_schema: Schema | None
    value: object
    timestamp: int | None
    _headers: Iterable[Header] | None

    @property
    def headers(self) -> ConnectHeaders:
        """Headers of this record; no other record shares them."""
        headers = self._headers
        if headers.__class__ is not ConnectHeaders:
            headers = self._headers = ConnectHeaders(headers)
        return headers

    @property
    def has_headers(self) -> bool:
        """Whether the record has a header; quicker than the length of `headers`."""
        return self._headers is not None and len(self.headers) > 0

    def new_record(  # noqa: PLR0917  # Kafka's order
        self,
        topic: str | None,
        kafka_partition: int | None,
        key_schema: Schema | None,
        key: object,
        value_schema: Schema | None,
        value: object,
        timestamp: int | None,
        headers: Iterable[Header] | None = None,
    ) -> Self:
        """Return a record like this one with these parts replaced.

        Without `headers` those of this record are copied; given ones are copied too, so that no two
        records share a collection.
        """
        raise NotImplementedError

    def _copied_headers(self, headers: Iterable[Header] | None) -> Iterable[Header] | None:
        if headers is not None:
            return ConnectHeaders(headers)
        return None if self._headers is None else ConnectHeaders(self.headers)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._parts() == other._parts()

    # Keys and values may be dicts and lists, so a record has no hash.
    __hash__ = None  # type: ignore[assignment]  # mutable, so it must not be a key

    def _parts(self) -> tuple[object, ...]:
        return (
            self.topic,
            self.kafka_partition,
            self.key_schema,
            self.key,
            self.value_schema,
            self.value,
            self.timestamp,
            self.headers,
        )

    def _text(self) -> str:
        return (
            f"ConnectRecord{{topic='{self.topic}', kafkaPartition={self.kafka_partition}, "
            f"key={self.key}, keySchema={self.key_schema}, value={self.value}, "
            f"valueSchema={self.value_schema}, timestamp={self.timestamp}, "
            f"headers={self.headers}}}"
        )


class SourceRecord(ConnectRecord):
    """A record from a source task.

    `source_partition` names a part of the source system, `source_offset` the position in it to
    resume after; both are maps of JSON primitives, committed once the record is in Kafka. Do not
    change either one later: the commit would store the changed offset, and records would be lost.
    """

    __slots__ = ("source_offset", "source_partition")

    def __init__(  # noqa: PLR0917  # Kafka's order
        self,
        source_partition: Mapping[str, object] | None,
        source_offset: Mapping[str, object] | None,
        topic: str | None,
        kafka_partition: int | None = None,
        key_schema: Schema | None = None,
        key: object = None,
        value_schema: Schema | None = None,
        value: object = None,
        timestamp: int | None = None,
        headers: Iterable[Header] | None = None,
    ) -> None:
        self.source_partition = source_partition
        self.source_offset = source_offset
        self.topic = topic
        self.kafka_partition = kafka_partition
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        self.timestamp = timestamp
        self._headers = headers

    def new_record(  # noqa: PLR0917  # Kafka's order
        self,
        topic: str | None,
        kafka_partition: int | None,
        key_schema: Schema | None,
        key: object,
        value_schema: Schema | None,
        value: object,
        timestamp: int | None,
        headers: Iterable[Header] | None = None,
    ) -> Self:
        return self.__class__(
            self.source_partition,
            self.source_offset,
            topic,
            kafka_partition,
            key_schema,
            key,
            value_schema,
            value,
            timestamp,
            self._copied_headers(headers),
        )

    def _parts(self) -> tuple[object, ...]:
        return (*super()._parts(), self.source_partition, self.source_offset)

    def __repr__(self) -> str:
        return (
            f"SourceRecord{{sourcePartition={self.source_partition}, "
            f"sourceOffset={self.source_offset}}} {self._text()}"
        )


class SinkRecord(ConnectRecord):
    """A record from Kafka for a sink task.

    The `original_…` attributes keep topic, partition and offset of the consumed record (KIP-793):
    use them for offsets, because transformations can replace the plain ones.
    """

    __slots__ = (
        "kafka_offset",
        "original_kafka_offset",
        "original_kafka_partition",
        "original_topic",
        "timestamp_type",
    )

    def __init__(  # noqa: PLR0917  # Kafka's order
        self,
        topic: str,
        kafka_partition: int,
        key_schema: Schema | None,
        key: object,
        value_schema: Schema | None,
        value: object,
        kafka_offset: int,
        timestamp: int | None = None,
        timestamp_type: TimestampType = TimestampType.NO_TIMESTAMP_TYPE,
        headers: Iterable[Header] | None = None,
        original_topic: str | None = None,
        original_kafka_partition: int | None = None,
        original_kafka_offset: int | None = None,
    ) -> None:
        self.topic = topic
        self.kafka_partition = kafka_partition
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        self.kafka_offset = kafka_offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self._headers = headers
        self.original_topic = topic if original_topic is None else original_topic
        self.original_kafka_partition = (
            kafka_partition if original_kafka_partition is None else original_kafka_partition
        )
        self.original_kafka_offset = (
            kafka_offset if original_kafka_offset is None else original_kafka_offset
        )

    def new_record(  # noqa: PLR0917  # Kafka's order
        self,
        topic: str | None,
        kafka_partition: int | None,
        key_schema: Schema | None,
        key: object,
        value_schema: Schema | None,
        value: object,
        timestamp: int | None,
        headers: Iterable[Header] | None = None,
    ) -> Self:
        return self.__class__(
            topic,  # type: ignore[arg-type]  # a transformation may set what Kafka never sends
            kafka_partition,  # type: ignore[arg-type]  # likewise
            key_schema,
            key,
            value_schema,
            value,
            self.kafka_offset,
            timestamp,
            self.timestamp_type,
            self._copied_headers(headers),
            self.original_topic,
            self.original_kafka_partition,
            self.original_kafka_offset,
        )

    def _parts(self) -> tuple[object, ...]:
        return (
            *super()._parts(),
            self.kafka_offset,
            self.timestamp_type,
            self.original_topic,
            self.original_kafka_partition,
            self.original_kafka_offset,
        )

    def __repr__(self) -> str:
        return (
            f"SinkRecord{{kafkaOffset={self.kafka_offset}, timestampType={self.timestamp_type}, "
            f"originalTopic={self.original_topic}, "
            f"originalKafkaPartition={self.original_kafka_partition}, "
            f"originalKafkaOffset={self.original_kafka_offset}}} {self._text()}"
        )


def without_headers(records: Iterable[ConnectRecord]) -> bool:
    """Return whether certainly no record has headers; quicker than asking each record."""
    return not any([record._headers for record in records])  # noqa: SLF001, C419  ours, and hot


R = TypeVar("R", SourceRecord, SinkRecord)


class _Records(Sequence[R], Generic[R]):
    """A sequence of records; `values` are theirs, in their order. Do not change either one."""

    __slots__ = ("_made", "values")

    def __init__(self, values: Sequence[object]) -> None:
        self.values = values
        self._made: list[R] | None = None

    def _make(self) -> list[R]:
        raise NotImplementedError

    def _records(self) -> list[R]:
        """Return the records, the same objects each time."""
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
    """Records of one source partition for one topic, with the same schemas and timestamp.

    `source_offsets` and `keys` are as long as `values`; `keys` None means no keys. Often only the
    last offset is read, so `source_offsets` may be a sequence that makes them on access.
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
        # Code compares records by identity, so a part has the same objects.
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
    """Records as the worker gives them to `put` when no step before had to change a record."""

    __slots__ = ("_maker",)

    def __init__(self, values: Sequence[object], make: Callable[[], list[SinkRecord]]) -> None:
        """Keep `make`, which returns a record for each value; it is called at most once."""
        super().__init__(values)
        self._maker = make

    def _make(self) -> list[SinkRecord]:
        return self._maker()
