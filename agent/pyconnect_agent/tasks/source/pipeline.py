"""From source records to the arguments of the producer: transform, convert, check, make the topic.

The pipeline is composed once at start: a stage that is not configured is not in the chain.
At-least-once and exactly-once tasks share it; other modules handle offsets and transactions.

Records of one poll are converted as columns (`compose_run`): Python functions are called once for
each column instead of once for each record, by comprehensions and the converters' forms for many
values. Nothing is reported or retried there. After any exception the records are converted one by
one; the faulty record raises the exception again, where tolerance, log and trace handle it.

Topics are created by the connector's rules (KIP-158; Kafka: TopicCreation and
AbstractWorkerSourceTask.maybeCreateTopic), on the task's thread, before the first record to each; a
task does not ask again for a topic that it knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from typing import Any, TypeAlias

from pyconnect_agent.core.clients.configs import connector_admin
from pyconnect_agent.core.config.connector_config import SourceTaskSettings
from pyconnect_agent.core.config.topic_creation import TopicCreationGroup
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.offsets.submitted import canonical_partition
from pyconnect_agent.java_processes.frames import JavaSourceRecords
from pyconnect_agent.kafka.admin import Admin, TopicCreated, TopicSpec
from pyconnect_agent.kafka.task_producer import KafkaHeaders
from pyconnect_agent.tasks.plugins import Converters, many_values
from pyconnect_agent.tasks.records import Chain, RecordStage, Tolerance
from pyconnect_agent.tasks.worker_view import API_TIMEOUT_MS, built
from pyconnect_api import (
    ConnectException,
    Converter,
    HeaderConverter,
    RetriableException,
    Schema,
    SourceRecord,
    SourceRecords,
)
from pyconnect_api.record import without_headers

LOG = logging.getLogger(__name__)

Outgoing: TypeAlias = tuple[str, bytes | None, bytes | None, int, int, KafkaHeaders | None]
"""Topic, value, key, partition (-1: the producer chooses), timestamp in ms (0: now), headers."""

SourcePartition: TypeAlias = Mapping[str, object] | None
SourceOffset: TypeAlias = Mapping[str, object] | None


@dataclass(slots=True, kw_only=True)
class OutgoingRun:
    """Converted records in the order of their sending; `records` are those that were polled.

    The columns mean what `Outgoing` says. `taken`: how many of the first records the producer has.
    `places`: the places of the records among those to be converted, None when all are here.
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
"""Converts polled records, also given as transformed, none dropped; may raise any exception."""


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
    one, many = converter.from_connect_data, many_values(converter, "from_connect")

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


class TopicCreation:
    """Creates topics by the rules `groups`, which are tried in order; the last is for every topic.

    `known` are the topics that need no check; only `ensure` adds to it.
    """

    def __init__(
        self, groups: Sequence[TopicCreationGroup], admin: Admin, *, timeout_ms: int
    ) -> None:
        self.known: set[str] = set()
        self._groups = tuple(groups)
        self._admin = admin
        self._timeout_ms = timeout_ms

    def ensure(self, topic: str) -> None:
        """Create the topic unless it exists.

        Raises RetriableException when the brokers do not answer in time whether the topic exists,
        ConnectException when the topic does not exist and cannot be created.
        """
        LOG.info("first record for a topic: checking whether it exists", extra={"topic": topic})
        try:
            exists = topic in self._admin.describe_topics([topic], self._timeout_ms)
        except KafkaError as exc:
            if exc.retriable:
                raise RetriableException(f"Timed out while describing topics '{topic}'") from exc
            raise ConnectException(str(exc)) from exc
        if exists:
            LOG.info("topic exists", extra={"topic": topic})
        else:
            group = next(group for group in self._groups if group.matches(topic))
            spec = TopicSpec(
                name=topic,
                partitions=group.partitions,
                replication_factor=group.replication_factor,
                settings=group.other_configs,
            )
            try:
                created = self._admin.create_or_find_topic(spec, self._timeout_ms)
            except KafkaError as exc:
                # Raised also for a timeout, as in Kafka: only describing a topic is retried.
                raise ConnectException(str(exc)) from exc
            fields = {"topic": spec.name, "creation_group": group.name}
            match created:
                case TopicCreated.NOW:
                    LOG.info("topic created", extra=fields)
                case TopicCreated.BEFORE:
                    LOG.info("topic was created by another client meanwhile", extra=fields)
                case TopicCreated.NOT:
                    raise ConnectException(
                        f"Task failed to create new topic {_describe(spec)}. Ensure that the task "
                        "is authorized to create topics or that the topic exists and restart the"
                        " task"
                    )
        self.known.add(topic)


def topic_creation_of(
    worker: WorkerConfig, connector_config: Mapping[str, str], task_id: ConnectorTaskId
) -> TopicCreation | None:
    """Return the rules of a source connector; None if the worker or the connector has none.

    Raises ConfigException for wrong rules and for admin overrides that the worker forbids.
    """
    if not worker.topic_creation_enable:
        return None
    groups = SourceTaskSettings.parse(connector_config).topic_creation
    if not groups:
        return None
    config = built(connector_admin(worker, connector_config, f"connector-adminclient-{task_id}"))
    return TopicCreation(
        groups, Admin(config.properties), timeout_ms=config.default_api_timeout_ms or API_TIMEOUT_MS
    )


def _describe(spec: TopicSpec) -> str:
    """Return the text of a topic in the form of Java's NewTopic."""
    partitions, replicas = (
        "default" if number == -1 else number
        for number in (spec.partitions, spec.replication_factor)
    )
    settings = ", ".join(f"{name}={value}" for name, value in spec.settings.items())
    return (
        f"(name={spec.name}, numPartitions={partitions}, replicationFactor={replicas}, "
        f"replicasAssignments=null, configs={{{settings}}})"
    )


NO_TOPIC = "A source record has no topic"
Convert: TypeAlias = Callable[[SourceRecord, SourceRecord], Outgoing]
"""Converts a record, given as polled and as transformed. Raises RecordSkipped when it failed and
failures are tolerated, ConnectException when the task must fail, and RetriableException when the
record is to be converted again later.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The transformations, which do their own error handling, and the two conversions.

    With `convert_run` None records are converted one by one, because each needs work of its own.
    """

    chain: Chain | None
    convert: Convert
    convert_run: ConvertRun | None


def compose(
    *,
    converters: Converters,
    chain: Chain | None,
    tolerance: Tolerance,
    topics: TopicCreation | None = None,
) -> Pipeline:
    """Build the pipeline.

    `topics` creates a topic before its first record; None leaves that to the brokers.
    """
    return Pipeline(
        chain=chain,
        convert=record_converter(converters, tolerance.recover, topics),
        convert_run=known_topics_only(compose_run(converters), topics),
    )


def known_topics_only(convert: ConvertRun, topics: TopicCreation | None) -> ConvertRun:
    """Return a conversion that raises LookupError for a topic that was not checked yet."""
    if topics is None:
        return convert
    known = topics.known

    def convert_known(
        polled: Sequence[SourceRecord], records: Sequence[SourceRecord]
    ) -> OutgoingRun:
        run = convert(polled, records)
        if not run.distinct_topics <= known:
            raise LookupError("A topic of the run was not looked for yet")
        return run

    return convert_known


def record_converter(
    converters: Converters, recover: Callable[..., Any], topics: TopicCreation | None = None
) -> Convert:
    """Return the conversion of one record; `recover` is that of a Tolerance, or raises an error.

    `topics`: see `compose`.
    """
    known_topics = None if topics is None else topics.known
    key_bytes = converters.key.from_connect_data
    value_bytes = converters.value.from_connect_data
    write_headers = _header_writer(converters.header, recover)
    key_class, value_class = type(converters.key), type(converters.value)

    def convert(original: SourceRecord, record: SourceRecord) -> Outgoing:
        topic = record.topic
        if topic is None:
            raise ConnectException(NO_TOPIC)
        headers = write_headers(record, topic, original) if record.has_headers else []
        arguments = (topic, headers, record.key_schema, record.key)
        try:
            key = key_bytes(*arguments)
        except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
            key = recover(
                RecordStage.KEY_CONVERTER, key_class, exc, original, key_bytes, *arguments
            )
        arguments = (topic, headers, record.value_schema, record.value)
        try:
            value = value_bytes(*arguments)
        except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
            value = recover(
                RecordStage.VALUE_CONVERTER, value_class, exc, original, value_bytes, *arguments
            )
        if known_topics is not None and topic not in known_topics:
            assert topics is not None
            topics.ensure(topic)
        partition = record.kafka_partition
        timestamp = record.timestamp
        return (
            topic,
            value,
            key,
            -1 if partition is None else partition,
            0
            if timestamp is None
            else timestamp
            if timestamp > 0
            else checked_timestamp(timestamp),
            headers or None,
        )

    return convert


def _header_writer(
    converter: HeaderConverter, recover: Callable[..., Any]
) -> Callable[[SourceRecord, str, SourceRecord], KafkaHeaders]:
    """Return the conversion of a record's headers; it takes the topic and the polled record."""
    from_connect_header, header_class = converter.from_connect_header, type(converter)

    def headers_of(record: SourceRecord, topic: str) -> KafkaHeaders:
        return [
            (h.key, from_connect_header(topic, h.key, h.schema, h.value)) for h in record.headers
        ]

    def write(record: SourceRecord, topic: str, original: SourceRecord) -> KafkaHeaders:
        try:
            return headers_of(record, topic)
        except Exception as exc:  # noqa: BLE001  plugin code; `recover` decides
            found: KafkaHeaders = recover(
                RecordStage.HEADER_CONVERTER, header_class, exc, original, headers_of, record, topic
            )
            return found

    return write


def place_of(record: object) -> str:
    """Return a polled record's topic, source partition and source offset, nothing of its content.

    The worker stores and shows these anyway.
    """
    assert isinstance(record, SourceRecord)
    return (
        f"topic '{record.topic}', source partition {record.source_partition}, source offset "
        f"{record.source_offset}"
    )


def checked_timestamp(timestamp: int) -> int:
    """Return 0, which librdkafka reads as the present time; raise ConnectException below -1.

    Kafka: ConnectUtils.checkAndConvertTimestamp.
    """
    if timestamp < -1:
        raise ConnectException(f"Invalid record timestamp {timestamp}")
    return 0
