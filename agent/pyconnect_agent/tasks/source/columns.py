"""Records of one poll as columns, from the task's records to the arguments of the producer.

Calls of Python are made once for each column instead of once for each record, by comprehensions and
the converters' forms for many values. Nothing is reported or retried here. After any exception the
records are converted one by one; the faulty record raises it again there, where tolerance, log and
trace are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from typing import Any, TypeAlias

from pyconnect_agent.core.offsets.submitted import canonical_partition
from pyconnect_agent.java_processes.source_records import JavaSourceRecords
from pyconnect_agent.kafka.task_producer import KafkaHeaders
from pyconnect_agent.tasks.records.many_values import from_connect_many
from pyconnect_agent.tasks.setup.plugins import Converters
from pyconnect_api import (
    Converter,
    HeaderConverter,
    Schema,
    SourceRecord,
    SourceRecords,
)
from pyconnect_api.record import without_headers

Outgoing: TypeAlias = tuple[str, bytes | None, bytes | None, int, int, KafkaHeaders | None]
"""Topic, value, key, partition (-1: the producer chooses), timestamp in ms (0: now), headers."""

SourcePartition: TypeAlias = Mapping[str, object] | None
SourceOffset: TypeAlias = Mapping[str, object] | None


@dataclass(slots=True, kw_only=True)
class OutgoingRun:
    """Converted records in the order of their sending; `records` are those that were polled.

    The columns mean what `Outgoing` says. `taken`: how many of them the producer has, from the
    first on. `places`: where they were among those to be converted, None when all are here.
    """

    records: Sequence[SourceRecord]
    distinct_topics: frozenset[str]
    topics: Sequence[str]
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    partitions: Sequence[int]
    timestamps: Sequence[int]
    headers: Sequence[KafkaHeaders | None]
    taken: int = 0
    places: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def at(self, place: int) -> Outgoing:
        return (
            self.topics[place],
            self.values[place],
            self.keys[place],
            self.partitions[place],
            self.timestamps[place],
            self.headers[place],
        )

    def rest(self) -> OutgoingRun:
        """Return the records that the producer does not have yet, as a run of its own."""
        since = self.taken
        if not since:
            return self
        return OutgoingRun(
            records=self.records[since:],
            distinct_topics=frozenset(self.topics[since:]),
            topics=self.topics[since:],
            values=self.values[since:],
            keys=self.keys[since:],
            partitions=self.partitions[since:],
            timestamps=self.timestamps[since:],
            headers=self.headers[since:],
        )


ConvertRun: TypeAlias = Callable[[Sequence[SourceRecord], Sequence[SourceRecord]], OutgoingRun]
"""Takes records as they were polled, and the same after their transformations, none of them
dropped. May raise anything."""


def compose_run(converters: Converters) -> ConvertRun:
    """Build the conversion of many records."""
    convert_key, convert_value = _column(converters.key), _column(converters.value)
    write_headers = _headers(converters.header)

    def convert(polled: Sequence[SourceRecord], records: Sequence[SourceRecord]) -> OutgoingRun:
        count = len(records)
        partitions: Sequence[int]
        if isinstance(records, SourceRecords):
            topics, topic = [records.topic] * count, records.topic
            key_schemas = [records.key_schema] * count
            keys, values = records.keys, records.values
            value_schemas = [records.value_schema] * count
            partitions = [-1] * count
            timestamps = [records.timestamp or 0] * count
            headers: list[KafkaHeaders] | None = None
            distinct = frozenset((topic,))
        else:
            topics = [record.topic for record in records]  # type: ignore[misc]  # checked below
            distinct = frozenset(topics)
            key_schemas = [record.key_schema for record in records]
            keys = [record.key for record in records]
            value_schemas = [record.value_schema for record in records]
            values = [record.value for record in records]
            partitions = [
                -1 if record.kafka_partition is None else record.kafka_partition
                for record in records
            ]
            timestamps = [record.timestamp or 0 for record in records]
            headers = None if without_headers(records) else write_headers(records, topics)
        if None in distinct or min(timestamps) < 0:
            raise ValueError("a record has no topic, or an invalid timestamp")
        headers, key_bytes = convert_key(topics, distinct, headers, key_schemas, keys)
        headers, value_bytes = convert_value(topics, distinct, headers, value_schemas, values)
        return OutgoingRun(
            records=polled,
            distinct_topics=distinct,
            topics=topics,
            values=value_bytes,
            keys=key_bytes,
            partitions=partitions,
            timestamps=timestamps,
            headers=[None] * count if headers is None else [each or None for each in headers],
        )

    return convert


def _column(converter: Converter) -> Callable[..., Any]:
    """Return the conversion of keys or values; it returns the headers too, if there are any."""
    one, many = converter.from_connect_data, from_connect_many(converter)

    def convert(
        topics: Sequence[str],
        distinct: frozenset[str],
        headers: list[KafkaHeaders] | None,
        schemas: Sequence[Schema | None],
        values: Sequence[object],
    ) -> tuple[list[KafkaHeaders] | None, list[bytes | None]]:
        if many is not None and len(distinct) == 1 and all(map(is_, schemas, repeat(schemas[0]))):
            data = many(topics[0], schemas[0], values)
            if len(data) != len(values):
                raise ValueError("The converter returned another number of values than it got")
            return headers, data
        if headers is None:
            headers = [[] for _ in values]
        return headers, list(map(one, topics, headers, schemas, values))

    return convert


def _headers(converter: HeaderConverter) -> Callable[..., list[KafkaHeaders]]:
    convert = converter.from_connect_header

    def write(records: Sequence[SourceRecord], topics: Sequence[str]) -> list[KafkaHeaders]:
        return [
            [(h.key, convert(topic, h.key, h.schema, h.value)) for h in record.headers]
            if record.has_headers
            else []
            for record, topic in zip(records, topics, strict=True)
        ]

    return write


def by_partition(
    records: Sequence[SourceRecord],
) -> Sequence[tuple[SourcePartition, SourceOffset, Sequence[int]]]:
    """Return each source partition, the offset of its last record and the places of its records."""
    every = range(len(records))
    if isinstance(records, SourceRecords):
        return [(records.source_partition, records.source_offsets[-1], every)]
    if isinstance(records, JavaSourceRecords):
        return records.by_partition()
    last = records[-1]
    partitions = [record.source_partition for record in records]
    if all(map(is_, partitions, repeat(last.source_partition))):
        return [(last.source_partition, last.source_offset, every)]
    found: dict[Hashable, list[int]] = {}
    for place, partition in enumerate(partitions):
        found.setdefault(canonical_partition(partition), []).append(place)
    lasts = [(records[mine[-1]], mine) for mine in found.values()]
    return [(last.source_partition, last.source_offset, mine) for last, mine in lasts]
