"""A transactional producer of a source task (KIP-618, KIP-98).

Adds to `TaskProducer` the four calls of a transaction. Each call runs in short slices that are
repeated, so that a stopping task does not wait in one; librdkafka continues the same call. Errors
are translated; the first one that is not retriable ends the call. Used by one thread.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka import errors
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.fencing import initialise
from pyconnect_agent.kafka.task_producer import METADATA_S, TaskProducer
from pyconnect_clients.brokers import failures

LOG = logging.getLogger(__name__)

SLICE_S = 0.5
ABORT_AT_CLOSE_S = 1.0
REGISTRATION_S = 5.0
"""Maximum wait of an abort for records in flight."""

DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000


class TransactionalProducer(TaskProducer):
    """`max_block_ms`: Java's `max.block.ms`, None without limit."""

    def __init__(self, config: Mapping[str, Any], max_block_ms: int | None = None) -> None:
        super().__init__(config)
        self._max_block_ms = max_block_ms
        self._in_transaction = False
        self.transactional_id = str(config["transactional.id"])
        self.transaction_timeout_ms = int(
            config.get("transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS)
        )

    def init(self, give_up: Callable[[], bool]) -> bool:
        """Fence every producer of this id and end its transaction; False when given up before.

        Raises KafkaError.
        """
        with errors.translated("Failed to initialize the producer", self._translated):
            return initialise(self._producer, self._limit(), give_up)

    def begin(self) -> None:
        """Raises KafkaError."""
        with errors.translated("Failed to begin a transaction"):
            self._producer.begin_transaction()
        self._in_transaction = True

    def commit(self, topics: Collection[str] = ()) -> None:
        """Deliver everything, then commit. `topics`: those of the records.

        After a KafkaError the transaction is not committed, unless the broker's answer was lost.
        """
        try:
            self._repeat(
                self._producer.commit_transaction, "Failed to commit the transaction", topics
            )
        except KafkaError as exc:
            if failures.code_of(exc.__cause__) != failures.UNDELIVERED:
                raise
            # librdkafka only counts the records that it gave up before it sent them.
            denial = self._denial(topics)
            if denial is None:
                raise
            raise denial from exc
        self._in_transaction = False

    def abort(self) -> None:
        """Drop the records since `begin`. Raises KafkaError.

        Records in flight are delivered first. The broker refuses to register a partition while it
        ends the previous transaction, and librdkafka repeats the request. If librdkafka aborts
        meanwhile, the broker does not know the new transaction yet: a fatal error
        (INVALID_TXN_STATE).
        """
        self._in_transaction = False
        # After an error that requires an abort librdkafka sends nothing, so this wait ends.
        self._producer.flush(REGISTRATION_S)
        self._repeat(self._producer.abort_transaction, "Failed to abort the transaction")

    def close(self, timeout_s: float) -> None:  # noqa: ARG002  what no commit waited for is lost
        """Abort an open transaction: librdkafka does not, and its readers would wait."""
        try:
            self._producer.purge()
            if self._in_transaction:
                self._in_transaction = False
                self._producer.abort_transaction(ABORT_AT_CLOSE_S)
            self._producer.poll(0)
        except failures.CLIENT_ERRORS as exc:
            LOG.info("left a transaction to the broker", extra={"reason": str(exc)})

    def explain(self, failure: Any, topic: str, size: int) -> KafkaError:
        """Return the error of a record; once the producer cannot go on, the error that ended it."""
        if failures.code_of(failure) == failures.FATAL:
            try:
                self._producer.begin_transaction()
            except failures.CLIENT_ERRORS as exc:
                return self._translated(exc, "The producer cannot go on", (topic,))
        return super().explain(failure, topic, size)

    def _denial(self, topics: Collection[str]) -> KafkaError | None:
        """Return why one of the topics takes no records; None where the brokers name no reason."""
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
