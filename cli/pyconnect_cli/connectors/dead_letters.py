"""`connectors dlq`: the records that a sink could not take, with their errors and origins.

A worker adds error and origin as headers of a record if the connector has
errors.deadletterqueue.context.headers.enable (KIP-298).
"""

from __future__ import annotations

from collections.abc import Sequence

import typer

from pyconnect_cli.acting.selection import known_connector
from pyconnect_cli.errors import PreconditionFailed
from pyconnect_cli.kafka.cluster import kafka_cluster
from pyconnect_cli.kafka.reader import TopicRecord, some_records
from pyconnect_cli.parsing.arguments import NameArgument
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import session_of
from pyconnect_cli.topics.commands import (
    DEFAULT_MAX,
    PURPOSE,
    FromBeginningOption,
    MaxOption,
    record_json,
    shown_bytes,
    shown_time,
)
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC

app = typer.Typer()

HEADERS = "errors.deadletterqueue.context.headers.enable"
PREFIX = "__connect.errors."


def context_of(record: TopicRecord) -> dict[str, str | None]:
    """Return the headers that the worker added, by name without their prefix."""
    return {
        name.removeprefix(PREFIX): None if data is None else data.decode(errors="replace")
        for name, data in record.headers
        if name.startswith(PREFIX)
    }


def _from(record: TopicRecord) -> str:
    known = context_of(record)
    if "topic" not in known:
        return "-"
    return f"{known['topic']}:{known.get('partition')}@{known.get('offset')}"


def _error(record: TopicRecord) -> str:
    known = context_of(record)
    name = (known.get("exception.class.name") or "").rpartition(".")[2]
    return ": ".join(text for text in (name, known.get("exception.message")) if text) or "-"


COLUMNS: Sequence[Column[TopicRecord]] = (
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


@app.command("dlq")
def dead_letters(
    context: typer.Context,
    name: NameArgument,
    *,
    most: MaxOption = DEFAULT_MAX,
    from_beginning: FromBeginningOption = False,
) -> None:
    """Show the newest records of a sink's dead letter queue with their errors.

    Needs --kafka-bootstrap. With -o json each record has its error with the stack trace.
    """
    session = session_of(context)
    config = known_connector(session, name).config
    topic = config.get(DEAD_LETTER_TOPIC)
    if not topic:
        raise PreconditionFailed(
            f"{name} has no dead letter queue: {DEAD_LETTER_TOPIC} is not set",
            hint="only sinks have one; it also needs errors.tolerance=all",
        )
    settings = kafka_cluster(session, PURPOSE).librdkafka()
    found = some_records(settings, topic, most, newest=not from_beginning)
    records = [r for r in found if context_of(r).get("connector.name", name) == name]
    if len(records) < len(found):
        others = len(found) - len(records)
        session.output.message(
            f"left out: {counted(others, 'record')} of other connectors in {topic}"
        )
    if records and not any(map(context_of, records)):
        session.output.warning(f"{topic} does not say why: set {HEADERS}=true for new records")
    session.output.listing(
        COLUMNS,
        records,
        document=[{**record_json(record), "error": context_of(record)} for record in records],
        names=[f"{record.topic}-{record.partition}@{record.offset}" for record in records],
        empty=f"{topic} has no record of {name}",
    )
