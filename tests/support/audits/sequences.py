"""Sequences in a topic, for readers with either isolation level."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.sources import LIMIT, SEQUENCE_SOURCE

WAIT_S = 150
NO_TOPIC = (
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


class Sequences:
    """One connector's name and topic (one partition), its flags and its limit."""

    def __init__(self, bootstrap_servers: str, directory: Path) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topic = unique_name("sequences")
        self.name = unique_name("numbers")
        self.directory = directory
        self.allow(0)

    def allow(self, limit: int) -> None:
        """Let every task go on to this number; replace the file, so no task reads half of it."""
        new = self.directory / f"{LIMIT}.new"
        new.write_text(str(limit))
        new.replace(self.directory / LIMIT)

    def flag(self, name: str) -> None:
        (self.directory / name).touch()

    def config(self, tasks: int = 1, **settings: str) -> dict[str, str]:
        return {
            "connector.class": SEQUENCE_SOURCE,
            "tasks.max": str(tasks),
            "topic": self.topic,
            "directory": str(self.directory),
            "exactly.once.support": "required",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def seen(self, *, committed: bool = True) -> Mapping[str, list[int]]:
        """Return all values up to the topic's present end, by key, in the order of the topic."""
        found: dict[str, list[int]] = defaultdict(list)
        end = self.end(committed=committed)
        if not end:
            return found
        consumer = self._reader(committed=committed)
        try:
            consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
            while (message := consumer.poll(WAIT_S)) is not None:
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return found
                if (message.offset() or 0) >= end:
                    # While a task writes all the time, a reader would never reach the end.
                    return found
                found[(message.key() or b"").decode()].append(int(message.value() or b"0"))
        finally:
            consumer.close()
        raise AssertionError(f"the end of {self.topic} was not reached")

    def end(self, *, committed: bool = True) -> int:
        """Return the present end offset for this isolation level; 0 when the topic does not exist.

        Raises AssertionError when the broker does not answer.
        """
        consumer = self._reader(committed=committed)
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(self.topic, 0), WAIT_S)
        except KafkaException as exc:
            if exc.args[0].code() in NO_TOPIC:
                return 0
            raise AssertionError(f"no end of {self.topic}: {exc}") from exc
        finally:
            consumer.close()
        return int(end)

    def _reader(self, *, committed: bool) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": unique_name("readers"),
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # An answer without records marks the end; a broker delays it by this time.
                "fetch.wait.max.ms": 20,
            }
        )

    def wait_for(self, last: int, tasks: int = 1, *, committed: bool = True) -> None:
        """Wait until the first `tasks` sequences have reached `last`."""
        keys = [str(number) for number in range(tasks)]

        def reached() -> bool:
            seen = self.seen(committed=committed)
            return all(seen[key][-1:] == [last] for key in keys)

        eventually(reached, WAIT_S, lambda: f"{last}, but there are {self.ends()}")

    def ends(self) -> Mapping[str, list[int]]:
        return {key: values[-3:] for key, values in self.seen().items()}

    def check(self, last: int, tasks: int = 1) -> None:
        """Assert that readers of committed records get every number once and in order."""
        self.wait_for(last, tasks)
        seen = self.seen()
        for number in range(tasks):
            assert seen[str(number)] == list(range(1, last + 1)), f"sequence {number}"

    def producer(self, transactional_id: str) -> Producer:
        """Return a producer that has fenced the previous user of the id."""
        producer = Producer(
            {"bootstrap.servers": self.bootstrap_servers, "transactional.id": transactional_id}
        )
        producer.init_transactions(30)
        return producer
