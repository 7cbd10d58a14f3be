"""The dead letter queue that a command names, read to its present end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyconnect_cli.acting.selection import known_connector
from pyconnect_cli.errors import NotFound, PreconditionFailed, UsageError
from pyconnect_cli.kafka.admin import KafkaAdmin
from pyconnect_cli.kafka.cluster import kafka_cluster
from pyconnect_cli.kafka.model import OffsetRange, TopicPartition, TopicRecord
from pyconnect_cli.kafka.reader import records_between
from pyconnect_cli.render.styles import counted
from pyconnect_cli.session import Session
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC

PURPOSE = "reading dead letters needs Kafka's brokers"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterTopic:
    """A topic of dead letters; `connector`: the sink whose letters are meant, None: all."""

    topic: str
    connector: str | None
    config: Mapping[str, str | None]
    settings: Mapping[str, str]
    admin: KafkaAdmin

    def ranges(self) -> dict[TopicPartition, OffsetRange]:
        """Return the first and the last stable offset of each partition."""
        found = self.admin.partitions([self.topic])
        if not found:
            raise NotFound(
                f"topic {self.topic} does not exist",
                hint="check its name, and that the context has the Kafka of the workers",
            )
        ends = self.admin.decided_ends(found)
        return {
            at: OffsetRange(earliest=each.earliest, latest=ends[at])
            for at, each in sorted(self.admin.ranges(found).items())
        }

    def letters(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Iterator[TopicRecord]:
        places = {at: (each.earliest, each.latest) for at, each in ranges.items()}
        return records_between(self.settings, places)

    def read_by_connector(self, topic: str) -> bool:
        """Whether the sink reads a topic, as far as its configuration says; True without one."""
        if self.connector is None:
            return True
        names = {name.strip() for name in (self.config.get("topics") or "").split(",")}
        pattern = self.config.get("topics.regex")
        try:
            return topic in names or bool(pattern and re.fullmatch(pattern, topic))
        except re.error:
            return True  # a pattern of Java that Python does not read


def dead_letter_topic(session: Session, name: str | None, topic: str | None) -> DeadLetterTopic:
    """Return the queue of a sink, a topic, or a sink's letters in a topic."""
    if name is None and topic is None:
        raise UsageError("name a sink connector, or a topic: --topic TOPIC")
    config: Mapping[str, str | None] = {}
    if name is not None:
        config = known_connector(session, name).config
        topic = topic or config.get(DEAD_LETTER_TOPIC)
        if not topic:
            raise PreconditionFailed(
                f"{name} has no dead letter queue: {DEAD_LETTER_TOPIC} is not set",
                hint="only sinks have one; it also needs errors.tolerance=all",
            )
    assert topic is not None
    settings = kafka_cluster(session, PURPOSE).librdkafka()
    admin = KafkaAdmin(settings, session.budget.remaining_s)
    return DeadLetterTopic(
        topic=topic, connector=name, config=config, settings=settings, admin=admin
    )


def warn_of_removed(session: Session, ranges: Mapping[TopicPartition, OffsetRange]) -> None:
    """Warn of offsets that retention has removed: their letters cannot be replayed."""
    for at, each in ranges.items():
        if each.earliest:
            session.output.warning(
                f"{at.topic}-{at.partition} begins at offset {each.earliest}: retention has removed"
                f" {counted(each.earliest, 'offset')} before it"
            )
