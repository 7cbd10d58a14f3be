"""`offsets reset alter seek lag`: verbs that set or delete offsets, and positions in topics.

A sink's offsets are positions in Kafka's topics. Only the source itself understands its offsets;
without any it starts over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import typer

from pyconnect_cli.acting.selection import (
    listed_views,
    report_unread,
    selected_views,
    selection_from,
    texts,
    unread_error,
)
from pyconnect_cli.errors import (
    NotFound,
    PreconditionFailed,
    PyconnectError,
    Unreachable,
    UsageError,
)
from pyconnect_cli.kafka.admin import KafkaAdmin, kafka_admin, kafka_cluster
from pyconnect_cli.kafka.model import (
    SinkPosition,
    TopicPartition,
    sink_positions,
    sink_topics,
    topic_partition,
)
from pyconnect_cli.offsets.files import read_offsets_file
from pyconnect_cli.offsets.plan.change import (
    Action,
    OffsetsPlan,
    OffsetsView,
    plan_alter,
    plan_reset,
)
from pyconnect_cli.offsets.plan.entries import (
    SeekTarget,
    SeekTo,
    parse_assignment,
    parse_partition,
    refuse_duplicates,
    seek_entries,
)
from pyconnect_cli.offsets.run import OffsetsVerb, SelectingOffsetsVerb, around, change_offsets
from pyconnect_cli.offsets.stored import all_read, alter_plan, sink_offsets
from pyconnect_cli.parsing.values import parse_moment
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_cli.session import session_of
from pyconnect_cli.verbs import NameArgument, NamesArgument, SelectingVerb, option

app = typer.Typer()


@app.command(cls=SelectingOffsetsVerb)
def reset(context: typer.Context, names: NamesArgument = None) -> None:
    """Delete offsets of STOPPED connectors: sources start over, sinks follow auto.offset.reset."""
    session = session_of(context)
    options = around(session.given)

    def planner(view: OffsetsView) -> OffsetsPlan:
        chosen = [parse_partition(text, view.type) for text in texts(session.given, "partition")]
        return plan_reset(view, chosen)

    views = selected_views(session, names or ())
    change_offsets(session, views, Action.RESET, planner, options)


@app.command(cls=OffsetsVerb)
def alter(
    context: typer.Context,
    name: NameArgument,
    *,
    file: Annotated[
        str | None,
        option("--file/-f FILE", "file of offsets, as `get -o json` prints them; `-` for stdin"),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        option(
            "--set/-s PARTITION=OFFSET",
            "partition and offset, both JSON, or TOPIC:NUMBER=OFFSET of a sink;"
            " null deletes the offset; repeatable",
        ),
    ] = None,
) -> None:
    """Set the offsets of some partitions of a STOPPED connector and keep the others."""
    session = session_of(context)
    options = around(session.given)
    if not file and not assignments:
        raise UsageError("nothing to set", hint="give -f FILE or --set PARTITION=OFFSET")
    views = selected_views(session, [name])
    connector_type = views[0].type
    wanted = tuple(parse_assignment(text, connector_type) for text in assignments or ())
    place = "--set"
    if file is not None:
        found = read_offsets_file(file, connector_type)
        if found.snapshot and found.snapshot.connector != name:
            raise UsageError(
                f"{found.place}: contains the offsets of {found.snapshot.connector}, not of"
                f" {name}; nothing was changed",
                hint=f"if this is intended: pyconnect offsets import {name} -f {file} --force",
            )
        wanted, place = found.entries + wanted, found.place
    if not wanted:
        raise UsageError(
            f"{place}: contains no offsets", hint="to delete all offsets: pyconnect offsets reset"
        )
    refuse_duplicates(wanted, place)

    def planner(view: OffsetsView) -> OffsetsPlan:
        return alter_plan(session, view, wanted, action=Action.ALTER, force=options.force)

    change_offsets(session, views, Action.ALTER, planner, options)


class Lag(NamedTuple):
    """The position of a sink in one partition, as a row."""

    connector: str
    partition: TopicPartition
    position: SinkPosition

    def to_json(self) -> dict[str, object]:
        """Return the stable form for machines."""
        return {
            "connector": self.connector,
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "offset": self.position.offset,
            "end": self.position.end,
            "lag": self.position.lag,
        }


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


COLUMNS: Sequence[Column[Lag]] = (
    Column("CONNECTOR", lambda lag: lag.connector, whole=True),
    Column("TOPIC", lambda lag: lag.partition.topic, whole=True),
    Column("PARTITION", lambda lag: str(lag.partition.partition), right=True),
    Column("OFFSET", lambda lag: _number(lag.position.offset), right=True),
    Column("END", lambda lag: _number(lag.position.end), right=True),
    Column("LAG", lambda lag: _number(lag.position.lag), right=True),
)


@app.command(cls=SelectingOffsetsVerb)
def seek(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    to_start: Annotated[
        bool, option("--to-start", "start of a source: its offsets are deleted")
    ] = False,
    to_earliest: Annotated[
        bool, option("--to-earliest", "position of the first record in the topic")
    ] = False,
    to_latest: Annotated[bool, option("--to-latest", "position after the last record")] = False,
    shift_by: Annotated[
        int | None, option("--shift-by N", "number of records to move forward, or back if negative")
    ] = None,
    to_datetime: Annotated[
        str | None,
        option(
            "--to-datetime TIME",
            "position of the first record at or after this time (ISO 8601, UTC without a"
            " time zone, or an age such as 2h)",
        ),
    ] = None,
) -> None:
    """Move STOPPED sinks within their topics (needs --kafka-bootstrap), or reset sources."""
    session = session_of(context)
    options = around(session.given)
    moment_ms = None
    if to_datetime is not None:
        moment_ms = parse_moment(to_datetime, what="--to-datetime", now=datetime.now(UTC))
    numbers = {
        SeekTo.EARLIEST: 0 if to_earliest else None,
        SeekTo.LATEST: 0 if to_latest else None,
        SeekTo.SHIFT: shift_by,
        SeekTo.TIME: moment_ms,
    }
    places = [SeekTarget(to=to, number=n) for to, n in numbers.items() if n is not None]
    if len(places) + to_start != 1:
        raise UsageError(
            "exactly one position is needed",
            hint="--to-earliest, --to-latest, --shift-by N or --to-datetime TIME of a sink,"
            " --to-start of a source",
        )
    kafka = None if to_start else kafka_admin(session, "seek")

    def planner(view: OffsetsView) -> OffsetsPlan:
        chosen = [parse_partition(text, view.type) for text in texts(session.given, "partition")]
        if kafka is None:
            if view.type != "source":
                raise PreconditionFailed(
                    f"{view.name} is a {view.type}: --to-start is for sources",
                    hint=f"pyconnect offsets seek {view.name} --to-earliest",
                )
            return plan_reset(view, chosen, action=Action.SEEK)
        _require_sink(view.name, view.type)
        wanted = _seek(kafka, view, places[0], [topic_partition(one) for one in chosen])
        return plan_alter(view, wanted, action=Action.SEEK)

    change_offsets(session, selected_views(session, names or ()), Action.SEEK, planner, options)


@app.command(cls=SelectingVerb)
def lag(context: typer.Context, names: NamesArgument = None) -> None:
    """Show how many records sinks still have to read; without names, of every sink.

    Needs --kafka-bootstrap, and the right to describe the topics of the sinks.
    """
    session = session_of(context)
    kafka = kafka_admin(session, "lag")
    settings = kafka_cluster(session, "lag").librdkafka()
    rows: list[Lag] = []
    selection = selection_from(session.given, names or ())
    views = listed_views(session, selection)
    if names:
        for view in views:
            _require_sink(view.name, view.type)
    sinks = [view for view in views if view.type == "sink"]
    unread: list[PyconnectError] = []
    for view in sinks:
        try:
            offsets = sink_offsets(session, view)
        except PyconnectError as error:
            unread.append(unread_error(view.name, error))
            continue
        try:
            topics = sink_topics(view.config, offsets)
            positions = sink_positions(topics, offsets, kafka.ends(kafka.partitions(topics)))
            read = all_read(settings, view.config, positions)
        except Unreachable:
            raise  # Kafka, which the others need too
        except PyconnectError as error:
            unread.append(unread_error(view.name, error))
            continue
        rows += [
            Lag(view.name, partition, position._replace(all_read=partition in read))
            for partition, position in positions.items()
        ]
    session.output.listing(
        COLUMNS, rows, document=[row.to_json() for row in rows], empty="no partitions"
    )
    report_unread(session, unread, len(sinks))


def _seek(
    kafka: KafkaAdmin, view: OffsetsView, target: SeekTarget, chosen: Sequence[TopicPartition]
) -> tuple[OffsetEntry, ...]:
    existing = kafka.partitions(sink_topics(view.config, view.offsets))
    for partition in chosen:
        if partition not in existing:
            raise NotFound(
                f"{view.name} does not read partition {partition.topic}:{partition.partition}"
            )
    ranges = kafka.ranges(chosen or existing)
    at_time = kafka.offsets_at(ranges, target.number) if target.to is SeekTo.TIME else {}
    return seek_entries(target, view.offsets, ranges, at_time)


def _require_sink(name: str, connector_type: str) -> None:
    if connector_type == "unknown":
        raise PreconditionFailed(
            f"{name} has an unknown type: its class is in no plugin list of the workers",
            hint="list a Python class by an entry point of its project, as those of `pyconnect"
            " plugins new`, and restart the workers",
        )
    if connector_type != "sink":
        raise PreconditionFailed(
            f"{name} is a {connector_type}: only a sink's offsets are positions in Kafka topics",
            hint=f"set its own: pyconnect offsets alter {name} --set PARTITION=OFFSET, or start"
            f" over: pyconnect offsets seek {name} --to-start",
        )
