"""The check that a sink's offsets lie inside their topics, if the brokers are known."""

from __future__ import annotations

from collections.abc import Sequence

from pyconnect_cli.kafka.admin import kafka_admin
from pyconnect_cli.kafka.model import topic_partition
from pyconnect_cli.offsets.plan.change import OffsetsView
from pyconnect_cli.offsets.plan.seek import outside_topics
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_cli.session import Session


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
