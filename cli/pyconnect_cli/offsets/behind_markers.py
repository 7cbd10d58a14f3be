"""Find out whether a sink has read everything: markers of transactions take offsets too."""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.kafka.model import SinkPosition, TopicPartition
from pyconnect_cli.kafka.reader import read_to_the_end

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
