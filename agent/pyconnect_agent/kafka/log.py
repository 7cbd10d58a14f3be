"""A compacted topic as a log: create or check it, read it all, tail it, write to it.

Kafka: KafkaBasedLog. Differs from Kafka: if the reader raises, only that record is lost; the thread
that reads to the end requests the end offsets, so the tailing thread never waits for an admin
request.

The tail has reached the end after the record before the target, or after a PARTITION_EOF event
whose offset is at or past the target: transaction markers are never delivered, so records alone
would not reach it. Targets are read_uncommitted end offsets; an open transaction blocks a
read_committed tail until the transaction ends, as intended.

A denied read fails at once: a denial fails the wait for the tail, whereas Kafka's log polls without
end. The tail itself keeps trying, so a later grant takes effect.

Threading: one tailing thread calls the reader, and an exception that ends it ends the process;
`write`, `send`, `flush` and `read_to_end` may be called from any thread and all but `send` block.
`start` and `stop` once each, from one thread.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from confluent_kafka import OFFSET_BEGINNING
from confluent_kafka import TopicPartition as ClientTopicPartition

from pyconnect_agent.core.errors import (
    AuthorizationError,
    KafkaError,
    RetriableKafkaError,
    WorkerStartError,
)
from pyconnect_agent.core.internal_topics import LogRecord, Notice, NoticeLevel
from pyconnect_agent.kafka import clients, errors
from pyconnect_agent.kafka.admin import METADATA_TIMEOUT_MS, Admin, CompactedTopic, ensure_topic
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.producer import LogProducer, OnDelivery
from pyconnect_agent.process import long_lived
from pyconnect_clients.brokers import failures

CONSUMER_FORCED = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
}
# librdkafka needs a group id, which is never used. By default it would keep 64 MB of unread
# messages and more from one answer; each byte of small records takes five.
CONSUMER_DEFAULTS = {
    "group.id": "unused",
    "queued.max.messages.kbytes": 2_048,
    "fetch.max.bytes": 2_097_152,
}

# The time for which brokers hold back an empty answer, half a second by default. Only after this
# time the consumer fetches partitions that were not in the request, and knows the end after a
# transaction's marker.
BRIEF_FETCH = {"fetch.wait.max.ms": 10}
"""For a short-lived process, whose frequent fetches burden the brokers only briefly."""
TRANSACTIONAL_FETCH = {"fetch.wait.max.ms": 20}
"""For a topic with transactional writers. Debezium reads its offset after each transaction."""

_LEVELS = {NoticeLevel.WARNING: logging.WARNING, NoticeLevel.ERROR: logging.ERROR}


def log_notices(logger: logging.Logger, notices: Iterable[Notice]) -> None:
    """Write one line per notice."""
    for notice in notices:
        logger.log(
            _LEVELS[notice.severity],
            notice.event,
            extra={"key": notice.key, "offset": notice.offset, "detail": notice.detail},
        )


_log = logging.getLogger(__name__)

READ_AT_START_TIMEOUT_MS = 15 * 60_000
STOP_TIMEOUT_MS = 10_000
_POLL_S = 0.1
_BATCH = 1_000
_ERROR_BACKOFF_S = 0.5
_ADMIN_TIMEOUT_MS = 30_000
_RETRY_BACKOFF_S = 0.1
_RETRY_BACKOFF_MAX_S = 10.0
_WARNING_PAUSE_S = 2.0
"""The least pause between retries that is logged as a warning; shorter pauses sum up to 3 s."""
_TELL_EVERY_S = 30.0

# Java workers look for a key in the partition of murmur2; librdkafka's default is CRC32.
_PRODUCER_FORCED = {"partitioner": "murmur2_random"}
_PRODUCER_DEFAULTS = {"linger.ms": 0}
_AskOffsets = Callable[[Admin, str, Sequence[int], int], Mapping[int, int]]


class ReadRecord(NamedTuple):
    """A record of the topic; `timestamp_ms` is epoch milliseconds, 0 without a timestamp."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class LogReader(Protocol):
    """A reader that gets every record, on the tailing thread."""

    def apply(self, record: ReadRecord) -> None:
        """Take one record; an exception is logged, and only this record is lost."""
        ...

    def applied(self) -> None:
        """Publish the records so far; called after each batch, before waiting threads go on."""
        ...

    def caught_up(self) -> None:
        """Note the end of the first read, before `start` returns."""
        ...


class Log(Protocol):
    """The log as the stores use it; `CompactedLog` implements it."""

    def start(self, reader: LogReader) -> None: ...
    def stop(self) -> None: ...
    def read_to_end(self, timeout_ms: float) -> None: ...
    def write(self, records: Sequence[LogRecord], timeout_ms: float) -> None: ...
    def send(self, record: LogRecord, on_delivery: OnDelivery) -> None: ...
    def flush(self, timeout_ms: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogClients:
    """librdkafka configurations, complete except for settings that the log adds.

    `producer` None: the log is only read, and a write raises KafkaError.
    """

    producer: clients.ClientConfig | None
    consumer: clients.ClientConfig
    admin: clients.ClientConfig


class CompactedLog:
    """One internal topic of this worker."""

    def __init__(self, topic: CompactedTopic, log_clients: LogClients, thread_name: str) -> None:
        self._topic = topic
        self._clients = log_clients
        self._thread_name = thread_name
        self._admin: Admin | None = None
        self._producer: LogProducer | None = None
        self._consumer: Any = None
        self._reader: LogReader | None = None
        self._thread: long_lived.Thread | None = None
        self._partitions: tuple[int, ...] = ()
        self._stopping = threading.Event()
        # This condition guards the fields below; it is notified of each change.
        self._progress = threading.Condition()
        self._reached: dict[int, int] = {}
        self._first_targets: Mapping[int, int] | None = None
        self._caught_up = False
        self._denial: AuthorizationError | None = None

    @property
    def partition_count(self) -> int:
        """The number of partitions, known after `start`."""
        return len(self._partitions)

    def start(self, reader: LogReader) -> None:
        """Create or check the topic, read it to its end, and start the tailing thread.

        Raises WorkerConfigError for a topic with the wrong policy or number of partitions, and
        WorkerStartError if the topic cannot be read.
        """
        self._reader = reader
        try:
            self._admin = Admin(self._clients.admin)
            count = ensure_topic(self._admin, self._topic, self._stopping)
            self._partitions = tuple(range(count))
            if self._clients.producer is not None:
                self._producer = LogProducer(
                    self._topic.name,
                    {**_PRODUCER_DEFAULTS, **self._clients.producer, **_PRODUCER_FORCED},
                    f"{self._thread_name}-writes",
                )
            self._open_consumer()
            deadline = Deadline(READ_AT_START_TIMEOUT_MS)
            # The tail begins at these offsets, so that no caller waits for the EOF of an empty
            # partition.
            self._reached = dict(self._offsets(Admin.beginning_offsets, deadline))
            self._first_targets = self._offsets(Admin.end_offsets, deadline)
            self._thread = long_lived.Thread(self._thread_name, self._tail)
            self._thread.start()
            self._await_tail(lambda: self._caught_up, deadline)
        except KafkaError as exc:
            raise WorkerStartError(
                f"Could not start reading the {self._topic.purpose} topic "
                f"'{self._topic.name}': {exc}"
            ) from exc

    def stop(self) -> None:
        """Deliver outstanding writes, end both threads, close the clients; at most 10 s."""
        deadline = Deadline(STOP_TIMEOUT_MS)
        self._stopping.set()
        with self._progress:
            self._progress.notify_all()
        if self._producer is not None:
            self._producer.stop(deadline.remaining_ms())
        if self._thread is None:
            self._close_consumer()
            return
        self._thread.join(deadline.remaining_s() + 2 * _POLL_S)
        if self._thread.is_alive():
            _log.warning("Log did not stop in time", extra={"topic": self._topic.name})

    def read_to_end(self, timeout_ms: float) -> None:
        """Return once the reader got every record that was written before this call.

        Raises RetriableKafkaError at the deadline, AuthorizationError if reading is denied.
        """
        deadline = Deadline(timeout_ms)
        self.flush(deadline.remaining_ms())
        targets = self._offsets(Admin.end_offsets, deadline)
        self._await_tail(lambda: self._has_reached(targets), deadline)

    def write(self, records: Sequence[LogRecord], timeout_ms: float) -> None:
        """Write records in order and wait for their acknowledgement."""
        self._open_producer().write(records, timeout_ms)

    def send(self, record: LogRecord, on_delivery: OnDelivery) -> None:
        """Write without waiting; `on_delivery` is called on the producer's thread."""
        self._open_producer().send(record, on_delivery)

    def flush(self, timeout_ms: float) -> None:
        """Wait for outstanding writes; raise RetriableKafkaError at the deadline."""
        if self._clients.producer is not None:
            self._open_producer().flush(timeout_ms)

    def _open_producer(self) -> LogProducer:
        if self._producer is None:
            raise KafkaError(f"The log of topic '{self._topic.name}' is not started for writing")
        return self._producer

    def _open_consumer(self) -> None:
        self._consumer = clients.create_consumer(
            {**CONSUMER_DEFAULTS, **self._clients.consumer, **CONSUMER_FORCED}
        )
        name = self._topic.name
        # Known leaders let the consumer start at once, and not after a second.
        action = f"Failed to look up the leaders of topic '{name}'"
        with errors.translated(action):
            found = self._consumer.list_topics(name, timeout=METADATA_TIMEOUT_MS / 1000)
        topic = found.topics.get(name)
        if topic is not None and failures.code_of(topic.error) in failures.TOPIC_NOT_AUTHORIZED:
            raise self._denied(topic.error, action)
        # The consumer starts at the beginning, and never uses committed offsets of the group id.
        self._consumer.assign(
            [
                ClientTopicPartition(name, partition, OFFSET_BEGINNING)
                for partition in self._partitions
            ]
        )

    def _denied(self, error: Any, action: str) -> AuthorizationError:
        consumer = self._clients.consumer.get("client.id", "")
        denial = errors.translate(
            error,
            action,
            grant=f"Read on topic '{self._topic.name}' to the principal of the consumer"
            f" '{consumer}'",
        )
        assert isinstance(denial, AuthorizationError)
        return denial

    def _await_tail(self, has_come: Callable[[], bool], deadline: Deadline) -> None:
        """Wait until the tail has reached a position; log at intervals while it has not."""
        name = self._topic.name
        while True:
            with self._progress:
                self._progress.wait_for(
                    lambda: has_come() or self._stopping.is_set() or self._denial is not None,
                    min(_TELL_EVERY_S, deadline.remaining_s()),
                )
                if has_come():
                    return
                denial = self._denial
            why = f"Could not read to the end of topic '{name}'"
            if self._stopping.is_set():
                raise RetriableKafkaError(f"{why}: the worker is stopping")
            if denial is not None:
                raise AuthorizationError(f"{why}: {denial.message}")
            if deadline.expired():
                raise RetriableKafkaError(f"{why}: timed out")
            _log.warning("Topic is not read to its end yet, waiting", extra={"topic": name})

    def _offsets(self, ask: _AskOffsets, deadline: Deadline) -> Mapping[int, int]:
        """Return offsets by partition; repeat retriable requests until the deadline.

        The pauses grow. The first failures are not logged as warnings, because the partitions of a
        new topic have no leader for a moment.
        """
        assert self._admin is not None
        pause_s = _RETRY_BACKOFF_S
        while True:
            timeout_ms = min(_ADMIN_TIMEOUT_MS, max(1, deadline.remaining_ms()))
            try:
                return ask(self._admin, self._topic.name, self._partitions, timeout_ms)
            except RetriableKafkaError as exc:
                if deadline.remaining_s() <= pause_s or self._stopping.is_set():
                    raise
                _log.log(
                    logging.DEBUG if pause_s < _WARNING_PAUSE_S else logging.WARNING,
                    "Could not get offsets, retrying",
                    extra={"topic": self._topic.name, "reason": str(exc)},
                )
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, _RETRY_BACKOFF_MAX_S)

    def _has_reached(self, targets: Mapping[int, int]) -> bool:
        return all(
            self._reached.get(partition, -1) >= target for partition, target in targets.items()
        )

    def _tail(self) -> None:
        """Run the tailing thread until it is stopped; client failures do not end it.

        Any other exception ends the process: its view of the topic would stay out of date.
        """
        try:
            self._show({})
            while not self._stopping.is_set():
                try:
                    self._read_batch()
                except failures.CLIENT_ERRORS as exc:
                    _log.error(
                        "Error polling, retrying",
                        extra={
                            "topic": self._topic.name,
                            "reason": str(errors.translate(exc, "poll")),
                        },
                    )
                    self._stopping.wait(_ERROR_BACKOFF_S)
        finally:
            self._close_consumer()

    def _read_batch(self) -> None:
        # `consume` waits its whole timeout for a full batch; with a wait for the first message
        # only, readers get each record at once.
        first = self._consumer.poll(_POLL_S)
        if first is None:
            return
        reached: dict[int, int] = {}
        denial: AuthorizationError | None = None
        for message in (first, *self._consumer.consume(_BATCH, 0)):
            error = message.error()
            if error is None:
                self._apply(message)
                reached[message.partition()] = message.offset() + 1
            elif error.code() == failures.PARTITION_EOF:
                reached[message.partition()] = message.offset()
            else:
                _log.error(
                    "Error reading",
                    extra={"topic": self._topic.name, "error": error.name(), "reason": error.str()},
                )
                if error.code() in failures.TOPIC_NOT_AUTHORIZED:
                    denial = self._denied(error, "Reading was denied")
        self._show(reached, denial)

    def _show(self, reached: Mapping[int, int], denial: AuthorizationError | None = None) -> None:
        """Let the reader publish its records, then wake threads that wait for them or a failure.

        A successful read clears an earlier denial.
        """
        assert self._reader is not None
        try:
            self._reader.applied()
        except Exception:  # noqa: BLE001 - its records are applied, the next ones show them too
            _log.exception("Unexpected exception in log", extra={"topic": self._topic.name})
        with self._progress:
            self._reached.update(reached)
            if reached or denial is not None:
                self._denial = denial
            first_end = not self._caught_up and self._has_reached(self._first_targets or {})
        if first_end:
            self._reader.caught_up()
        with self._progress:
            self._caught_up = self._caught_up or first_end
            self._progress.notify_all()

    def _apply(self, message: Any) -> None:
        assert self._reader is not None
        kind, timestamp_ms = message.timestamp()
        record = ReadRecord(
            message.partition(),
            message.offset(),
            timestamp_ms if kind else 0,
            message.key(),
            message.value(),
        )
        try:
            self._reader.apply(record)
        except Exception:  # noqa: BLE001 - one bad record must not cost the others
            _log.exception(
                "Ignoring a record that could not be processed",
                extra={
                    "topic": self._topic.name,
                    "partition": record.partition,
                    "offset": record.offset,
                },
            )

    def _close_consumer(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
