"""Find, back up, purge and restore the offsets of deleted connectors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property

from pyconnect_cli.acting.workers import connect_cluster
from pyconnect_cli.errors import PreconditionFailed, ServerError, UsageError
from pyconnect_cli.kafka.cluster import kafka_cluster
from pyconnect_cli.kafka.model import StoredRecord, TopicPartition, kafka_offset, topic_partition
from pyconnect_cli.kafka.offset_topics import ConsumerGroups, OffsetsTopics
from pyconnect_cli.offsets.backups import Backups, backup_directory, utc_text
from pyconnect_cli.offsets.plan.change import OffsetsPlan, OffsetsView, StateWish, plan_undo
from pyconnect_cli.offsets.plan.orphans import (
    SINK,
    Configs,
    Orphan,
    find_orphans,
    own_topics,
    sink_entries,
    source_entries,
    topics_of_others,
)
from pyconnect_cli.offsets.plan.snapshots import OffsetsSnapshot
from pyconnect_cli.rest.model import ConnectCluster, ConnectorView
from pyconnect_cli.session import Session
from pyconnect_clients.connect_names import SINK_GROUP_PREFIX

NEEDS_KAFKA = "reading orphans needs Kafka itself: REST knows only connectors that exist"
UNTOUCHED = "nothing was changed"


class OrphanKeeper:
    """One command's work on orphans."""

    def __init__(
        self,
        session: Session,
        topics: Sequence[str] = (),
        *,
        worker_topics: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._session = session
        self._given = topics
        self._ask_workers = worker_topics
        settings = kafka_cluster(session, NEEDS_KAFKA).librdkafka()
        remaining_s = session.budget.remaining_s
        self._records = OffsetsTopics(settings, remaining_s)
        self._groups = ConsumerGroups(settings, remaining_s)
        self.backups = Backups(backup_directory(session.environ))
        self.live: frozenset[str] = frozenset()
        """Names of sinks that run in no known connector: groups with members, as `find` saw."""

    @cached_property
    def existing(self) -> Configs:
        """The configurations of all connectors."""
        return {name: view.info.config if view.info else {} for name, view in self._views.items()}

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
        return frozenset(self._ask_workers())

    @property
    def searched(self) -> str:
        """The places that were searched, as a text."""
        return f"{', '.join(self.topics)} and the groups {SINK_GROUP_PREFIX}*"

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
        plan = plan_undo(view, StateWish(), snapshot.offsets, snapshot.left)
        assert isinstance(plan, OffsetsPlan)  # a deleted connector needs no stop
        return plan

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
        remarks = [f"{orphan.count} offset{'' if orphan.count == 1 else 's'}"]
        return ", ".join(remarks + ([f"backup {identity}"] if identity else []))

    def restore(self, snapshot: OffsetsSnapshot, *, backup: bool) -> str:
        """Restore the offsets that a purge deleted; return a remark."""
        self._require_absent(snapshot.connector)
        identity = self._back_up(self._as_it_is(snapshot)) if backup else None
        if snapshot.type == SINK:
            offsets = _group_offsets(snapshot)
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


def _group_offsets(snapshot: OffsetsSnapshot) -> dict[TopicPartition, int]:
    return {
        topic_partition(entry.partition): offset
        for entry in snapshot.offsets
        if (offset := kafka_offset(entry)) is not None
    }
