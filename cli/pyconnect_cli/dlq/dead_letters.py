"""`connectors dlq`: the dead letters of a sink, grouped by cause or one by one.

The queue that a command names and the journal of its replays are here, for `dlq replay` too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.journal import JournalFile, entries_of
from pyconnect_cli.acting.selection import known_connector
from pyconnect_cli.directories import state_directory
from pyconnect_cli.dlq.plan import (
    LetterGroup,
    Letters,
    LetterSorter,
    Replay,
    ReplayEntry,
    context_of,
    is_letter_of,
    read_replays,
    sent_spans,
)
from pyconnect_cli.errors import Conflict, NotFound, PreconditionFailed, UsageError
from pyconnect_cli.kafka.admin import KafkaAdmin, kafka_cluster
from pyconnect_cli.kafka.model import OffsetRange, TopicPartition, TopicRecord
from pyconnect_cli.kafka.reader import records_between, some_records
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.topics import DEFAULT_MAX, record_json, shown_bytes, shown_time
from pyconnect_cli.verbs import argument, option
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
        """Return whether the sink reads a topic, by its configuration; True without a sink."""
        if self.connector is None:
            return True
        names = {name.strip() for name in (self.config.get("topics") or "").split(",")}
        pattern = self.config.get("topics.regex")
        try:
            return topic in names or bool(pattern and re.fullmatch(pattern, topic))
        except re.error:
            return True  # a pattern of Java that Python does not read

    def journal(self, session: Session) -> ReplayJournal:
        """Return the journal of the queue's replays. Raises PreconditionFailed."""
        return ReplayJournal(replay_directory(session.environ), self.admin.cluster_id(), self.topic)

    @property
    def empty(self) -> str:
        """The text for a list without letters."""
        return f"{self.topic} has no record" + (f" of {self.connector}" if self.connector else "")


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


def replay_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user's journals. Raises PreconditionFailed."""
    return state_directory(environ) / "replays"


app = typer.Typer()

HEADERS = "errors.deadletterqueue.context.headers.enable"
QueueArgument = Annotated[str | None, argument("[NAME]", "name of the sink connector")]
QueueTopicOption = Annotated[
    str | None, option("--topic TOPIC", "dead letter topic (default: that of the connector)")
]


def _from(record: TopicRecord) -> str:
    known = context_of(record)
    if "topic" not in known:
        return "-"
    return f"{known['topic']}:{known.get('partition')}@{known.get('offset')}"


def _error(record: TopicRecord) -> str:
    known = context_of(record)
    name = (known.get("exception.class.name") or "").rpartition(".")[2]
    return ": ".join(text for text in (name, known.get("exception.message")) if text) or "-"


RECORD_COLUMNS: Sequence[Column[TopicRecord]] = (
    Column("PARTITION", lambda record: str(record.partition), right=True, wide=True),
    Column("OFFSET", lambda record: str(record.offset), right=True),
    Column("TIME", lambda record: shown_time(record.timestamp_ms), whole=True),
    Column("FROM", _from, whole=True),
    Column("TASK", lambda record: context_of(record).get("task.id") or "-", wide=True),
    Column("STAGE", lambda record: context_of(record).get("stage") or "-"),
    Column("ERROR", _error, prose=True),
    Column("KEY", lambda record: shown_bytes(record.key), wide=True),
    Column("VALUE", lambda record: shown_bytes(record.value), prose=True, wide=True),
)


def _class(name: str) -> str:
    """Return a class without its package; `Cast$Value` is one."""
    return name.rpartition(".")[2]


def _cause(group: LetterGroup) -> str:
    """Return the class that failed, the exception with its innermost cause, and the message."""
    cause = group.cause
    name = _class(cause.exception)
    if cause.root and cause.root != cause.exception:
        name += f" ({_class(cause.root)})"
    return ": ".join(text for text in (_class(cause.processor), name, cause.message) if text) or "-"


GROUP_COLUMNS: Sequence[Column[LetterGroup]] = (
    Column("GROUP", lambda group: group.id, whole=True),
    Column("LETTERS", lambda group: str(group.count), right=True),
    Column("LEFT", lambda group: str(group.left), right=True),
    Column("STAGE", lambda group: group.cause.stage or "-"),
    Column("ERROR", _cause, prose=True),
    Column("TOPIC", lambda group: group.cause.topic or "-"),
    Column(
        "EXAMPLE", lambda group: f"{group.example.partition}@{group.example.offset}", whole=True
    ),
    Column("FROM", lambda group: _from(group.example), whole=True, wide=True),
    Column("FIRST", lambda group: shown_time(group.first_ms), whole=True, wide=True),
    Column("LAST", lambda group: shown_time(group.last_ms), whole=True, wide=True),
)


@app.command("dlq")
def dead_letters(
    context: typer.Context,
    name: QueueArgument = None,
    *,
    topic: QueueTopicOption = None,
    most: Annotated[
        int | None,
        option(
            "--max N",
            "records to show one by one instead of the groups, the newest (default 10)",
            least=1,
        ),
    ] = None,
    from_beginning: Annotated[
        bool, option("--from-beginning", "the oldest records one by one")
    ] = False,
) -> None:
    """Group a sink's dead letters by cause, or show the newest; needs --kafka-bootstrap.

    A cause is stage, exception, message without numbers and quoted parts, failing class and
    original topic. LEFT counts letters without a replay. -o json has an example of each group with
    its stack trace.
    """
    session = session_of(context)
    queue = dead_letter_topic(session, name, topic)
    if most is not None or from_beginning:
        _show_records(session, queue, most or DEFAULT_MAX, newest=not from_beginning)
        return
    replayed = Letters(sent_spans(queue.journal(session).replays().values()))
    sorter = LetterSorter(connector=queue.connector, replayed=replayed)
    ranges = queue.ranges()
    for record in queue.letters(ranges):
        sorter.take(record)
    warn_of_removed(session, ranges)
    groups = sorter.by_count()
    _remark(session, queue, sorter.foreign, causes=not groups or any(g.cause.stage for g in groups))
    spans = sorter.spans.built()
    session.output.listing(
        GROUP_COLUMNS,
        groups,
        document=[{**one.to_json(spans), "example": _letter_json(one.example)} for one in groups],
        empty=queue.empty,
    )


def _show_records(session: Session, queue: DeadLetterTopic, most: int, *, newest: bool) -> None:
    found = some_records(queue.settings, queue.topic, most, newest=newest)
    records = [record for record in found if is_letter_of(context_of(record), queue.connector)]
    causes = not records or any(map(context_of, records))
    _remark(session, queue, len(found) - len(records), causes=causes)
    session.output.listing(
        RECORD_COLUMNS,
        records,
        document=[_letter_json(record) for record in records],
        names=[f"{record.topic}-{record.partition}@{record.offset}" for record in records],
        empty=queue.empty,
    )


def _letter_json(record: TopicRecord) -> dict[str, object]:
    return {**record_json(record), "error": context_of(record)}


def _remark(session: Session, queue: DeadLetterTopic, foreign: int, *, causes: bool) -> None:
    """Report what the list leaves out; without `causes` no record has the headers of its error."""
    if foreign:
        session.output.message(
            f"left out: {counted(foreign, 'record')} of other connectors in {queue.topic}"
        )
    if not causes:
        session.output.warning(
            f"{queue.topic} does not say why: set {HEADERS}=true for new records"
        )
