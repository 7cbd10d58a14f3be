"""The stored offsets of a cluster, their differences, and what Kafka knows about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyconnect_cli.errors import PreconditionFailed, PyconnectError
from pyconnect_cli.kafka.admin import kafka_admin, kafka_cluster
from pyconnect_cli.kafka.model import SinkPosition, TopicPartition, topic_partition
from pyconnect_cli.kafka.reader import read_to_the_end
from pyconnect_cli.kafka.writer import ConsumerGroups
from pyconnect_cli.offsets.plan.change import OffsetChange, OffsetsView
from pyconnect_cli.offsets.plan.checks import outside_topics
from pyconnect_cli.offsets.plan.orphans import sink_entries
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.rest.offset_entries import OffsetEntry, by_key, same_offset
from pyconnect_cli.session import Session
from pyconnect_clients.connect_names import sink_group_id


def sink_offsets(session: Session, view: ConnectorView) -> tuple[OffsetEntry, ...]:
    """Return a sink's offsets; before Kafka 3.5, whose REST lacks them, those of its group."""
    try:
        return session.client.connector_offsets(view.name).entries
    except PreconditionFailed:
        config = view.config
        elsewhere = config.get("consumer.override.bootstrap.servers")
        if not session.settings.kafka_bootstrap or elsewhere:
            raise
    settings = kafka_cluster(session, "the group's offsets").librdkafka()
    groups = ConsumerGroups(settings, session.budget.remaining_s)
    return sink_entries(groups.offsets(sink_group_id(view.name, config)))


def offset_differences(
    stored: Sequence[OffsetEntry], wanted: Sequence[OffsetEntry]
) -> list[OffsetChange]:
    """Return the partitions whose offset is not the same on both sides, in their order."""
    ours, theirs = by_key(stored), by_key(wanted)
    changes = []
    for key in dict.fromkeys([*ours, *theirs]):
        before = ours[key].offset if key in ours else None
        after = theirs[key].offset if key in theirs else None
        if not same_offset(before, after):
            partition = (ours.get(key) or theirs[key]).partition
            changes.append(OffsetChange(partition=partition, before=before, after=after))
    return changes


MOST_MARKERS = 10_000


def near_the_end(position: SinkPosition) -> bool:
    """Return whether so few offsets are left that all of them may be markers."""
    return 0 < (position.lag or 0) <= MOST_MARKERS


def all_read(
    settings: Mapping[str, str],
    config: Mapping[str, str | None],
    positions: Mapping[TopicPartition, SinkPosition],
) -> set[TopicPartition]:
    """Return the partitions without an unread record, among those with an offset near the end.

    `settings` are librdkafka's, `config` is the sink's.
    """
    near = {
        partition: (at.offset, at.end)
        for partition, at in positions.items()
        if at.offset is not None and at.end is not None and near_the_end(at)
    }
    isolation = config.get("consumer.override.isolation.level") or "read_uncommitted"
    try:
        return read_to_the_end(settings, near, isolation)
    except PyconnectError:
        # A user with Describe on a topic may lack Read.
        return set()


def topic_doubts(
    session: Session, view: OffsetsView, wanted: Sequence[OffsetEntry]
) -> list[str] | None:
    """Return doubts about offsets without a record; None if Kafka was not asked.

    Without --kafka-bootstrap nothing is asked: a worker refuses unknown partitions itself, and an
    offset past the end makes the sink begin as its auto.offset.reset says.
    """
    if view.type != "sink" or not session.settings.kafka_bootstrap:
        return None
    kafka = kafka_admin(session, "the check of offsets")
    named = {topic_partition(entry.partition) for entry in wanted}
    existing = kafka.partitions({partition.topic for partition in named})
    return outside_topics(wanted, kafka.ranges(named & existing))
