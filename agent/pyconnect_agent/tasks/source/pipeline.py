"""From source records to the producer: transform, convert, check, make the topic.

Composed once at start: a stage that is not configured is not in the chain. Shared by at-least-once
and exactly-once tasks; offsets and transactions are handled elsewhere.

Topics are created as the connector's rules say (KIP-158; Kafka: TopicCreation and
AbstractWorkerSourceTask.maybeCreateTopic), on the task's thread, before the first record to each; a
task does not ask again for a topic that it has seen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyconnect_agent.core.clients.configs import connector_admin
from pyconnect_agent.core.config.connector_config import SourceTaskSettings
from pyconnect_agent.core.config.topic_creation import TopicCreationGroup
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.kafka.admin import Admin, TopicCreated, TopicSpec
from pyconnect_agent.kafka.task_producer import KafkaHeaders
from pyconnect_agent.tasks.records.tolerance import RecordStage, Tolerance
from pyconnect_agent.tasks.records.transformations import Chain
from pyconnect_agent.tasks.setup.plugins import Converters
from pyconnect_agent.tasks.setup.resolved_configs import API_TIMEOUT_MS, built
from pyconnect_agent.tasks.source.columns import ConvertRun, Outgoing, OutgoingRun, compose_run
from pyconnect_api import ConnectException, HeaderConverter, RetriableException, SourceRecord

LOG = logging.getLogger(__name__)


class TopicCreation:
    """`known` are the topics that need no look any more; only `ensure` adds to it.

    `groups` are tried in order; the last is for every topic.
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

        Raises RetriableException when the brokers do not say in time whether it does,
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
                # As in Kafka also when it timed out: only the describing is repeated.
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
    """Return the rules of a source connector; None when the worker or the connector has it off.

    Raises ConfigException for wrong rules and for admin overrides that the worker forbids.
    """
    if not worker.topic_creation_enable:
        return None
    groups = SourceTaskSettings.parse(connector_config).topic_creation
    if not groups:
        return None
    config = built(connector_admin(worker, connector_config, f"connector-adminclient-{task_id}"))
    return TopicCreation(
        groups,
        Admin(config.properties),
        timeout_ms=config.default_api_timeout_ms or API_TIMEOUT_MS,
    )


def _describe(spec: TopicSpec) -> str:
    """Write a topic as Java's NewTopic does."""
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
"""Takes a record as it was polled, and the same after its transformations. Raises RecordSkipped
when it failed and failures are tolerated, ConnectException when the task must fail, and
RetriableException when the record is to be converted again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The transformations, which do their own error handling, and the two conversions.

    `convert_run` None: records are converted one by one, because something is done to each.
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

    `topics` makes sure of a topic before its first record; None leaves that to the brokers.
    """
    return Pipeline(
        chain=chain,
        convert=record_converter(converters, tolerance.recover, topics),
        convert_run=known_topics_only(compose_run(converters), topics),
    )


def known_topics_only(convert: ConvertRun, topics: TopicCreation | None) -> ConvertRun:
    """Return a conversion that refuses a run for a topic that was not looked for yet."""
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

    The worker stores and shows these of the record anyway.
    """
    assert isinstance(record, SourceRecord)
    return (
        f"topic '{record.topic}', source partition {record.source_partition}, source offset "
        f"{record.source_offset}"
    )


def checked_timestamp(timestamp: int) -> int:
    """Kafka's ConnectUtils.checkAndConvertTimestamp; 0 is librdkafka's word for "now"."""
    if timestamp < -1:
        raise ConnectException(f"Invalid record timestamp {timestamp}")
    return 0
