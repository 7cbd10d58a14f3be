"""Looks at clusters; `pyconnect status`: one screen about a cluster; `fleet`: a line about each.

A look asks for the connectors, then all workers at once, then the brokers if they are known. A part
that cannot be read becomes a doubt of the look.

Each cluster of a fleet is asked on a thread of its own, with the credentials of its context. When
the time for a look is over, a row shows the known part, so no cluster delays the others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pyconnect_cli.acting.wait import looks
from pyconnect_cli.acting.workers import (
    ask_all,
    ask_workers,
    assigned_workers,
    urls_with,
    worker_health,
)
from pyconnect_cli.errors import (
    ExitCode,
    NotFound,
    PreconditionFailed,
    PyconnectError,
    Unreachable,
    UsageError,
)
from pyconnect_cli.overview.rows import ClusterLook, Positions, WorkerLook
from pyconnect_cli.overview.status import (
    CLUSTER_COLUMNS,
    HANGING_DOUBT,
    LATE,
    ClusterRow,
    cluster_status,
    failures_first,
    status_lines,
)
from pyconnect_cli.parsing.values import format_duration, parse_duration
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.output import Output, OutputStyle
from pyconnect_cli.render.styles import cell_width
from pyconnect_cli.render.tables import empty_columns, fitted_columns
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.endpoint import in_background
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session, session_of, session_of_context
from pyconnect_cli.verbs import CronVerb, argument, option

if TYPE_CHECKING:
    from pyconnect_cli.kafka.admin import KafkaAdmin
    from pyconnect_cli.kafka.model import OpenProducer, SinkPosition, TopicPartition
    from pyconnect_cli.rest.offset_entries import OffsetEntry

    Places = Mapping[TopicPartition, SinkPosition]


# Imports for brokers and offsets are inside functions, because many looks need neither.

Config = Mapping[str, str | None]


class Markers:
    """Finds the partitions in which a sink has only markers of transactions left to read.

    A live view looks every few seconds, so a partition is read only once, when the sink has stopped
    moving there: a sink that moves has records to read.
    """

    def __init__(self, read_through: Callable[[Config, Places], set[TopicPartition]]) -> None:
        self._read_through = read_through
        self._last: dict[str, Places] = {}
        self._judged: dict[str, Places] = {}

    def places(self, name: str, config: Config, places: Places) -> Places:
        """Return the places of a sink with `all_read` where no record is left."""
        from pyconnect_cli.offsets.stored import near_the_end

        last = self._last.get(name, places)
        judged = {
            partition: place
            for partition, place in self._judged.get(name, {}).items()
            if places.get(partition) == place._replace(all_read=False)
        }
        asked = {
            partition: place
            for partition, place in places.items()
            if near_the_end(place) and last.get(partition) == place and partition not in judged
        }
        read = self._read_through(config, asked) if asked else set()
        judged |= {
            partition: place._replace(all_read=partition in read)
            for partition, place in asked.items()
        }
        self._last[name], self._judged[name] = places, judged
        return {**places, **judged}


PURPOSE = "only Kafka's brokers know about lag and transactions"
RATES = frozenset({"source-record-write-rate", "sink-record-send-rate"})
SINKS_AT_ONCE = 8
FEW_NAMES = 3
JAVA = "Java workers do not report it"
ELSEWHERE = (
    "serves its admin interface at another address (admin.listeners); name it as `admin` in the"
    " context's inventory"
)


class Watcher:
    """Looks at one cluster, again and again; not for several threads at once.

    It remembers the addresses without an admin interface and sends them no further requests that
    only agents answer.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._without_admin: dict[str, WorkerLook] = {}
        self._kafka: KafkaAdmin | None = None
        self._markers = Markers(self._all_read)

    def look(self, *, lag: bool = True) -> ClusterLook:
        """Look at connectors and workers, and with `lag` at the sinks' positions."""
        *_, look = self.stages(lag=lag)
        return look

    def stages(self, *, lag: bool) -> Iterator[ClusterLook]:
        """Yield a look after the connectors, then with the workers, then with the positions."""
        session = self._session
        views = session.client.connector_views()
        kafka_cluster_id = session.client.worker_info().kafka_cluster_id
        look = ClusterLook(time_s=time.monotonic(), kafka_cluster_id=kafka_cluster_id, views=views)
        yield look
        urls = urls_with(session, assigned_workers(view.status for view in views.values()))
        workers = tuple(
            answer
            for answer in ask_workers(session, urls, self._worker)
            if isinstance(answer, WorkerLook)
        )
        look = replace(look, workers=workers, time_s=time.monotonic())
        yield look
        if not lag:
            return
        doubts: list[str] = []
        positions = None
        try:
            positions = self.positions(views.values(), doubts)
        except PyconnectError as error:
            doubts.append(f"lag: {error.message}")
        yield replace(look, positions=positions, doubts=tuple(doubts), time_s=time.monotonic())

    def positions(self, views: Iterable[ConnectorView], doubts: list[str]) -> Positions:
        """Return the positions of sinks; without brokers they lack the ends of partitions."""
        from pyconnect_cli.kafka.model import sink_positions, sink_topics
        from pyconnect_cli.offsets.stored import sink_offsets

        sinks = [view for view in views if view.type == "sink"]
        stored: dict[str, tuple[Mapping[str, str | None], Sequence[OffsetEntry]]] = {}
        unread: dict[str, list[str]] = {}
        for start in range(0, len(sinks), SINKS_AT_ONCE):
            part = sinks[start : start + SINKS_AT_ONCE]
            answers = ask_all(part, partial(sink_offsets, self._session))
            for sink, answer in zip(part, answers, strict=True):
                if isinstance(answer, PyconnectError):
                    if not isinstance(answer, NotFound):  # the connector was deleted meanwhile
                        unread.setdefault(answer.message, []).append(sink.name)
                else:
                    stored[sink.name] = (sink.config, answer)
            silent = [answer for answer in answers if isinstance(answer, Unreachable)]
            if len(silent) == len(part):
                # Each further part would take as long, because no worker answers.
                unread[silent[0].message] += [sink.name for sink in sinks[start + len(part) :]]
                break
        for reason, names in unread.items():
            more = f" and {len(names) - FEW_NAMES} more" if len(names) > FEW_NAMES else ""
            doubts.append(f"lag of {', '.join(names[:FEW_NAMES])}{more}: {reason}")
        wanted = {
            name: (sink_topics(config, entries), entries)
            for name, (config, entries) in stored.items()
        }
        every = {topic for topics, _ in wanted.values() for topic in topics}
        ends: dict[TopicPartition, int] = {}
        if every and self._session.settings.kafka_bootstrap:
            from pyconnect_cli.kafka.admin import kafka_admin

            if self._kafka is None:
                self._kafka = kafka_admin(self._session, PURPOSE)
            ranges = self._kafka.ranges(self._kafka.partitions(every))
            ends = {partition: found.latest for partition, found in ranges.items()}
        time_s = time.monotonic()
        places = {
            name: self._markers.places(name, stored[name][0], sink_positions(topics, entries, ends))
            for name, (topics, entries) in wanted.items()
        }
        return Positions(time_s=time_s, places=places)

    def _all_read(
        self, config: Mapping[str, str | None], positions: Mapping[TopicPartition, SinkPosition]
    ) -> set[TopicPartition]:
        from pyconnect_cli.kafka.admin import kafka_cluster
        from pyconnect_cli.offsets.stored import all_read

        settings = kafka_cluster(self._session, PURPOSE).librdkafka()
        return all_read(settings, config, positions)

    def _worker(self, exchange: Exchange) -> WorkerLook:
        """Ask one worker; a failed request shows in its health."""
        (url,) = exchange.urls
        health = worker_health(exchange)
        if health.status in {"unreachable", "failed"}:
            return WorkerLook(health=health, silence="no answer")
        if (earlier := self._without_admin.get(url)) is not None:
            return replace(earlier, health=health)
        agent = AgentClient(exchange)
        try:
            info = agent.info()
            children, metrics = tuple(agent.children()), agent.metrics()
        except PreconditionFailed:
            silence = f"{url} {ELSEWHERE}" if health.agent else JAVA
            found = self._without_admin[url] = WorkerLook(health=health, silence=silence)
            return found
        except PyconnectError as error:
            # The credentials are not valid for the admin interface: show the worker's public part.
            silence = f"{error.message} ({error.hint})" if error.hint else error.message
            return WorkerLook(health=health, silence=silence)
        return WorkerLook(
            health=health,
            info=info,
            children=children,
            rates={
                f"{metric.tags['connector']}/{metric.tags['task']}": float(metric.value)
                for metric in metrics
                if metric.name in RATES
                and isinstance(metric.value, int | float)
                and {"connector", "task"} <= metric.tags.keys()
            },
        )


def hanging_of(
    session: Session, group_id: str | None
) -> tuple[tuple[OpenProducer, ...] | None, tuple[str, ...]]:
    """Return the transactions that will never end (None if they are not known) and the doubts."""
    if not session.settings.kafka_bootstrap:
        return None, ()
    from pyconnect_cli.transactions.find import MIN_IDLE, asked_cluster, cluster_topics, hanging_in

    idle_ms = round(parse_duration(MIN_IDLE) * 1000)
    try:
        topics = cluster_topics(session, asked_cluster(session, group_id))
        return tuple(hanging_in(session, topics, idle_ms, PURPOSE)), ()
    except PyconnectError as error:
        reason = f"{error.message} ({error.hint})" if error.hint else error.message
        return None, (f"{HANGING_DOUBT}: {reason}",)


status_app = typer.Typer(
    help="Show states, root causes of failures and lag of a cluster on one screen."
)


@status_app.command(cls=CronVerb)
def status(
    context: typer.Context,
    *,
    group_id: Annotated[
        str | None,
        option(
            "--group NAME",
            "group.id of the workers, to find their transactions (default: as the agents or"
            " the context report it)",
        ),
    ] = None,
) -> None:
    """Show states, root causes of failures and lag of a cluster on one screen.

    The command asks the given workers and those that connectors' statuses name. Lag and hanging
    transactions need --kafka-bootstrap. Exit 1: a worker is not healthy, a connector or task is
    FAILED, or a transaction hangs.
    """
    session = session_of(context)
    lag_known = bool(session.settings.kafka_bootstrap)
    _ = session.client  # made before the threads: its secrets are fetched once
    hanging = in_background(lambda: hanging_of(session, group_id))
    look = Watcher(session).look(lag=lag_known)
    found_hanging, doubts = hanging.result()
    look = replace(look, hanging=found_hanging, doubts=(*look.doubts, *doubts))
    found = cluster_status(look, context=session.settings.cluster, lag_known=lag_known)
    session.record = BatchRecord.of_checks("check", found.faults)
    style = session.output.style
    text = "\n".join(status_lines(found, width=style.width, colour=style.colour))
    if not session.output.silent(success=found.healthy):
        session.output.document(found.to_json(), text=text)
    if not found.healthy:
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


fleet_app = typer.Typer(help="Show the clusters of all contexts, a line each, failures first.")

WITHIN_S = 5.0
SHARE = 0.6
"""The part of a look's time that one request may take, so that others can follow."""
UNLIMITED = 10_000
CLEARED = "\x1b[H\x1b[2J"


class FleetWatcher:
    """Looks at the clusters of several contexts, again and again."""

    def __init__(
        self, session: Session, names: Sequence[str], *, within_s: float = WITHIN_S, brokers: bool
    ) -> None:
        self._within_s = within_s
        self._clusters = [
            _WatchedCluster(session, name, SHARE * within_s, brokers=brokers) for name in names
        ]

    def look(self) -> list[ClusterRow]:
        """Return a row for each cluster, failures first, after `within_s` at the latest."""
        wait([cluster.begin() for cluster in self._clusters], self._within_s)
        late = f"no answer within {format_duration(self._within_s)}"
        return failures_first(cluster.row(late) for cluster in self._clusters)

    def close(self) -> None:
        for cluster in self._clusters:
            cluster.session.close()


class _Doubts(Output):
    """An output that keeps warnings as doubts of the cluster instead of printing them."""

    def __init__(self, style: OutputStyle) -> None:
        super().__init__(style)
        self.texts: list[str] = []

    def warning(self, text: str) -> None:
        self.texts.append(text)


class _WatchedCluster:
    """The cluster of one context. Its thread writes `_look` and `_fault`, the caller reads them."""

    def __init__(self, session: Session, name: str, request_s: float, *, brokers: bool) -> None:
        self.session = session_of_context(session, name)
        self.session.given.setdefault("request_timeout", f"{round(request_s * 1000)}ms")
        self.session.live = True
        self._output = self.session.output = _Doubts(OutputStyle())
        self._name = name
        self._brokers = brokers
        self._watcher: Watcher | None = None
        self._running: Future[None] | None = None
        self._look: ClusterLook | None = None
        self._fault = ""

    def begin(self) -> Future[None]:
        """Begin a look, unless the previous look has not ended; return its future."""
        if self._running is None or self._running.done():
            self._look, self._fault = None, ""
            self._running = in_background(self._run)
        return self._running

    def row(self, late: str) -> ClusterRow:
        """Return the row of the known part; `late`: the reason of a cluster without an answer."""
        look = self._look
        if look is None:
            return ClusterRow(name=self._name, silence=self._fault or late)
        if self._running and not self._running.done():
            look = replace(look, doubts=(*look.doubts, f"{LATE}{late}"))
        lag_known = look.positions is not None
        status = cluster_status(look, context=self._name, lag_known=lag_known)
        return ClusterRow(name=self._name, status=status)

    def _run(self) -> None:
        session = self.session
        self._output.texts.clear()
        try:
            brokers = self._brokers and bool(session.settings.kafka_bootstrap)
            self._watcher = self._watcher or Watcher(session)
            for look in self._watcher.stages(lag=brokers):
                self._look = look
            if brokers and self._look:
                hanging, doubts = hanging_of(session, None)
                doubts = (*self._look.doubts, *doubts, *self._output.texts)
                self._look = replace(self._look, hanging=hanging, doubts=doubts)
        except PyconnectError as error:
            self._fault = error.message.removeprefix("no worker answers: ")
        except Exception as fault:  # noqa: BLE001 - a fault of one cluster is its row
            self._fault = f"{type(fault).__name__}: {fault}"


@fleet_app.command(cls=CronVerb)
def fleet(
    context: typer.Context,
    names: Annotated[list[str] | None, argument("[CONTEXT]…", "contexts (default: all)")] = None,
    *,
    within: Annotated[
        str, option("--within TIME", "time for the answers of all clusters")
    ] = f"{WITHIN_S:.0f}s",
    no_brokers: Annotated[
        bool, option("--no-brokers", "no questions to brokers: no lag, no transactions")
    ] = False,
    watch: Annotated[
        bool,
        option("--watch", "the table again and again, until Ctrl-C or for --timeout when given"),
    ] = False,
    interval: Annotated[str, option("--interval TIME", "time between two looks of --watch")] = "5s",
) -> None:
    """Show the clusters of all contexts, a line each, failures first.

    All clusters are asked at once. A cluster without an answer in time is shown as unreachable and
    delays no other. Lag and hanging transactions are those of contexts that name brokers. Exit 1: a
    cluster is not healthy.
    """
    session = session_of(context)
    if session.given.get("context") or session.given.get("url"):
        raise UsageError(
            "fleet takes the names of contexts as arguments, and no --context or --url"
        )
    files = session.settings.files
    chosen = list(dict.fromkeys(names or files.context_names()))
    for name in chosen:
        files.find_context(name)
    if not chosen:
        raise NotFound("no context is defined", hint="pyconnect context set NAME --url URL")
    within_s = parse_duration(within, what="--within")
    watcher = FleetWatcher(session, chosen, within_s=within_s, brokers=not no_brokers)
    try:
        if watch:
            pause_s = parse_duration(interval, what="--interval")
            for rows in looks(session, pause_s, watcher.look):
                _show(session, rows, live=True)
            return
        rows = watcher.look()
    finally:
        with suppress(PyconnectError):
            watcher.close()
    session.record = BatchRecord.of_checks(
        "check", {row.name: (row.cause or row.health) if row.broken else None for row in rows}
    )
    healthy = not any(row.broken for row in rows)
    if not session.output.silent(success=healthy):
        _show(session, rows)
    if not healthy:
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


def _show(session: Session, rows: Sequence[ClusterRow], *, live: bool = False) -> None:
    """Print the table, or a document; on a terminal a live table replaces the previous one."""
    output = session.output
    moment = {"time": datetime.now().astimezone().isoformat(timespec="seconds")} if live else {}
    if live and not output.machine and sys.stdout.isatty():
        sys.stdout.write(CLEARED)
    documents = [{**moment, **row.to_json()} for row in rows]
    columns, width = CLUSTER_COLUMNS, output.style.width
    if output.style.format == "table" and not output.style.columns:
        texts = [[column.title, *map(column.value, rows)] for column in columns]
        widths = [max(map(cell_width, each)) for each in texts]
        kept, _ = fitted_columns(columns, widths, width or UNLIMITED, empty_columns(columns, rows))
        columns = [columns[at] for at in kept]
    output.listing(columns, rows, document=documents)
