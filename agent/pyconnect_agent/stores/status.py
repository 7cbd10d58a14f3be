"""The status store: the status topic of distributed workers, a log in memory of standalone ones.

Kafka: KafkaStatusBackingStore, MemoryStatusBackingStore. Unlike Kafka, a failed send is repeated
after a pause and a read to the end, and `flush` also waits for these repetitions.

Threading: puts send without waiting; a thread of the store repeats failed sends. Every call into
the reducer holds one lock, for the time of a few dict operations.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue

from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError
from pyconnect_agent.core.ids import ConnectorTaskId, Instance
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.internal_topics.statuslog import (
    StatusLog,
    StatusSend,
    TopicStatus,
    topic_record,
    topic_removal,
)
from pyconnect_agent.core.reporting import Status
from pyconnect_agent.kafka.log import Log, ReadRecord, log_notices
from pyconnect_agent.process import long_lived

_log = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.1
READ_TIMEOUT_MS = 5_000
_STOP_TIMEOUT_S = 10.0

_Send = StatusSend | LogRecord
"""A plain record is a topic status, which is repeated without conditions."""


class StatusStore:
    """The statuses in a log."""

    def __init__(self, log: Log, retry_backoff_s: float = RETRY_BACKOFF_S) -> None:
        # Reentrant: a log in memory passes a record to the reader during the send.
        self._lock = threading.RLock()
        self._statuses = StatusLog()
        self._log = log
        self._retry_backoff_s = retry_backoff_s
        self._stopping = threading.Event()
        self._failed: SimpleQueue[_Send | None] = SimpleQueue()
        self._retries = long_lived.Thread("status-retries", self._repeat_failed)
        # The number of sends that are neither acknowledged nor dropped; notified at each decrease.
        self._outstanding = 0
        self._settled = threading.Condition()

    def start(self) -> None:
        """Start the log; WorkerConfigError, WorkerStartError as `CompactedLog.start`."""
        self._log.start(_StatusReader(self._lock, self._statuses, self._send))
        self._retries.start()

    def stop(self) -> None:
        self._stopping.set()
        self._failed.put(None)
        self._log.stop()
        if self._retries.ident is not None:
            self._retries.join(_STOP_TIMEOUT_S)

    def flush(self, timeout_ms: int) -> None:
        """Wait until every send is acknowledged or dropped.

        RetriableKafkaError at the deadline.
        """
        with self._settled:
            if not self._settled.wait_for(lambda: self._outstanding == 0, timeout_ms / 1000):
                raise RetriableKafkaError(
                    f"Timed out after {timeout_ms} ms while flushing {self._outstanding} status "
                    "updates"
                )

    def connector(self, connector: str) -> Status | None:
        with self._lock:
            return self._statuses.connector(connector)

    def task(self, task_id: ConnectorTaskId) -> Status | None:
        with self._lock:
            return self._statuses.task(task_id)

    def tasks(self, connector: str) -> Mapping[int, Status]:
        """Return the statuses in order of task number."""
        with self._lock:
            return self._statuses.tasks(connector)

    def connectors(self) -> frozenset[str]:
        """Return the connectors with a status that was read or sent."""
        with self._lock:
            return self._statuses.connectors()

    def topics(self, connector: str) -> tuple[str, ...]:
        with self._lock:
            return self._statuses.topics(connector)

    def has_topic(self, connector: str, topic: str) -> bool:
        with self._lock:
            return self._statuses.topic(connector, topic) is not None

    def put(
        self, item: Instance, status: Status, *, safe: bool = False, late: bool = False
    ) -> None:
        """Send without waiting. `safe`: not over a later status of another worker (putSafe).

        `late`: the topic is read to its end before that is decided.
        """
        with self._lock:
            self._send(self._statuses.send(item, status, safe=safe), late=late)

    def delete(self, item: Instance) -> None:
        with self._lock:
            self._send(self._statuses.send_removal(item))

    def put_topic(self, connector: str, task: int, topic: str, discovered_ms: int) -> None:
        status = TopicStatus(
            topic=topic, connector=connector, task=task, discovered_ms=discovered_ms
        )
        with self._lock:
            self._send(topic_record(status))

    def delete_topic(self, connector: str, topic: str) -> None:
        with self._lock:
            self._send(topic_removal(connector, topic))

    def _send(self, send: _Send | None, *, late: bool = False) -> None:
        """Send under the lock, so that one key's records keep the order of their puts."""
        if send is None:
            return
        with self._settled:
            self._outstanding += 1
        if late:
            self._failed.put(send)
        else:
            self._produce(send)

    def _produce(self, send: _Send) -> None:
        record = send.record if isinstance(send, StatusSend) else send
        try:
            self._log.send(record, partial(self._delivered, send))
        except KafkaError as exc:
            self._delivered(send, exc)

    def _delivered(self, send: _Send, failure: KafkaError | None) -> None:
        """Handle a send's result, on the producer's thread, or at once if the send itself fails."""
        if failure is None:
            self._settle()
        elif failure.retriable and not self._stopping.is_set():
            self._failed.put(send)
        else:
            _log.error("Failed to write status update", extra={"reason": str(failure)})
            self._settle()

    def _settle(self) -> None:
        with self._settled:
            self._outstanding -= 1
            self._settled.notify_all()

    def _repeat_failed(self) -> None:
        while (first := self._failed.get()) is not None:
            # Kafka repeats at once, which keeps worker and broker busy while the broker refuses
            # sends.
            if self._stopping.wait(self._retry_backoff_s):
                return
            sends: list[_Send] = [first]
            while not self._failed.empty() and (more := self._failed.get()) is not None:
                sends.append(more)
            try:
                self._log.read_to_end(READ_TIMEOUT_MS)
            except RetriableKafkaError:
                for send in sends:
                    self._failed.put(send)
                continue
            except KafkaError as exc:
                _log.warning("Status updates are repeated unread", extra={"reason": exc.message})
            for send in sends:
                with self._lock:
                    if isinstance(send, LogRecord) or self._statuses.should_repeat(send):
                        self._produce(send)
                        continue
                self._settle()


class _StatusReader:
    def __init__(
        self, lock: threading.RLock, statuses: StatusLog, send: Callable[[StatusSend], None]
    ) -> None:
        self._lock = lock
        self._statuses = statuses
        self._send = send

    def apply(self, record: ReadRecord) -> None:
        with self._lock:
            notices = self._statuses.apply(record.key, record.value)
            for send in self._statuses.corrections():
                self._send(send)
        if notices:
            log_notices(_log, notices)

    def applied(self) -> None:
        """Do nothing: statuses are visible as soon as they are read."""

    def caught_up(self) -> None:
        """Do nothing: statuses are visible as soon as they are read."""
