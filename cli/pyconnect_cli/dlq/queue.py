"""The dead letter queue that a command names, read to its end, and the journal of replays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyconnect_cli.acting.journal import JournalFile, entries_of
from pyconnect_cli.acting.selection import known_connector
from pyconnect_cli.directories import state_directory
from pyconnect_cli.dlq.plan.replays import Replay, ReplayEntry, read_replays
from pyconnect_cli.errors import Conflict, NotFound, PreconditionFailed, UsageError
from pyconnect_cli.kafka.admin import KafkaAdmin, kafka_cluster
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


HISTORY = "list the replays: pyconnect dlq history"


class ReplayJournal(JournalFile):
    """The replays of one dead letter topic."""

    def __init__(self, directory: Path, cluster_id: str, topic: str) -> None:
        busy = Conflict(f"another replay of {topic} is running on this host", hint=HISTORY)
        super().__init__(directory, cluster_id, topic, busy=busy)

    def replays(self) -> dict[str, Replay]:
        """Return the replays by their ids, oldest first."""
        return replays_in(self.path)


def replays_in(path: Path) -> dict[str, Replay]:
    """Return the replays of a journal; UsageError names a file that cannot be read."""
    try:
        return read_replays(entries_of(path, ReplayEntry))
    except (UsageError, KeyError) as exc:
        reason = exc.message if isinstance(exc, UsageError) else f"replay {exc} has no plan"
        raise UsageError(
            f"{path}: {reason}",
            hint="a newer version of this command may have written the file; without it the letters"
            " that were replayed are not known",
        ) from exc


def all_replays(directory: Path) -> list[Replay]:
    """Return the replays of all journals of this user, newest first."""
    found = [
        replay for path in sorted(directory.glob("*.jsonl")) for replay in replays_in(path).values()
    ]
    return sorted(found, key=lambda replay: replay.planned.at_ms, reverse=True)


def known_replay(directory: Path, identity: str) -> Replay:
    """Return a replay by its id; NotFound without it."""
    for replay in all_replays(directory):
        if replay.planned.replay == identity:
            return replay
    raise NotFound(f"{directory} has no replay {identity}", hint=HISTORY)


def replay_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user's journals. Raises PreconditionFailed."""
    return state_directory(environ) / "replays"
