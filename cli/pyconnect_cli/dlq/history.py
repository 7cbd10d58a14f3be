"""`dlq history undo`: the replays that the journals of this machine know."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from pyconnect_cli.dlq.carry_out import take_back
from pyconnect_cli.dlq.dead_letters import QueueArgument, QueueTopicOption
from pyconnect_cli.dlq.plan.replays import Replay, SentSpan, sent_counts, sent_places
from pyconnect_cli.dlq.queue import (
    DeadLetterTopic,
    ReplayJournal,
    all_replays,
    dead_letter_topic,
    known_replay,
    replay_directory,
)
from pyconnect_cli.errors import PreconditionFailed
from pyconnect_cli.parsing.values import utc_text
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import PlannedVerb

app = typer.Typer()

HISTORY_COLUMNS: Sequence[Column[Replay]] = (
    Column("ID", lambda replay: replay.planned.replay, whole=True),
    Column(
        "TIME",
        lambda replay: utc_text(datetime.fromtimestamp(replay.planned.at_ms / 1000, UTC)),
        whole=True,
    ),
    Column("STATE", lambda replay: replay.state),
    Column("TOPIC", lambda replay: replay.planned.topic),
    Column("TO", lambda replay: ", ".join(replay.planned.targets)),
    Column("SENT", lambda replay: str(certainly_sent(replay)), right=True),
    Column("LETTERS", lambda replay: str(replay.planned.total), right=True),
    Column("CONNECTOR", lambda replay: replay.planned.connector or "-", wide=True),
    Column("GROUP", lambda replay: replay.planned.group, whole=True, wide=True),
)


def certainly_sent(replay: Replay) -> int:
    """Return the number of letters that were sent, without an uncertain last transaction."""
    return sum(sent_counts(replay.certain).values())


def replay_json(replay: Replay) -> dict[str, object]:
    """Return the stable form for machines, with the places of sent letters."""
    return {
        "replay": replay.planned.replay,
        "state": replay.state,
        **{key: each for key, each in asdict(replay.planned).items() if key != "replay"},
        "missing": replay.missing,
        "sent": certainly_sent(replay),
        "places": [asdict(place) for place in sent_places(replay.certain)],
    }


@app.command()
def history(
    context: typer.Context, name: QueueArgument = None, *, topic: QueueTopicOption = None
) -> None:
    """List the replays of this user on this machine, newest first.

    -o json has the places of all sent letters. SENT of an unfinished replay lacks its last
    transaction, because only the brokers know whether it was committed.
    """
    session = session_of(context)
    found = [
        each
        for each in all_replays(replay_directory(session.environ))
        if name in {None, each.planned.connector} and topic in {None, each.planned.topic}
    ]
    session.output.listing(
        HISTORY_COLUMNS, found, document=[replay_json(each) for each in found], empty="no replays"
    )


@app.command(cls=PlannedVerb)
def undo(
    context: typer.Context,
    identity: Annotated[str, typer.Argument(metavar="ID", help="id of the replay")],
) -> None:
    """Set a replay back, so that its letters can be replayed again; print where they were sent.

    The sent records stay in their topics: Kafka does not remove single records.
    """
    session = session_of(context)
    queue, journal = queue_of_replay(session, identity)
    known = journal.replays()[identity]
    places = sent_places(known.certain)
    if session.ends_with_plan(changes=not known.undone):
        _show_places(session, places)
        return
    if known.undone:
        session.output.message(f"{identity}: it is undone already")
        return
    total = counted(sum(place.count for place in places), "record")
    session.confirm(f"set {identity} back? Its {total} stay in {', '.join(known.planned.targets)}")
    with journal.lock():
        sent = take_back(queue.settings, journal, journal.replays()[identity])
    _show_places(session, sent_places(sent))
    session.output.message(f"{identity}: its letters can be replayed again")


PLACE_COLUMNS: Sequence[Column[SentSpan]] = (
    Column("TOPIC", lambda place: place.topic),
    Column("PARTITION", lambda place: str(place.partition), right=True),
    Column("FIRST", lambda place: str(place.first), right=True),
    Column("LAST", lambda place: str(place.last), right=True),
    Column("RECORDS", lambda place: str(place.count), right=True),
    Column("GROUP", lambda place: place.group, whole=True),
)


def _show_places(session: Session, places: Collection[SentSpan]) -> None:
    session.output.listing(
        PLACE_COLUMNS,
        list(places),
        document=[asdict(place) for place in places],
        names=[f"{place.topic}-{place.partition}@{place.first}" for place in places],
        empty="no record was sent",
    )


def queue_of_replay(session: Session, identity: str) -> tuple[DeadLetterTopic, ReplayJournal]:
    """Return the queue and the journal of a replay; PreconditionFailed on another cluster."""
    directory = replay_directory(session.environ)
    planned = known_replay(directory, identity).planned
    queue = dead_letter_topic(session, None, planned.topic)
    cluster_id = queue.admin.cluster_id()
    if cluster_id != planned.cluster_id:
        raise PreconditionFailed(
            f"{identity} is a replay on Kafka cluster {planned.cluster_id}, not on {cluster_id}",
            hint="choose the context, or the brokers, of that cluster",
        )
    return queue, ReplayJournal(directory, cluster_id, planned.topic)
