"""`connectors dlq`: the dead letters of a sink, grouped by cause or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pyconnect_cli.dlq.plan.causes import LetterGroup, LetterSorter, context_of, is_letter_of
from pyconnect_cli.dlq.plan.replays import Letters, sent_spans
from pyconnect_cli.dlq.queue import (
    DeadLetterTopic,
    ReplayJournal,
    dead_letter_topic,
    replay_directory,
    warn_of_removed,
)
from pyconnect_cli.kafka.model import TopicRecord
from pyconnect_cli.kafka.reader import some_records
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.topics import DEFAULT_MAX, record_json, shown_bytes, shown_time

app = typer.Typer()

HEADERS = "errors.deadletterqueue.context.headers.enable"
QueueArgument = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="name of the sink connector")
]
QueueTopicOption = Annotated[
    str | None,
    typer.Option(
        "--topic", metavar="TOPIC", help="dead letter topic (default: that of the connector)"
    ),
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
        typer.Option(
            "--max",
            metavar="N",
            min=1,
            help="records to show one by one instead of the groups, the newest (default 10)",
        ),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="the oldest records one by one")
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
    journal = ReplayJournal(
        replay_directory(session.environ), queue.admin.cluster_id(), queue.topic
    )
    sorter = LetterSorter(
        connector=queue.connector, replayed=Letters(sent_spans(journal.replays().values()))
    )
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
        empty=_empty(queue),
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
        empty=_empty(queue),
    )


def _letter_json(record: TopicRecord) -> dict[str, object]:
    return {**record_json(record), "error": context_of(record)}


def _remark(session: Session, queue: DeadLetterTopic, foreign: int, *, causes: bool) -> None:
    """Tell what the list leaves out; without `causes` no record has the headers of its error."""
    if foreign:
        session.output.message(
            f"left out: {counted(foreign, 'record')} of other connectors in {queue.topic}"
        )
    if not causes:
        session.output.warning(
            f"{queue.topic} does not say why: set {HEADERS}=true for new records"
        )


def _empty(queue: DeadLetterTopic) -> str:
    return f"{queue.topic} has no record" + (f" of {queue.connector}" if queue.connector else "")
