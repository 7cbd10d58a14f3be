"""Writes to Kafka: replays in transactions, records of offsets topics, offsets of groups.

A replay sends records and commits a group's offsets in one transaction, so that a kill repeats
nothing. The transactional id is the name of the group. A process that takes the id over fences the
one before it, whose open transaction is aborted. The group has no members: the process reads the
records itself and commits the offsets that it has worked up to.

Offsets topics hold what REST does not reach. Committed records only are read, and each record is
written to the partition it was found in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import Conflict, PreconditionFailed, PyconnectError, WaitTimedOut
from pyconnect_cli.kafka.admin import AdminConnection, translated, translated_errors
from pyconnect_cli.kafka.model import (
    KeyPlace,
    SinkGroup,
    StoredRecord,
    TopicPartition,
    TopicRecord,
    latest,
)
from pyconnect_cli.kafka.reader import committed_from, records

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer

STEP_S = 60.0
"""The longest wait for one step of a transaction."""
SLICE_S = 0.5
LARGEST_BYTES = 200_000_000
"""A limit that no record reaches: the broker's limit decides, not that of this client."""


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
        """Fence other processes of this group; return committed offsets, None for none."""
        with translated_errors(f"begin transactions of {self._group}"):
            self._producer.init_transactions(STEP_S)
            found = self._consumer.committed(self._kafka_partitions(), timeout=STEP_S)
        offsets = {TopicPartition(each.topic, each.partition): each.offset for each in found}
        return [None if offsets[at] < 0 else offsets[at] for at in self._partitions]

    @contextmanager
    def transaction(self, offsets: Sequence[int]) -> Iterator[None]:
        """Commit the records written inside together with these offsets, or neither.

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
        rows = [
            {
                "topic": record.topic,
                "value": record.value,
                "key": record.key,
                "partition": record.partition,
                # librdkafka takes 0 for the present time.
                "timestamp": max(record.timestamp_ms, 0),
                "headers": list(record.headers),
            }
            for record in records
        ]

        def failure(number: int, error: Any) -> PyconnectError:
            place = f"offset {records[number].offset} of its queue"
            return self._failure(error, f"write the letter at {place} to {records[number].topic}")

        return _written(self._producer, rows, STEP_S, failure)

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


READ_BACK_S = 15.0


class OffsetsTopics:
    """Offsets topics of one cluster; writing ends within `remaining_s()`."""

    def __init__(self, settings: Mapping[str, str], remaining_s: Callable[[], float]) -> None:
        self._settings = {**settings, "log_level": "0"}
        self._remaining_s = remaining_s

    def read(self, topics: Iterable[str]) -> dict[KeyPlace, StoredRecord]:
        """Return the stored records, without those of open transactions."""
        found = (records(self._settings, name, "read_committed") for name in sorted(set(topics)))
        return latest(map(_stored, chain.from_iterable(found)))

    def write(self, records: Sequence[StoredRecord]) -> dict[KeyPlace, bytes | None]:
        """Write records in order and return the newest of each place, read back from Kafka."""
        from confluent_kafka import Producer

        # Each record goes to the partition of its key: a partitioner could choose another one.
        settings = {**self._settings, "acks": "all", "enable.idempotence": "true"}
        rows = [
            {"topic": r.topic, "value": r.value, "key": r.key, "partition": r.partition}
            for r in records
        ]
        with translated_errors("write offsets"):
            places = _written(
                Producer(settings),
                rows,
                self._timeout_s(),
                lambda _, error: translated(error, "write offsets"),
            )
        starts: dict[TopicPartition, int] = {}
        for at, offset in places:
            starts[at] = min(starts.get(at, offset), offset)
        # Open transactions of other producers may hide these records for a while.
        until = time.monotonic() + min(READ_BACK_S, self._timeout_s())
        while True:
            newest = map(_stored, committed_from(self._settings, starts))
            found = {record.place: record.value for record in newest}
            if {record.place for record in records} <= set(found) or time.monotonic() > until:
                return found

    def _timeout_s(self) -> float:
        return max(self._remaining_s(), 0.1)


class ConsumerGroups(AdminConnection):
    def starting_with(self, prefix: str) -> list[SinkGroup]:
        """Return consumer groups, those without members with their committed offsets."""
        with translated_errors("list consumer groups"):
            listing = self._client().list_consumer_groups(request_timeout=self._timeout_s())
            listed = listing.result()
        groups = []
        for one in listed.valid:
            if one.group_id.startswith(prefix):
                group = SinkGroup(group=one.group_id, state=one.state.name, offsets={})
                offsets = {} if group.live else self.offsets(one.group_id)
                groups.append(replace(group, offsets=offsets))
        return groups

    def offsets(self, group: str) -> dict[TopicPartition, int]:
        with translated_errors(f"list the offsets of {group}"):
            found = self._requests().committed(group, self._timeout_s())
        return {TopicPartition(*partition): offset for partition, offset in found.items()}

    def delete(self, group: str) -> None:
        """Delete a group; PreconditionFailed when it has members."""
        from pyconnect_clients.brokers.failures import IN_USE, code_of

        try:
            with translated_errors(f"delete consumer group {group}"):
                self._requests().delete_group(group, self._timeout_s())
        except PyconnectError as exc:
            if code_of(exc.__cause__) in IN_USE:
                raise PreconditionFailed(f"consumer group {group} has members") from exc
            raise

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        with translated_errors(f"set the offsets of {group}"):
            self._requests().commit(group, offsets, self._timeout_s())


def _stored(message: Message) -> StoredRecord:
    key, value = message.key(), message.value()
    return StoredRecord(
        topic=str(message.topic()),
        partition=int(message.partition() or 0),
        key=key if isinstance(key, bytes) else b"",
        value=value if isinstance(value, bytes) else None,
        timestamp_ms=message.timestamp()[1],
    )


def _written(
    producer: Producer,
    rows: Sequence[Mapping[str, Any]],
    timeout_s: float,
    failure: Callable[[int, Any], PyconnectError],
) -> list[tuple[TopicPartition, int]]:
    """Write records, each the arguments of `produce`; return the partition and offset of each.

    `failure` returns the error of the record with a number. WaitTimedOut for a missing answer.
    """
    written: dict[int, tuple[TopicPartition, int]] = {}
    failures: list[tuple[int, Any]] = []

    def delivered(number: int, error: Any, message: Message) -> None:
        if error is not None:
            failures.append((number, error))
            return
        at = TopicPartition(str(message.topic()), int(message.partition() or 0))
        written[number] = (at, int(message.offset() or 0))

    for number, row in enumerate(rows):
        while True:
            try:
                producer.produce(**row, on_delivery=partial(delivered, number))
                break
            except BufferError:
                producer.poll(SLICE_S)
    unsent = producer.flush(timeout_s)
    if failures:
        raise failure(*failures[0])
    if unsent:
        raise WaitTimedOut(f"{unsent} of {len(rows)} records were not acknowledged in time")
    return [written[number] for number in range(len(rows))]
