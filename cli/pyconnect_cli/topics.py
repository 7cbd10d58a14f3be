"""`pyconnect topics`: the topics that connectors use, over REST, and their records, from Kafka."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import Asks, BatchStep, run_steps
from pyconnect_cli.acting.selection import known_connector
from pyconnect_cli.kafka.admin import kafka_cluster
from pyconnect_cli.kafka.model import TopicRecord
from pyconnect_cli.kafka.reader import some_records
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import session_of
from pyconnect_cli.verbs import BatchVerb, NameArgument, argument, option

app = typer.Typer(help="List and reset the topics that connectors use; show records.")

PURPOSE = "reading records needs Kafka's brokers"
DEFAULT_MAX = 10
MaxOption = Annotated[int, option("--max N", "maximum number of records", least=1)]
FromBeginningOption = Annotated[
    bool, option("--from-beginning", "the oldest records instead of the newest")
]

COLUMNS: Sequence[Column[TopicRecord]] = (
    Column("PARTITION", lambda record: str(record.partition), right=True),
    Column("OFFSET", lambda record: str(record.offset), right=True),
    Column("TIME", lambda record: shown_time(record.timestamp_ms), whole=True, wide=True),
    Column("KEY", lambda record: shown_bytes(record.key)),
    Column("VALUE", lambda record: shown_bytes(record.value), prose=True),
    Column(
        "HEADERS",
        lambda record: " ".join(f"{name}={shown_bytes(data)}" for name, data in record.headers),
        wide=True,
    ),
)


@app.command("list")
def list_topics(context: typer.Context, name: NameArgument) -> None:
    """List the topics that a connector has used since it was created or reset (KIP-558)."""
    session = session_of(context)
    known_connector(session, name)
    found = session.client.connector_topics(name)
    session.output.listing(
        (Column("TOPIC", str),), found, document=found, empty="no topics used yet"
    )


@app.command("reset", cls=BatchVerb)
def reset_topics(
    context: typer.Context, names: Annotated[list[str], argument("NAME…", "names of connectors")]
) -> None:
    """Empty the list of topics that connectors have used; no topic is changed.

    A topic returns to the list when the connector uses it again.
    """
    session = session_of(context)
    for name in names:
        known_connector(session, name)

    def act(name: str) -> None:
        session.client.reset_connector_topics(name)

    steps = [
        BatchStep(name=name, done="list of topics reset", act=partial(act, name)) for name in names
    ]
    run_steps(session, "reset the list of topics of", steps, asks=Asks.ALWAYS)


@app.command()
def read(
    context: typer.Context,
    topic: Annotated[str, argument("TOPIC", "name of the topic")],
    *,
    most: MaxOption = DEFAULT_MAX,
    partitions: Annotated[
        list[int] | None,
        option(
            "--partition N", "number of a partition to read; repeatable (default: all)", least=0
        ),
    ] = None,
    from_beginning: FromBeginningOption = False,
) -> None:
    """Show the newest records of a topic, or its oldest; needs --kafka-bootstrap.

    The command leaves out records of open or aborted transactions and joins no consumer group. It
    shows keys, values and headers that are not text as hexadecimal numbers, and nulls as `-`; with
    -o json they are `{"base64": …}` and null.
    """
    session = session_of(context)
    settings = kafka_cluster(session, PURPOSE).librdkafka()
    records = some_records(
        settings, topic, most, newest=not from_beginning, numbers=frozenset(partitions or ())
    )
    session.output.listing(
        COLUMNS,
        records,
        document=[record_json(record) for record in records],
        names=[f"{record.topic}-{record.partition}@{record.offset}" for record in records],
        empty=f"{topic} has no committed record",
    )


def record_json(record: TopicRecord) -> dict[str, object]:
    """Return the stable form for machines."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _document(record.key),
        "value": _document(record.value),
        "headers": [{"key": name, "value": _document(data)} for name, data in record.headers],
    }


def shown_time(timestamp_ms: int) -> str:
    """Return a time in UTC, `-` without one."""
    if timestamp_ms < 0:
        return "-"
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown_bytes(data: bytes | None) -> str:
    """Return a text, hexadecimal digits for other bytes, `-` for a null."""
    if data is None:
        return "-"
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"


def _document(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
