"""Offsets that REST does not reach: records of offsets topics, and consumer groups.

Reads committed records only, and writes each record to the partition it was found in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import PreconditionFailed, PyconnectError, WaitTimedOut
from pyconnect_cli.kafka.admin import AdminConnection, translated, translated_errors
from pyconnect_cli.kafka.model import KeyPlace, SinkGroup, StoredRecord, TopicPartition, latest
from pyconnect_cli.kafka.reader import committed_from, records

if TYPE_CHECKING:
    from confluent_kafka import Message

SLICE_S = 1.0
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
        starts: dict[TopicPartition, int] = {}
        failures: list[Any] = []

        def delivered(error: Any, message: Message) -> None:
            if error is not None:
                failures.append(error)
                return
            at = TopicPartition(str(message.topic()), int(message.partition() or 0))
            offset = int(message.offset() or 0)
            starts[at] = min(starts.get(at, offset), offset)

        with translated_errors("write offsets"):
            producer = Producer(settings)
            for record in records:
                while True:
                    try:
                        producer.produce(
                            record.topic, record.value, record.key, record.partition, delivered
                        )
                        break
                    except BufferError:
                        producer.poll(SLICE_S)
            unsent = producer.flush(self._timeout_s())
        if failures:
            raise translated(failures[0], "write offsets")
        if unsent:
            raise WaitTimedOut(f"{unsent} of {len(records)} records were not acknowledged in time")
        # Open transactions of others may hide them for a while.
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
        """Return consumer groups with their committed offsets, which are not read for live ones."""
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
        """Delete a group without members; PreconditionFailed when it has some."""
        from pyconnect_clients.brokers.failures import IN_USE, code_of

        try:
            with translated_errors(f"delete consumer group {group}"):
                self._requests().delete_group(group, self._timeout_s())
        except PyconnectError as exc:
            if code_of(exc.__cause__) in IN_USE:
                raise PreconditionFailed(f"consumer group {group} has members") from exc
            raise

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the committed offsets of a group without members."""
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
