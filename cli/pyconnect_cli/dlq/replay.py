"""`dlq replay history undo`: dead letters are sent again, exactly once.

`connectors dlq` lists the groups that a replay chooses from; the journals of this machine know the
replays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from pyconnect_cli.directories import new_identity
from pyconnect_cli.dlq.carry_out import (
    ReplayRun,
    mender,
    registry_for,
    require_complete,
    take_back,
    target_partitions,
)
from pyconnect_cli.dlq.dead_letters import (
    HISTORY,
    DeadLetterTopic,
    QueueArgument,
    QueueTopicOption,
    ReplayJournal,
    all_replays,
    dead_letter_topic,
    replay_directory,
    warn_of_removed,
)
from pyconnect_cli.dlq.plan import (
    SHAPES,
    LetterGroup,
    Letters,
    LetterSorter,
    Replay,
    ReplayPlanned,
    SentSpan,
    Span,
    require_groups,
    sent_counts,
    sent_places,
    sent_spans,
    unfinished,
)
from pyconnect_cli.errors import Conflict, NotFound, PreconditionFailed, UsageError
from pyconnect_cli.parsing.values import utc_text
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import PlannedVerb, argument, option

app = typer.Typer(help="Replay dead letters exactly once; list and undo replays.")

ISOLATION = "consumer.override.isolation.level"
PLAN_COLUMNS: Sequence[Column[Span]] = (
    Column("GROUP", lambda span: span.group, whole=True),
    Column("PARTITION", lambda span: str(span.partition), right=True),
    Column("FIRST", lambda span: str(span.first), right=True),
    Column("LAST", lambda span: str(span.last), right=True),
    Column("LETTERS", lambda span: str(span.count), right=True),
)
MendTextOption = Annotated[bool, option("--mend-text", "texts for the program of --mend, not JSON")]
RegistryOption = Annotated[
    str | None,
    option(
        "--registry URL", "schema registry of the values to mend (default: that of the connector)"
    ),
]
RegistryPropertiesOption = Annotated[
    str | None,
    option(
        "--registry-properties FILE",
        "properties file of the access to it, with the keys of converters",
    ),
]


@app.command(cls=PlannedVerb)
def replay(
    context: typer.Context,
    name: QueueArgument = None,
    *,
    topic: QueueTopicOption = None,
    groups: Annotated[
        list[str] | None, option("--group/-g ID", "id of a group to send; repeatable")
    ] = None,
    all_groups: Annotated[bool, option("--all-groups", "letters of all groups")] = False,
    to_topic: Annotated[
        str | None,
        option(
            "--to-topic TOPIC",
            "topic to send to, which the connector reads (default: the original topic)",
        ),
    ] = None,
    mend: Annotated[str | None, option("--mend PROGRAM", "jq program for the values")] = None,
    mend_text: MendTextOption = False,
    registry: RegistryOption = None,
    registry_properties: RegistryPropertiesOption = None,
    limit: Annotated[int | None, option("--limit N", "maximum number of letters", least=1)] = None,
    rate: Annotated[int | None, option("--rate N", "letters a second", least=1)] = None,
    resume: Annotated[
        str | None, option("--resume ID", "id of an interrupted replay to finish")
    ] = None,
) -> None:
    """Send the dead letters of groups again, each exactly once; needs --kafka-bootstrap.

    Key, value, timestamp and headers stay as they are, without the headers of the error. --mend
    takes JSON, with --mend-text texts, and Avro and JSON of a schema registry. Letters of an
    earlier replay are left out. Records and progress are written in transactions: a killed
    replay continues with --resume where it ended.
    """
    session = session_of(context)
    mend_options = mend_text or registry or registry_properties
    if resume is not None:
        if name or topic or groups or all_groups or to_topic or mend or limit or mend_options:
            raise UsageError("--resume repeats the plan: only --rate can be given with it")
        _resume(session, resume, rate)
        return
    if bool(groups) == all_groups:
        raise UsageError(
            "choose the letters: --group ID or --all-groups",
            hint=f"list the groups: pyconnect connectors dlq {name or f'--topic {topic}'}",
        )
    if mend_options and mend is None:
        raise UsageError("--mend-text and --registry are for --mend PROGRAM")
    queue = dead_letter_topic(session, name, topic)
    schemas = registry_for(queue.config, registry, registry_properties) if mend else None
    if to_topic == queue.topic:
        raise UsageError(f"--to-topic: {to_topic} is the dead letter queue itself")
    journal, now = queue.journal(session), datetime.now(UTC)
    wish = ReplayPlanned(
        replay=new_identity(now),
        at_ms=round(now.timestamp() * 1000),
        cluster_id=queue.admin.cluster_id(),
        topic=queue.topic,
        connector=queue.connector,
        to_topic=to_topic,
        targets=(),
        mend=mend,
        shapes=SHAPES,
        spans=(),
        mend_text=mend_text,
        registry=schemas,
    )
    chosen = None if groups is None else frozenset(groups)
    sorter = LetterSorter(connector=queue.connector, chosen=chosen, limit=limit)
    if session.given.get("dry_run"):
        _plan(session, queue, journal, sorter, wish)
        session.ends_with_plan(changes=sorter.taken > 0)
        return
    with journal.lock():
        planned = _plan(session, queue, journal, sorter, wish)
        if planned is None:
            return
        session.confirm(f"replay {counted(planned.total, 'dead letter')}?")
        journal.append(planned)
        _run(session, queue, journal, Replay(planned=planned), rate)


def _plan(
    session: Session,
    queue: DeadLetterTopic,
    journal: ReplayJournal,
    sorter: LetterSorter,
    wish: ReplayPlanned,
) -> ReplayPlanned | None:
    """Choose the letters of a replay, show the plan and return it; None without letters."""
    before, to_topic = journal.replays(), wish.to_topic
    if (open_one := unfinished(before.values())) is not None:
        identity = open_one.planned.replay
        raise PreconditionFailed(
            f"the replay {identity} of {queue.topic} has not ended",
            hint=f"finish it: pyconnect dlq replay --resume {identity}; or take it back: pyconnect"
            f" dlq undo {identity}",
        )
    sorter.replayed = Letters(sent_spans(before.values()))
    mended = mender(wish.mend, text=wish.mend_text, registry=wish.registry)
    ranges = queue.ranges()
    for letter in queue.letters(ranges):
        if sorter.take(letter):
            mended(letter)
    session.renew_time()
    warn_of_removed(session, ranges)
    spans = sorter.spans.built()
    used = sorter.chosen if sorter.chosen is not None else {span.group for span in spans}
    require_groups(sorter.groups, used, to_topic)
    targets = sorted({to_topic or sorter.groups[span.group].cause.topic for span in spans})
    target_partitions(queue.admin, targets)
    if to_topic and not queue.read_by_connector(to_topic):
        session.output.warning(
            f"{queue.connector} does not read {to_topic}: add it to the connector's `topics`"
        )
    if queue.connector and queue.config.get(ISOLATION) != "read_committed":
        session.output.warning(
            f"{queue.connector} may get letters twice if the replay is killed: it reads uncommitted"
            f" records, unless its worker says otherwise; set {ISOLATION}=read_committed"
        )
    planned = replace(wish, targets=tuple(targets), spans=spans)
    _show_plan(session, planned, sorter.groups)
    return planned if spans else None


def _show_plan(session: Session, planned: ReplayPlanned, groups: Mapping[str, LetterGroup]) -> None:
    """Print the plan: as the result of a dry run, else as messages before the question."""
    output = session.output
    empty = f"no letter is left to replay in {planned.topic}"
    if session.given.get("dry_run"):
        to_topic: Column[Span] = Column(
            "TO", lambda span: planned.to_topic or groups[span.group].cause.topic
        )
        output.listing(
            (*PLAN_COLUMNS, to_topic),
            planned.spans,
            document={key: each for key, each in asdict(planned).items() if key != "replay"},
            names=[span.group for span in planned.spans],
            empty=empty,
        )
        return
    if not planned.spans:
        output.message(empty)
    elif not session.settings.yes:
        counts: Counter[str] = Counter()
        for span in planned.spans:
            counts[span.group] += span.count
        for group, count in counts.items():
            target = planned.to_topic or groups[group].cause.topic
            output.message(f"  {group}  {counted(count, 'letter')} -> {target}")
        if planned.mend:
            output.message(f"  values through: {planned.mend}")


def _run(
    session: Session,
    queue: DeadLetterTopic,
    journal: ReplayJournal,
    begun: Replay,
    rate: int | None,
) -> None:
    """Carry a replay out under the lock of its journal, and print what was sent."""
    planned = begun.planned
    session.output.message(
        f"replay {planned.replay}; if it is interrupted: pyconnect dlq replay"
        f" --resume {planned.replay}"
    )
    run = ReplayRun(
        session=session,
        settings=queue.settings,
        journal=journal,
        replay=begun,
        targets=target_partitions(queue.admin, planned.targets),
        mend=mender(planned.mend, text=planned.mend_text, registry=planned.registry),
        rate=rate,
    )
    done = run.run()
    sent = counted(certainly_sent(done), "dead letter")
    session.output.document(
        replay_json(done),
        text=f"{planned.replay}: {sent} of {planned.topic} sent to {', '.join(planned.targets)}",
        name=planned.replay,
    )


def _resume(session: Session, identity: str, rate: int | None) -> None:
    queue, journal = queue_of_replay(session, identity)
    if session.given.get("dry_run"):
        session.output.document(replay_json(journal.replays()[identity]))
        session.ends_with_plan(changes=True)
        return
    with journal.lock():
        found = journal.replays()
        known = found.pop(identity)
        planned = known.planned
        if known.state in {"finished", "incomplete"}:
            require_complete(planned, known.missing or 0)
            session.output.message(f"{identity}: it has ended, no letter is left")
            return
        if planned.shapes != SHAPES:
            raise Conflict(
                f"{identity}: another version of this command made its groups",
                hint=f"finish it with that version, or: pyconnect dlq undo {identity}",
            )
        if Letters(planned.spans).overlapping(sent_spans(found.values())):
            raise Conflict(
                f"{identity} was undone, and a later replay has sent letters of it", hint=HISTORY
            )
        session.confirm(f"replay the {counted(planned.total, 'dead letter')} of {identity}?")
        _run(session, queue, journal, known, rate)


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
    context: typer.Context, identity: Annotated[str, argument("ID", "id of the replay")]
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
    every = (each.planned for each in all_replays(directory))
    planned = next((each for each in every if each.replay == identity), None)
    if planned is None:
        raise NotFound(f"{directory} has no replay {identity}", hint=HISTORY)
    queue = dead_letter_topic(session, None, planned.topic)
    cluster_id = queue.admin.cluster_id()
    if cluster_id != planned.cluster_id:
        raise PreconditionFailed(
            f"{identity} is a replay on Kafka cluster {planned.cluster_id}, not on {cluster_id}",
            hint="choose the context, or the brokers, of that cluster",
        )
    return queue, queue.journal(session)
