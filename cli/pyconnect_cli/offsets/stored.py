"""Offsets of sinks as Kafka itself reports them: committed, left to read, and to be set."""

from collections.abc import Mapping, Sequence

from pyconnect_cli.errors import PreconditionFailed, PyconnectError
from pyconnect_cli.kafka.admin import kafka_admin, kafka_cluster
from pyconnect_cli.kafka.model import SinkPosition, TopicPartition, topic_partition
from pyconnect_cli.kafka.reader import read_to_the_end
from pyconnect_cli.kafka.writer import ConsumerGroups
from pyconnect_cli.offsets.plan.change import Action, OffsetsPlan, OffsetsView, plan_alter
from pyconnect_cli.offsets.plan.entries import outside_topics, sink_entries
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.rest.offset_entries import OffsetEntry
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


MOST_MARKERS = 10_000


def near_the_end(position: SinkPosition) -> bool:
    """Return whether the remaining offsets are so few that all may be transaction markers."""
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


def alter_plan(
    session: Session,
    view: OffsetsView,
    wanted: Sequence[OffsetEntry],
    *,
    action: Action,
    force: bool,
) -> OffsetsPlan:
    """Plan to set offsets; Kafka is asked whether those of a sink have a record, without `force`.

    Without --kafka-bootstrap nothing is asked: a worker refuses unknown partitions itself, and an
    offset past the end makes the sink begin as its auto.offset.reset says.
    """
    doubts = None
    if view.type == "sink" and session.settings.kafka_bootstrap and not force:
        kafka = kafka_admin(session, "the check of offsets")
        named = {topic_partition(entry.partition) for entry in wanted}
        existing = kafka.partitions({partition.topic for partition in named})
        doubts = outside_topics(wanted, kafka.ranges(named & existing))
    return plan_alter(view, wanted, action=action, force=force, topic_doubts=doubts)
