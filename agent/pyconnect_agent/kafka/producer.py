"""Writes to an internal topic: a producer with a thread that serves its callbacks.

Kafka: the send side of KafkaBasedLog, and the fencable producer of KafkaConfigBackingStore behind
`LeaderWriter`. Threading: `send`, `write` and `flush` may be called from any thread; the callback
of `send` runs on the producer's thread and must not block.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pyconnect_agent.core.errors import (
    KafkaError,
    PrivilegedRecordTooLargeError,
    PrivilegedWriteError,
    RecordTooLargeError,
    RetriableKafkaError,
)
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.kafka import clients, errors
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.fencing import initialise
from pyconnect_agent.process import long_lived
from pyconnect_clients.brokers import failures

_log = logging.getLogger(__name__)

CLAIM_TIMEOUT_MS = 60_000
ABORT_TIMEOUT_MS = 1_000
_POLL_S = 0.1
_ROOM_WAIT_S = 0.01

OnDelivery = Callable[[KafkaError | None], None]
"""Called once per record, with None for an acknowledged one."""
_Report = Callable[[Any, Any], None]
"""librdkafka's delivery callback, with its error and the message."""


class LeaderWriter(Protocol):
    """The leader's writer of records that only a leader may write.

    The writer is plain while `exactly.once.source.support` is `disabled`. For `preparing` and
    `enabled` it is transactional and fences the previous leader (KIP-618).
    """

    def claim(self) -> None:
        """Make this worker the only one that may write; without effect if it is already."""
        ...

    def write(self, records: Sequence[LogRecord], timeout_ms: int) -> None:
        """Write all records and wait for their acknowledgement."""
        ...

    def relinquish(self) -> None:
        """Release the right to write at once."""
        ...


class AcknowledgedWrite:
    """The acknowledgements of one batch, for which a thread waits."""

    def __init__(self, count: int) -> None:
        self._missing = count
        self._failure: KafkaError | None = None
        self._done = threading.Event()
        self._lock = threading.Lock()
        if count == 0:
            self._done.set()

    def delivered(self, failure: KafkaError | None) -> None:
        """Count a delivery; the first failure ends the wait."""
        with self._lock:
            self._missing -= 1
            if failure is not None and self._failure is None:
                self._failure = failure
            if self._failure is not None or self._missing == 0:
                self._done.set()

    def wait(self, deadline: Deadline, action: str) -> None:
        """Wait for all; raise RetriableKafkaError at the deadline, or the first failure."""
        if not self._done.wait(deadline.remaining_s()):
            raise RetriableKafkaError(f"{action}: timed out waiting for acknowledgement")
        if self._failure is not None:
            raise self._failure


class LogProducer:
    """A producer that writes records to one topic."""

    def __init__(self, topic: str, config: clients.ClientConfig, thread_name: str) -> None:
        self._topic = topic
        self._action = f"Failed to write to topic '{topic}'"
        self._producer = clients.create_producer(config)
        self._stopping = threading.Event()
        self._thread = long_lived.Thread(thread_name, self._serve)
        self._thread.start()

    def send(self, record: LogRecord, on_delivery: OnDelivery) -> None:
        """Queue one record without waiting; raise RetriableKafkaError if the queue is full."""
        self._produce(record, self._reporting_to(on_delivery))

    def write(self, records: Sequence[LogRecord], timeout_ms: float) -> None:
        """Send all and wait for every acknowledgement.

        A record whose wait timed out may still be written later, as in Kafka.
        """
        deadline = Deadline(timeout_ms)
        pending = AcknowledgedWrite(len(records))
        report = self._reporting_to(pending.delivered)
        for record in records:
            self._produce_when_there_is_room(record, report, deadline)
        pending.wait(deadline, self._action)

    def flush(self, timeout_ms: float) -> None:
        """Wait for all outstanding records; raise RetriableKafkaError at the deadline."""
        if len(self._producer) and self._producer.flush(timeout_ms / 1000):
            raise RetriableKafkaError(
                f"Timed out after {int(timeout_ms)} ms while flushing writes to topic "
                f"'{self._topic}'"
            )

    def stop(self, timeout_ms: float) -> None:
        """Deliver outstanding records until the deadline, and drop the rest."""
        deadline = Deadline(timeout_ms)
        try:
            self.flush(deadline.remaining_ms())
        except RetriableKafkaError as exc:
            _log.warning(
                "Stopping with undelivered records",
                extra={"topic": self._topic, "reason": str(exc), "count": len(self._producer)},
            )
            self._producer.purge()
        self._stopping.set()
        self._thread.join(deadline.remaining_s() + 2 * _POLL_S)

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                self._producer.poll(_POLL_S)
            except Exception:  # noqa: BLE001 - raised by one delivery callback; serve the others
                _log.exception("Unexpected exception in producer", extra={"topic": self._topic})

    def _reporting_to(self, on_delivery: OnDelivery) -> _Report:
        return lambda error, _message: on_delivery(
            None if error is None else errors.translate(error, self._action)
        )

    def _produce_when_there_is_room(
        self, record: LogRecord, report: _Report, deadline: Deadline
    ) -> None:
        """Produce one record; wait for room, because a batch may be larger than the queue."""
        while True:
            try:
                self._produce(record, report)
            except RetriableKafkaError as exc:
                full = isinstance(exc.__cause__, BufferError)
                if not full or deadline.expired() or self._stopping.wait(_ROOM_WAIT_S):
                    raise
            else:
                return

    def _produce(self, record: LogRecord, report: _Report) -> None:
        with errors.translated(self._action):
            self._producer.produce(
                self._topic, value=record.value, key=record.key, on_delivery=report
            )


class PlainLeaderWriter:
    """A writer that each worker may use: a claim does nothing and fences no producer."""

    def __init__(self, write: Callable[[Sequence[LogRecord], int], None]) -> None:
        self._write = write

    def claim(self) -> None:
        pass

    def write(self, records: Sequence[LogRecord], timeout_ms: int) -> None:
        self._write(records, timeout_ms)

    def relinquish(self) -> None:
        pass


class TransactionalLeaderWriter:
    """A writer with the leader's transactional id, which fences the previous leader (KIP-618).

    Kafka: the fencable producer of KafkaConfigBackingStore. Every failure releases the right: the
    herder claims it again once it knows that it still leads. One thread at a time.
    """

    def __init__(self, topic: str, config: clients.ClientConfig) -> None:
        self._topic = topic
        self._config = config
        self._producer: Any = None

    def claim(self) -> None:
        """Fence the id's producer unless this worker holds the right; KafkaError if that fails."""
        if self._producer is not None:
            return
        producer = clients.create_producer(self._config)
        with errors.translated(
            "Failed to create and initialize fencable producer for config topic"
        ):
            initialise(producer, Deadline(CLAIM_TIMEOUT_MS))
        self._producer = producer

    def write(self, records: Sequence[LogRecord], timeout_ms: int) -> None:
        """Write all records in one transaction; a PrivilegedWriteError releases the right."""
        if self._producer is None:
            raise PrivilegedWriteError(
                "Cannot produce to config topic without claiming write privileges first"
            )
        deadline = Deadline(timeout_ms)
        try:
            self._producer.begin_transaction()
            for record in records:
                self._producer.produce(self._topic, value=record.value, key=record.key)
            # A commit flushes too, but a commit that timed out cannot be aborted.
            if self._producer.flush(deadline.remaining_s()):
                raise TimeoutError("timed out waiting for acknowledgement")
            self._producer.commit_transaction(deadline.remaining_s())
        except failures.REQUEST_ERRORS as exc:
            failure = errors.translate(exc, "Failed to perform fencable send to config topic")
            _log.warning("Failed to write as leader", extra={"reason": str(failure)})
            self.relinquish()
            too_large = isinstance(failure, RecordTooLargeError)
            lost = PrivilegedRecordTooLargeError if too_large else PrivilegedWriteError
            raise lost("Failed to perform fencable send to config topic") from exc

    def relinquish(self) -> None:
        """Release the right, also after a failure; abort an open transaction if possible."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        producer.purge()
        try:
            # librdkafka does not abort by itself; readers of committed records would wait.
            producer.abort_transaction(ABORT_TIMEOUT_MS / 1000)
        except failures.CLIENT_ERRORS as exc:
            _log.debug("Left a transaction to the broker", extra={"reason": str(exc)})
