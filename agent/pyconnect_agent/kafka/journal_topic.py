"""The journal's topic: created without compaction, written with idempotence, read when asked.

One partition, so that the offsets number the records. Each call blocks; `write` and `read` may be
called from any thread.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import TopicPartition as ClientTopicPartition

from pyconnect_agent.core.errors import RetriableKafkaError, WorkerConfigError
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.kafka import clients, errors, log
from pyconnect_agent.kafka.admin import Admin, TopicSpec
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.log import LogClients
from pyconnect_agent.kafka.producer import LogProducer
from pyconnect_clients.brokers import failures

TOPIC_KEY = "agent.journal.topic"
WRITE_TIMEOUT_MS = 10_000
STOP_TIMEOUT_MS = 5_000
_POLL_S = 0.2
_BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalPlace:
    """The journal's topic; timeout and backoff are those of the other internal topics."""

    topic: str
    replication_factor: int
    retention_ms: int
    create_timeout_ms: int
    retry_backoff_ms: int


class JournalTopic:
    """The journal in a topic; call `start` once before the first record."""

    shared = True

    def __init__(self, place: JournalPlace, log_clients: LogClients) -> None:
        self._place = place
        self._clients = log_clients
        self._producer: LogProducer | None = None

    def start(self) -> None:
        """Create or check the topic; WorkerConfigError for one that is compacted or partitioned."""
        place, admin = self._place, Admin(self._clients.admin)
        spec = TopicSpec(
            name=place.topic,
            partitions=1,
            replication_factor=place.replication_factor,
            settings={"cleanup.policy": "delete", "retention.ms": str(place.retention_ms)},
        )
        timeout_ms = place.create_timeout_ms
        if not admin.create_topic_with_retry(spec, timeout_ms, place.retry_backoff_ms):
            policy = admin.topic_setting(place.topic, "cleanup.policy", timeout_ms)
            partitions = admin.partition_count(place.topic, timeout_ms)
            if "compact" in (policy or "") or partitions > 1:
                raise WorkerConfigError(
                    f"{TOPIC_KEY}: topic {place.topic} has cleanup.policy={policy} and"
                    f" {partitions} partitions; the journal needs cleanup.policy=delete and one"
                    " partition. Name another topic, and the worker creates it."
                )
        assert self._clients.producer is not None
        self._producer = LogProducer(place.topic, self._clients.producer, "journal")

    def write(self, connector: str | None, record: bytes) -> None:
        """Write a record and wait for its acknowledgement; raise KafkaError if that fails."""
        if self._producer is None:
            raise RetriableKafkaError("The journal is not open yet")
        key = (connector or "").encode(errors="replace")
        self._producer.write([LogRecord(key=key, value=record)], WRITE_TIMEOUT_MS)

    def read(self, since_ms: int, timeout_ms: int) -> Iterator[tuple[int, bytes]]:
        """Yield number and bytes of the records from a time on; raise KafkaError if that fails."""
        deadline = Deadline(timeout_ms)
        topic = self._place.topic
        action = f"Failed to read topic '{topic}'"
        consumer = clients.create_consumer(
            {
                **log.CONSUMER_DEFAULTS,
                **log.BRIEF_FETCH,
                **self._clients.consumer,
                **log.CONSUMER_FORCED,
            }
        )
        try:
            with errors.translated(action):
                begin = ClientTopicPartition(topic, 0, since_ms)
                (found,) = consumer.offsets_for_times([begin], timeout=deadline.remaining_s())
                consumer.assign([found])
            while True:
                with errors.translated(action):
                    messages = consumer.consume(_BATCH, _POLL_S)
                for message in messages:
                    error = message.error()
                    if error is None:
                        yield message.offset() or 0, message.value() or b""
                    elif error.code() == failures.PARTITION_EOF:
                        return
                    else:
                        raise errors.translate(error, action)
                if deadline.expired():
                    raise RetriableKafkaError(f"{action} to its end in time: give --since")
        finally:
            consumer.close()

    def stop(self) -> None:
        if self._producer is not None:
            self._producer.stop(STOP_TIMEOUT_MS)
