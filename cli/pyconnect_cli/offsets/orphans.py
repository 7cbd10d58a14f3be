"""`offsets orphans list export purge`: offsets of deleted connectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import BatchStep
from pyconnect_cli.acting.workers import ask_workers, connect_cluster
from pyconnect_cli.errors import (
    NotFound,
    PreconditionFailed,
    PyconnectError,
    ServerError,
    UsageError,
)
from pyconnect_cli.kafka.admin import kafka_cluster
from pyconnect_cli.kafka.model import StoredRecord, kafka_offset, topic_partition
from pyconnect_cli.kafka.writer import ConsumerGroups, OffsetsTopics
from pyconnect_cli.offsets.files import ExportFileOption, backups_of, export_snapshot
from pyconnect_cli.offsets.plan.change import OffsetsPlan, OffsetsSnapshot, OffsetsView, plan_undo
from pyconnect_cli.offsets.plan.entries import (
    SINK,
    Configs,
    Orphan,
    find_orphans,
    own_topics,
    sink_entries,
    source_entries,
    topics_of_others,
)
from pyconnect_cli.offsets.run import first_lines, run_changes, show_plan
from pyconnect_cli.parsing.nouns import did_you_mean
from pyconnect_cli.parsing.values import utc_text
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.model import ConnectCluster, ConnectorView
from pyconnect_cli.rest.offset_entries import show_offset, show_partition
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.settings.given_files import worker_properties
from pyconnect_cli.verbs import BatchCronVerb, argument, option
from pyconnect_clients.connect_names import SINK_GROUP_PREFIX

NEEDS_KAFKA = "reading orphans needs Kafka itself: REST knows only connectors that exist"
UNTOUCHED = "nothing was changed"


class OrphanKeeper:
    """One command's work on orphans."""

    def __init__(
        self,
        session: Session,
        topics: Sequence[str] | None = None,
        worker_config: str | None = None,
    ) -> None:
        self._session = session
        self._given = topics
        self._worker_config = worker_config
        settings = kafka_cluster(session, NEEDS_KAFKA).librdkafka()
        remaining_s = session.budget.remaining_s
        self._records = OffsetsTopics(settings, remaining_s)
        self._groups = ConsumerGroups(settings, remaining_s)
        self.backups = backups_of(session)
        self.live: frozenset[str] = frozenset()
        """Sinks with a running consumer group but without a connector here, as `find` saw them."""

    @cached_property
    def existing(self) -> Configs:
        """The configurations of all connectors."""
        return {name: view.config for name, view in self._views.items()}

    @cached_property
    def _views(self) -> dict[str, ConnectorView]:
        return self._session.client.connector_views()

    @cached_property
    def connect(self) -> ConnectCluster:
        return connect_cluster(self._session, (view.status for view in self._views.values()))

    @cached_property
    def topics(self) -> list[str]:
        """The offsets topics to look at; PreconditionFailed when none is known."""
        if self._given:
            return list(self._given)
        if not self.worker_topics:
            raise PreconditionFailed(
                "Apache's workers do not report the topic of their offsets",
                hint="give the workers' offset.storage.topic with --topic, or keep it in the"
                " context: pyconnect context set NAME --offsets-topic TOPIC",
            )
        return sorted({*self.worker_topics, *own_topics(self.existing)})

    @cached_property
    def worker_topics(self) -> frozenset[str]:
        """The workers' offset.storage.topic, from agents or a worker's file."""
        return frozenset(worker_topics_of(self._session, self._worker_config))

    def find(self) -> list[Orphan]:
        """Read topics and groups; UsageError for a topic without offsets of connectors."""
        self._groups.require_contact()
        records = self._records.read(self.topics).values()
        if wrong := topics_of_others(records):
            raise UsageError(
                f"{', '.join(wrong)}: contains records, but no offsets of connectors",
                hint="--topic is the workers' offset.storage.topic, or a connector's own",
            )
        groups = self._groups.starting_with(SINK_GROUP_PREFIX)
        self.live = frozenset(
            name
            for group in groups
            if group.live
            and (name := group.group.removeprefix(SINK_GROUP_PREFIX)) not in self.existing
        )
        return find_orphans(records, groups, self.existing)

    def require_own(self, orphans: Iterable[Orphan], confirmed: Collection[str]) -> None:
        """Raise PreconditionFailed for a topic that may be another Connect cluster's.

        A name without a connector here may be a running connector of that cluster.
        """
        topics = {record.topic for orphan in orphans for record in orphan.records}
        ours = {*self.worker_topics, *own_topics(self.existing), *confirmed}
        for topic in sorted(topics - ours):
            told = ", ".join(sorted(self.worker_topics))
            reason = (
                f"this Connect cluster's workers store offsets in {told}, not in {topic}"
                if told
                else f"Java workers do not report whether {topic} is their offsets topic"
            )
            raise PreconditionFailed(
                f"{reason}: connectors of another cluster may use it; nothing was done",
                hint="if it is this cluster's, give a worker's file: --worker-config"
                f" worker.properties, or confirm it by name: --confirm-topic {topic}",
            )

    def undo_plan(self, snapshot: OffsetsSnapshot) -> OffsetsPlan:
        """Return the plan of an undo: the changes, and later changes that it overwrites."""
        view = OffsetsView(
            name=snapshot.connector,
            type=snapshot.type,
            class_name="",
            state="STOPPED",
            config={},
            offsets=self._as_it_is(snapshot).offsets,
        )
        return plan_undo(view, snapshot.offsets, snapshot.left)

    def snapshot(self, orphan: Orphan, *, action: str = "") -> OffsetsSnapshot:
        """Return an orphan's snapshot for an export or a backup."""
        return OffsetsSnapshot(
            cluster_id=self._session.worker.kafka_cluster_id,
            connector=orphan.name,
            class_name="",
            type=orphan.type,
            time=utc_text(datetime.now(UTC)),
            version="",
            offsets=orphan.entries,
            action=action,
            left=() if action else None,
            orphan=True,
            records=orphan.records,
        )

    def purge(self, orphan: Orphan, *, backup: bool) -> str:
        """Delete one orphan's offsets and check the deletion; return a remark."""
        self._require_absent(orphan.name)
        identity = self._back_up(self.snapshot(orphan, action="purge")) if backup else None
        if orphan.group is not None:
            self._delete_group(orphan.group.group, identity)
        else:
            self._write([replace(record, value=None) for record in orphan.records])
        remark = f"{orphan.count} offset{'' if orphan.count == 1 else 's'}"
        return f"{remark}, backup {identity}" if identity else remark

    def restore(self, snapshot: OffsetsSnapshot, *, backup: bool) -> str:
        """Restore the offsets that a purge deleted; return a remark."""
        self._require_absent(snapshot.connector)
        identity = self._back_up(self._as_it_is(snapshot)) if backup else None
        if snapshot.type == SINK:
            offsets = {
                topic_partition(entry.partition): offset
                for entry in snapshot.offsets
                if (offset := kafka_offset(entry)) is not None
            }
            group = f"{SINK_GROUP_PREFIX}{snapshot.connector}"
            if offsets:
                self._groups.commit(group, offsets)
            else:
                self._delete_group(group, identity)
        else:
            self._write(snapshot.records)
        return f"backup {identity}" if identity else "no backup"

    def _as_it_is(self, snapshot: OffsetsSnapshot) -> OffsetsSnapshot:
        """Return the present offsets of a snapshot's partitions, absent records as null."""
        now = utc_text(datetime.now(UTC))
        now_there = replace(snapshot, time=now, action="undo", left=snapshot.offsets)
        if snapshot.type == SINK:
            entries = sink_entries(self._groups.offsets(f"{SINK_GROUP_PREFIX}{snapshot.connector}"))
            return replace(now_there, offsets=entries)
        found = self._records.read({record.topic for record in snapshot.records})
        records = tuple(
            found.get(record.place, replace(record, value=None)) for record in snapshot.records
        )
        entries = source_entries([record for record in records if record.value is not None])
        return replace(now_there, offsets=entries, records=records)

    def _back_up(self, snapshot: OffsetsSnapshot) -> str:
        snapshot = replace(snapshot, connect=self.connect)
        return self.backups.store(snapshot, datetime.now(UTC)).id

    def _delete_group(self, group: str, identity: str | None) -> None:
        try:
            self._groups.delete(group)
        except PreconditionFailed as error:
            if identity:
                self.backups.discard(identity)
            error.message += f": it is in use; {UNTOUCHED}"
            raise
        if self._groups.offsets(group):
            raise ServerError(f"consumer group {group} was deleted and has offsets again")

    def _write(self, records: Sequence[StoredRecord]) -> None:
        if not records:
            return
        found = self._records.write(records)
        for record in records:
            if record.place not in found or found[record.place] != record.value:
                raise ServerError(
                    f"a record written to {record.topic}, partition {record.partition}, was not"
                    " read back: there is another writer, or an open transaction before it",
                    hint="list the remaining orphans: pyconnect offsets orphans list",
                )

    def _require_absent(self, name: str) -> None:
        """Check right before the change that the name has not been given to a new connector."""
        if self._session.client.exists(name):
            raise PreconditionFailed(
                f"connector {name} exists, so its offsets are not orphans; {UNTOUCHED}",
                hint=f"show them: pyconnect offsets get {name}",
            )


OFFSETS_TOPIC = "offset.storage.topic"
app = typer.Typer(help="Show, export and purge offsets of deleted connectors, directly in Kafka.")

TopicsOption = Annotated[
    list[str] | None,
    option(
        "--topic/-t TOPIC",
        "offsets topic: the workers' offset.storage.topic, or a connector's own;"
        " repeatable (default: as the agents report it)",
    ),
]
OrphanNames = Annotated[list[str] | None, argument("[NAME]…", "deleted connectors")]
AllOption = Annotated[bool, option("--all", "every connector that `list` shows")]


def _time(written_ms: int | None) -> str:
    return "-" if written_ms is None else utc_text(datetime.fromtimestamp(written_ms / 1000, UTC))


COLUMNS: Sequence[Column[Orphan]] = (
    Column("CONNECTOR", lambda orphan: orphan.name, whole=True),
    Column("TYPE", lambda orphan: orphan.type),
    Column("STORED IN", lambda orphan: ",".join(orphan.places), prose=True),
    Column("OFFSETS", lambda orphan: str(orphan.count), right=True),
    Column("LAST WRITTEN", lambda orphan: _time(orphan.written_ms)),
)


@app.command("list")
def list_orphans(context: typer.Context, *, topics: TopicsOption = None) -> None:
    """List deleted connectors with offsets; those of sinks are in consumer groups connect-NAME."""
    session = session_of(context)
    keeper = OrphanKeeper(session, topics)
    found = keeper.find()
    if keeper.live:
        session.output.message(
            "left out, because their consumer groups have members (sinks of other Connect"
            f" clusters): {', '.join(sorted(keeper.live))}"
        )
    session.output.listing(
        COLUMNS,
        found,
        document=[_orphan_json(orphan) for orphan in found],
        names=[orphan.name for orphan in found],
        empty="no orphans",
    )


@app.command()
def export(
    context: typer.Context,
    name: Annotated[str, argument("NAME", "name of a deleted connector")],
    *,
    topics: TopicsOption = None,
    sink: Annotated[bool, option("--sink", "offsets of the consumer group connect-NAME")] = False,
    file: ExportFileOption = None,
) -> None:
    """Write a deleted connector's offsets to a file for `import --force` and `diff -f`."""
    session = session_of(context)
    keeper = OrphanKeeper(session, topics)
    wanted = [orphan for orphan in keeper.find() if (orphan.type == SINK) == sink]
    (orphan,) = _named(wanted, [name], keeper)
    export_snapshot(session, keeper.snapshot(orphan), file)


@app.command(cls=BatchCronVerb)
def purge(
    context: typer.Context,
    names: OrphanNames = None,
    *,
    topics: TopicsOption = None,
    everything: AllOption = False,
    sink_groups: Annotated[
        bool,
        option(
            "--sink-groups",
            "deletion of the consumer groups connect-NAME too; another Connect cluster"
            " on the same Kafka may own them",
        ),
    ] = False,
    confirmed: Annotated[
        list[str] | None,
        option(
            "--confirm-topic TOPIC",
            "offsets topic that belongs to this Connect cluster although its workers do"
            " not report it; repeatable",
        ),
    ] = None,
    worker_config: Annotated[
        str | None,
        option(
            "--worker-config FILE", "properties file of a worker, which names its offsets topic"
        ),
    ] = None,
    no_backup: Annotated[
        bool, option("--no-backup", "no backup: the change cannot be undone")
    ] = False,
) -> None:
    """Delete offsets of deleted connectors; existing connectors are refused, `undo` restores."""
    session = session_of(context)
    if bool(names) == everything:
        raise UsageError("no connector to purge is given", hint="name deleted connectors, or --all")
    keeper = OrphanKeeper(session, topics, worker_config)
    found = keeper.find()
    wanted = found if everything else _named(found, names or (), keeper)
    chosen = [orphan for orphan in wanted if sink_groups or orphan.type != SINK]
    left = [orphan for orphan in wanted if orphan not in chosen]
    for orphan in left:
        session.output.message(
            f"kept: consumer group {orphan.places[0]} (delete it with --sink-groups)"
        )
    if left and not chosen and not everything:
        raise PreconditionFailed(
            "nothing was done: these names have consumer groups only", hint="add --sink-groups"
        )
    keeper.require_own(chosen, confirmed or ())
    _purge(session, keeper, chosen, backup=not no_backup)


def _purge(
    session: Session, keeper: OrphanKeeper, chosen: Sequence[Orphan], *, backup: bool
) -> None:
    lines = [] if chosen else ["no orphans: nothing to purge"]
    for orphan in chosen:
        lines += [
            f"purge offsets of {orphan.name} ({orphan.type}, no such connector)",
            f"  in      {', '.join(orphan.places)}",
            f"  backup  {'first' if backup else 'none'}",
        ]
        forgotten = [
            f"  {show_partition(entry.partition)}  {show_offset(entry.offset)} -> forgotten"
            for entry in orphan.entries
        ]
        lines += first_lines(session, forgotten, orphan.count)
    document = [{"would": "purge", **_orphan_json(orphan)} for orphan in chosen]
    show_plan(session, lines, document)
    steps = [
        BatchStep(name=orphan.name, done="purged", act=partial(keeper.purge, orphan, backup=backup))
        for orphan in chosen
    ]
    backups = keeper.backups if backup else None
    run_changes(session, steps, "purge", backups, what="name")


def worker_topics_of(session: Session, worker_config: str | None) -> set[str]:
    """Return the offsets topic, as agents, the context or the file of a Java worker name it."""
    urls = session.client.exchange.urls
    answers = ask_workers(session, urls, lambda exchange: AgentClient(exchange).config())
    configs = [answer for answer in answers if not isinstance(answer, PyconnectError)]
    if worker_config is not None:
        configs.append(dict(worker_properties(worker_config)))
        if not configs[-1].get(OFFSETS_TOPIC):
            raise UsageError(f"--worker-config {worker_config}: it has no {OFFSETS_TOPIC}")
    found = {topic for config in configs if (topic := config.get(OFFSETS_TOPIC))}
    known = session.settings.offsets_topic
    return found or ({known} if known else set())


def _named(found: Sequence[Orphan], names: Sequence[str], keeper: OrphanKeeper) -> list[Orphan]:
    known = {orphan.name for orphan in found}
    for name in names:
        if name in keeper.existing:
            raise PreconditionFailed(
                f"connector {name} exists, so its offsets are not orphans; nothing was done",
                hint=f"to delete them: pyconnect offsets reset {name}",
            )
        if name in keeper.live and name not in known:
            raise PreconditionFailed(
                f"consumer group connect-{name} has members: a sink of another Connect cluster"
                " uses it; nothing was done"
            )
        if name not in known:
            near = did_you_mean(name, sorted(known))
            raise NotFound(
                f"no offsets of a connector `{name}` were found in {', '.join(keeper.topics)} and"
                f" the groups {SINK_GROUP_PREFIX}*",
                hint=near or "list the orphans: pyconnect offsets orphans list",
            )
    return [orphan for orphan in found if orphan.name in names]


def _orphan_json(orphan: Orphan) -> dict[str, object]:
    return {
        "name": orphan.name,
        "type": orphan.type,
        "stored_in": list(orphan.places),
        "count": orphan.count,
        "written_ms": orphan.written_ms,
        "offsets": [entry.to_json() for entry in orphan.entries],
    }
