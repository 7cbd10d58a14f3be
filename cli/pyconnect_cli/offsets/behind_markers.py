"""Find out whether a sink has read everything: markers of transactions take offsets too."""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.kafka.model import TopicPartition
from pyconnect_cli.kafka.reader import read_to_the_end

MOST_MARKERS = 10_000


def near_the_end(offset: int | None, end: int | None) -> bool:
    """Return whether so few offsets are left that all of them may be markers."""
    return offset is not None and end is not None and 0 < end - offset <= MOST_MARKERS


def all_read(
    settings: Mapping[str, str],
    config: Mapping[str, str | None],
    places: Mapping[TopicPartition, tuple[int | None, int | None]],
) -> set[TopicPartition]:
    """Return the partitions without an unread record, among those with an offset near the end.

    `settings` are librdkafka's, `config` is the sink's; `places` are offsets and ends.
    """
    near = {
        partition: (offset, end)
        for partition, (offset, end) in places.items()
        if offset is not None and end is not None and near_the_end(offset, end)
    }
    isolation = config.get("consumer.override.isolation.level") or "read_uncommitted"
    try:
        return read_to_the_end(settings, near, isolation)
    except PyconnectError:
        # A user with Describe on a topic may lack Read.
        return set()
