"""Writes records with known faults, and keeps a list of their places."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.topics import are_there, ends_of

DEADLINE_S = 60.0
Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Record:
    """One record to write."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: Headers = ()
    timestamp_ms: int = 0


@dataclass(slots=True)
class Seed:
    """A topic of one test, and the producer that fills it."""

    bootstrap: str
    topic: str
    partitions: int

    def write(
        self, records: Sequence[Record], *, outcome: str | None = None
    ) -> list[tuple[int, int]]:
        """Write records in order and return (partition, offset) of each.

        `outcome` commit or abort wraps them in one transaction; None writes without one.
        """
        if outcome is None:
            producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": "1"})
            return self._produce(producer, records)
        with self.transaction() as producer:
            places = self._produce(producer, records)
            if outcome == "commit":
                producer.commit_transaction(DEADLINE_S)
            else:
                producer.abort_transaction(DEADLINE_S)
        self._wait_for_markers(places)
        return places

    def _wait_for_markers(self, places: Sequence[tuple[int, int]]) -> None:
        """Wait until the markers are written: the coordinator answers before that."""
        lasts = dict(places)

        def are_there() -> bool:
            # An earlier open transaction hides the end from readers of committed records.
            ends = ends_of(self.bootstrap, self.topic, lasts, committed=False)
            return all(ends[partition] > last + 1 for partition, last in lasts.items())

        eventually(are_there, DEADLINE_S)

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """Yield a producer with an open transaction, which the block ends or leaves open."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"seed-{uuid.uuid4()}",
                # The open transactions of a test outlast several audits on a busy machine.
                "transaction.timeout.ms": "600000",
                "linger.ms": "1",
            }
        )
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        yield producer

    def open(self, records: Sequence[Record]) -> tuple[Producer, list[tuple[int, int]]]:
        """Write in a transaction that stays open as long as the producer is held."""
        with self.transaction() as producer:
            return producer, self._produce(producer, records)

    def _produce(self, producer: Producer, records: Sequence[Record]) -> list[tuple[int, int]]:
        places: dict[int, tuple[int, int]] = {}

        def reporter(index: int) -> Callable[[object, object], None]:
            def delivered(error: object, message: object) -> None:
                assert error is None, error
                places[index] = (message.partition(), message.offset())  # type: ignore[attr-defined]

            return delivered

        for index, record in enumerate(records):
            while True:
                try:
                    producer.produce(
                        self.topic,
                        value=record.value,
                        key=record.key,
                        partition=record.partition,
                        headers=list(record.headers),
                        timestamp=record.timestamp_ms,
                        on_delivery=reporter(index),
                    )
                    break
                except BufferError:
                    producer.poll(1)
        assert producer.flush(DEADLINE_S) == 0
        return [places[index] for index in range(len(records))]


def seed_topic(
    bootstrap: str,
    *,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Seed:
    """Create a topic and return its `Seed`."""
    topic = name or unique_name("audited")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics(
        [
            NewTopic(
                topic, num_partitions=partitions, replication_factor=1, config=dict(config or {})
            )
        ]
    )
    created[topic].result(DEADLINE_S)
    eventually(lambda: are_there(admin, [topic]))
    return Seed(bootstrap, topic, partitions)


def delete_before(seed: Seed, partition: int, offset: int) -> None:
    """Remove the records before an offset, as retention does."""
    admin = AdminClient({"bootstrap.servers": seed.bootstrap})
    at = TopicPartition(seed.topic, partition, offset)
    for future in admin.delete_records([at]).values():
        future.result(DEADLINE_S)
