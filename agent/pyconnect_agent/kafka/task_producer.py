"""A source task's producers, plain and transactional (KIP-618, KIP-98).

The frequent call is the client's own `produce`, without a wrapper; this module has the rest:
back-pressure, waits, translation of errors. One task thread uses a producer; the thread that serves
callbacks while the task blocks in `poll` also calls `serve`.

Many records go through the same `produce`, called from C with all arguments by position, which
takes 0.35 us a record; keywords cost as much again. The client's `produce_batch` is not used: it
takes 0.5 us, drops headers silently, refuses timestamps, ignores the partition of a message, and
continues after a refused record.

Each call of a transaction is repeated in short slices, so that a stopping task does not wait long;
librdkafka continues the same call. The first error that is not retriable ends the call. One thread
uses a transactional producer.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import repeat
from operator import length_hint
from typing import Any, Protocol, TypeAlias

from confluent_kafka import KafkaError as ClientError

from pyconnect_agent.core.clients.configs import MAX_REQUEST_BYTES
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka import errors
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.clients import create_producer
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.fencing import initialise
from pyconnect_clients.brokers import failures

LOG = logging.getLogger(__name__)

CLIENT_ERRORS = failures.CLIENT_ERRORS

TUNING: Mapping[str, Any] = {
    # Few large requests are better: librdkafka's small batches lower the rate by a third.
    "batch.size": 1_000_000,
    "batch.num.messages": 1_000_000,
    "linger.ms": 5,
    # Records in the client's queue take memory of the task's process.
    "queue.buffering.max.kbytes": 16_384,
    "sticky.partitioning.linger.ms": 10,
}
"""Defaults below the user's settings, in librdkafka's names."""

FORCED: Mapping[str, Any] = {
    # Each waiting record also has a Python callback, which the limit in bytes does not count.
    "queue.buffering.max.messages": 100_000
}

PRODUCE_SLICE_S = 0.1
METADATA_S = 5.0
LEADERS_TIMEOUT_MS = 10_000

_ASYNCHRONOUS = frozenset({ClientError.MSG_SIZE_TOO_LARGE, ClientError.TOPIC_AUTHORIZATION_FAILED})

KafkaHeaders: TypeAlias = list[tuple[str, bytes | None]]


class DeliveredMessage(Protocol):
    """The arguments of a delivery callback for a record that is in Kafka."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def timestamp(self) -> tuple[int, int]: ...


class RecordColumns(Protocol):
    """Many records, in the order of sending; all columns are as long as `values`."""

    @property
    def topics(self) -> Sequence[str]: ...
    @property
    def values(self) -> Sequence[bytes | None]: ...
    @property
    def keys(self) -> Sequence[bytes | None]: ...
    @property
    def partitions(self) -> Sequence[int]: ...
    @property
    def timestamps(self) -> Sequence[int]: ...
    @property
    def headers(self) -> Sequence[KafkaHeaders | None]: ...


OnDelivery: TypeAlias = Callable[[Any, DeliveredMessage], None]


class TaskProducer:
    """A producer of a task's records.

    `produce(topic, value, key, partition, on_delivery, timestamp, headers)` is the client's method;
    it raises BufferError if its queue is full, and otherwise `CLIENT_ERRORS`. `on_delivery` gets
    the client's error (None on success) and a `DeliveredMessage`. `make_admin` makes a client that
    asks the same brokers for leaders.
    """

    def __init__(
        self, config: Mapping[str, Any], make_admin: Callable[[], Admin] | None = None
    ) -> None:
        self._producer = create_producer({**TUNING, **config, **FORCED})
        self.produce: Callable[..., None] = self._producer.produce
        self._client_id = str(config.get("client.id", ""))
        self._make_admin = make_admin
        self._admin: Admin | None = None
        self._max_message_bytes = int(config.get("message.max.bytes", MAX_REQUEST_BYTES))

    def produce_many(self, records: RecordColumns, on_delivery: Iterable[OnDelivery | None]) -> int:
        """Produce records, each with its callback; return the number of accepted records.

        The accepted records are all, or those before the first one that `produce` refuses. A call
        of `produce` with that record raises the reason.
        """
        left = iter(records.values)
        calls = map(
            self.produce,
            records.topics,
            left,
            records.keys,
            records.partitions,
            on_delivery,
            # The place of `on_delivery`, which is a second name of the callback before it.
            repeat(None),
            records.timestamps,
            records.headers,
        )
        try:
            deque(calls, maxlen=0)
        except (BufferError, *CLIENT_ERRORS):
            return len(records.values) - length_hint(left) - 1
        return len(records.values)

    def serve(self, timeout_s: float = 0.0) -> int:
        """Run the callbacks that are due; return their number.

        Raises KafkaError once the producer cannot continue, for example because it was fenced.
        """
        with errors.translated("The producer cannot continue"):
            return int(self._producer.poll(timeout_s))

    def in_flight(self) -> int:
        """Return the number of records and callbacks that are not served yet."""
        return len(self._producer)

    def drain(self, timeout_s: float, *, until: Callable[[], bool]) -> bool:
        """Serve callbacks until `until()`; return False if the time ends first.

        Lingering records are sent at once. Raises KafkaError as `serve` does.
        """
        deadline = time.monotonic() + timeout_s
        while not until():
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return False
            with errors.translated("The producer cannot continue"):
                self._producer.flush(min(PRODUCE_SLICE_S, remaining_s))
        return True

    def open_topic(self, topic: str, *, give_up: Callable[[], bool]) -> None:
        """Wait until a topic's first record is delivered and its partitions have leaders.

        The first wait has no limit. Raises KafkaError as `serve` does.

        The client sends its next request before the last one is answered, also with
        `max.in.flight.requests.per.connection=1`. A broker that does not yet know that it leads a
        new partition may refuse one request and accept the next one. Unless the producer is
        idempotent, the refused records are then repeated after the later ones.
        """
        while self.in_flight() and not give_up():
            self.drain(PRODUCE_SLICE_S, until=lambda: self.in_flight() == 0)
        try:
            found = self._producer.list_topics(topic, METADATA_S).topics[topic].partitions
        except failures.CLIENT_ERRORS as exc:
            LOG.info("partitions of a topic are not known", extra={"reason": str(exc)})
            return
        # The leader of a single partition has just accepted a record.
        if len(found) > 1 and self._make_admin is not None:
            if self._admin is None:
                self._admin = self._make_admin()
            self._admin.wait_for_leaders(topic, len(found), LEADERS_TIMEOUT_MS, give_up=give_up)

    def explain(self, failure: Any, topic: str, size: int) -> KafkaError:
        """Return the error of a record of `size` bytes that was refused or not delivered."""
        if failures.code_of(failure) == ClientError.MSG_SIZE_TOO_LARGE:
            return KafkaError(
                f"A message of {size} bytes (key, value and headers) for topic '{topic}' is larger "
                f"than {self._max_message_bytes}, the value of the max.request.size configuration "
                "of the producer, or than the broker's message.max.bytes allows."
            )
        return errors.translate(
            failure,
            f"Failed to send a record of {size} bytes to '{topic}'",
            grant=self._grant(failure, (topic,)),
        )

    def _grant(self, failure: Any, topics: Collection[str]) -> str:  # noqa: ARG002  subclasses use it
        """Return the missing right if `failure` is a denial of records to `topics`."""
        names = ", ".join(f"'{topic}'" for topic in sorted(topics))
        word = "topic" if len(topics) == 1 else "each of the topics"
        return f"Write on {word} {names} to the principal of the producer '{self._client_id}'"

    @staticmethod
    def is_asynchronous(failure: BaseException) -> bool:
        """Return whether Java's producer reports this by callback instead of raising in send."""
        # The client raises the error once it knows the topic, so the moment depends on answers.
        return failures.code_of(failure) in _ASYNCHRONOUS

    def close(self, timeout_s: float) -> None:
        """Wait for records in flight, then drop the others."""
        try:
            if timeout_s > 0:
                self._producer.flush(timeout_s)
            self._producer.purge()
            self._producer.poll(0)
        except failures.CLIENT_ERRORS as exc:
            LOG.info("closed a producer that could not continue", extra={"reason": str(exc)})


SLICE_S = 0.5
ABORT_AT_CLOSE_S = 1.0
REGISTRATION_S = 5.0
"""Maximum wait of an abort for records in flight."""

DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000


class TransactionalProducer(TaskProducer):
    """A transactional producer; `max_block_ms` is Java's `max.block.ms`, None without limit."""

    def __init__(self, config: Mapping[str, Any], max_block_ms: int | None = None) -> None:
        super().__init__(config)
        self._max_block_ms = max_block_ms
        self._in_transaction = False
        self.transactional_id = str(config["transactional.id"])
        self.transaction_timeout_ms = int(
            config.get("transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS)
        )

    def init(self, give_up: Callable[[], bool]) -> bool:
        """Fence producers of this id and end its transaction; return False if the caller gave up.

        Raises KafkaError.
        """
        with errors.translated("Failed to initialize the producer", self._translated):
            return initialise(self._producer, self._limit(), give_up)

    def begin(self) -> None:
        """Begin a transaction. Raises KafkaError."""
        with errors.translated("Failed to begin a transaction"):
            self._producer.begin_transaction()
        self._in_transaction = True

    def commit(self, topics: Collection[str] = ()) -> None:
        """Deliver all records, then commit. `topics` are those of the records.

        After a KafkaError the transaction is not committed, unless the broker's answer was lost.
        """
        try:
            self._repeat(
                self._producer.commit_transaction, "Failed to commit the transaction", topics
            )
        except KafkaError as exc:
            if failures.code_of(exc.__cause__) != failures.UNDELIVERED:
                raise
            # librdkafka only counts records that it gave up before sending.
            denial = self._denial(topics)
            if denial is None:
                raise
            raise denial from exc
        self._in_transaction = False

    def abort(self) -> None:
        """Drop the records since `begin`. Raises KafkaError.

        Records in flight are delivered first. While the broker ends the previous transaction, it
        refuses to register a partition, and librdkafka repeats the request. If librdkafka aborts
        meanwhile, the broker does not know the new transaction yet: a fatal error
        (INVALID_TXN_STATE).
        """
        self._in_transaction = False
        # After an error that requires an abort librdkafka sends nothing, so this wait ends.
        self._producer.flush(REGISTRATION_S)
        self._repeat(self._producer.abort_transaction, "Failed to abort the transaction")

    def close(self, timeout_s: float) -> None:  # noqa: ARG002  what no commit waited for is lost
        """Abort an open transaction: librdkafka does not, and readers would wait for its end."""
        try:
            self._producer.purge()
            if self._in_transaction:
                self._in_transaction = False
                self._producer.abort_transaction(ABORT_AT_CLOSE_S)
            self._producer.poll(0)
        except failures.CLIENT_ERRORS as exc:
            LOG.info("left a transaction to the broker", extra={"reason": str(exc)})

    def explain(self, failure: Any, topic: str, size: int) -> KafkaError:
        """Return the error of a record, or the error that ended the producer."""
        if failures.code_of(failure) == failures.FATAL:
            try:
                self._producer.begin_transaction()
            except failures.CLIENT_ERRORS as exc:
                return self._translated(exc, "The producer cannot go on", (topic,))
        return super().explain(failure, topic, size)

    def _denial(self, topics: Collection[str]) -> KafkaError | None:
        """Return why one of the topics accepts no records; None if the brokers name no reason."""
        for topic in sorted(topics):
            try:
                found = self._producer.list_topics(topic, METADATA_S).topics[topic].error
            except failures.CLIENT_ERRORS as exc:
                LOG.info("metadata could not be read", extra={"topic": topic, "reason": str(exc)})
                return None
            if found is not None:
                return self._translated(found, f"Failed to send records to '{topic}'", (topic,))
        return None

    def _translated(self, failure: Any, action: str, topics: Collection[str] = ()) -> KafkaError:
        return errors.translate(failure, action, grant=self._grant(failure, topics))

    def _grant(self, failure: Any, topics: Collection[str]) -> str:
        if failures.code_of(failure) == failures.TRANSACTIONAL_ID_NOT_AUTHORIZED or not topics:
            return (
                f"Write on transactional id '{self.transactional_id}' to the principal of the"
                f" producer '{self._client_id}'"
            )
        return super()._grant(failure, topics)

    def _limit(self) -> Deadline:
        return Deadline(math.inf if self._max_block_ms is None else self._max_block_ms)

    def _repeat(
        self, call: Callable[[float], Any], action: str, topics: Collection[str] = ()
    ) -> None:
        limit = self._limit()
        while True:
            try:
                call(SLICE_S)
            except failures.CLIENT_ERRORS as exc:
                error = failures.error_of(exc)
                if error is None or not error.retriable() or limit.expired():
                    raise self._translated(exc, action, topics) from exc
            else:
                return
