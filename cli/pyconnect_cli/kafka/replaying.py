"""Sends records and commits a group's offsets in one transaction, so that a kill repeats nothing.

The transactional id is the name of the group. A process that takes the id over fences the one
before it, whose open transaction is aborted. The group has no members: the process reads the
records itself and commits the offsets that it has worked up to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import Conflict, PyconnectError, WaitTimedOut
from pyconnect_cli.kafka.admin import translated, translated_errors
from pyconnect_cli.kafka.model import TopicPartition, TopicRecord

if TYPE_CHECKING:
    from confluent_kafka import Message

STEP_S = 60.0
"""The longest wait for one step of a transaction."""
SLICE_S = 0.5
LARGEST_BYTES = 200_000_000
"""The broker's limit decides about the size of a record, not that of this client."""


class ReplaySender:
    """Transactions of one group; offsets are those of `partitions`, in their order."""

    def __init__(
        self, settings: Mapping[str, str], group: str, partitions: Sequence[TopicPartition]
    ) -> None:
        from confluent_kafka import Consumer, Producer

        quiet = {**settings, "log_level": "0"}
        self._partitions = partitions
        self._group = group
        self._producer = Producer(
            {
                **quiet,
                "transactional.id": group,
                "message.max.bytes": str(LARGEST_BYTES),
                # A record without a partition gets the one that Java's producer chooses.
                "partitioner": "murmur2_random",
            }
        )
        self._consumer = Consumer(
            {
                **quiet,
                "group.id": group,
                "enable.auto.commit": "false",
                "isolation.level": "read_committed",
            }
        )

    def close(self) -> None:
        self._consumer.close()

    def take_over(self) -> list[int | None]:
        """Fence other processes of this group and return the committed offsets, None without."""
        with translated_errors(f"begin transactions of {self._group}"):
            self._producer.init_transactions(STEP_S)
            found = self._consumer.committed(self._kafka_partitions(), timeout=STEP_S)
        offsets = {TopicPartition(each.topic, each.partition): each.offset for each in found}
        return [None if offsets[at] < 0 else offsets[at] for at in self._partitions]

    @contextmanager
    def transaction(self, offsets: Sequence[int]) -> Iterator[None]:
        """Commit what is written inside together with these offsets, or nothing of both.

        Raises Conflict if another process has taken the group over.
        """
        from confluent_kafka import KafkaException

        from pyconnect_clients.brokers.failures import REQUEST_ERRORS

        try:
            self._producer.begin_transaction()
            yield
            self._producer.send_offsets_to_transaction(
                self._kafka_partitions(offsets), self._consumer.consumer_group_metadata(), STEP_S
            )
            until = time.monotonic() + STEP_S
            while True:
                try:
                    self._producer.commit_transaction(max(until - time.monotonic(), SLICE_S))
                    break
                except KafkaException as exc:
                    if not exc.args[0].retriable() or time.monotonic() > until:
                        raise
        except BaseException as exc:
            with suppress(*REQUEST_ERRORS):
                self._producer.abort_transaction(STEP_S)
            if not isinstance(exc, REQUEST_ERRORS):
                raise
            raise self._failure(exc, f"replay in a transaction of {self._group}") from exc

    def write(self, records: Sequence[TopicRecord]) -> list[tuple[TopicPartition, int]]:
        """Write records inside a transaction; return the partition and offset of each.

        The partition of a record without one (-1) is chosen by its key.
        """
        written: dict[int, tuple[TopicPartition, int]] = {}
        failures: list[tuple[int, Any]] = []

        def delivered(number: int, error: Any, message: Message) -> None:
            if error is not None:
                failures.append((number, error))
                return
            at = TopicPartition(str(message.topic()), int(message.partition() or 0))
            written[number] = (at, int(message.offset() or 0))

        for number, record in enumerate(records):
            while True:
                try:
                    self._producer.produce(
                        record.topic,
                        record.value,
                        record.key,
                        record.partition,
                        on_delivery=partial(delivered, number),
                        # To librdkafka 0 means now.
                        timestamp=max(record.timestamp_ms, 0),
                        headers=list(record.headers),
                    )
                    break
                except BufferError:
                    self._producer.poll(SLICE_S)
        unsent = self._producer.flush(STEP_S)
        if failures:
            number, error = failures[0]
            record = records[number]
            place = f"offset {record.offset} of its queue"
            raise self._failure(error, f"write the letter at {place} to {record.topic}")
        if unsent:
            raise WaitTimedOut(f"{unsent} of {len(records)} records were not acknowledged in time")
        return [written[number] for number in range(len(records))]

    def _failure(self, error: Any, what: str) -> PyconnectError:
        from pyconnect_clients.brokers.failures import FailureKind, failure_of

        if failure_of(error).kind is FailureKind.FENCED:
            return Conflict(f"another process has taken {self._group} over")
        return translated(error, what)

    def _kafka_partitions(self, offsets: Sequence[int] | None = None) -> list[Any]:
        from confluent_kafka import TopicPartition as KafkaTopicPartition

        if offsets is None:
            return [KafkaTopicPartition(*at) for at in self._partitions]
        return [
            KafkaTopicPartition(*at, offset)
            for at, offset in zip(self._partitions, offsets, strict=True)
        ]
