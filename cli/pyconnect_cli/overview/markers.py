"""Sinks that have read everything although offsets are left, which markers of transactions take."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyconnect_cli.kafka.model import SinkPosition, TopicPartition
from pyconnect_cli.offsets.behind_markers import near_the_end

Places = Mapping[TopicPartition, SinkPosition]
Config = Mapping[str, str | None]


class Markers:
    """Reads as seldom as possible, because a live view looks every few seconds.

    The first look reads. A later look reads once if a sink has stopped moving: a sink that moves
    has records to read.
    """

    def __init__(self, read_through: Callable[[Config, Places], set[TopicPartition]]) -> None:
        self._read_through = read_through
        self._last: dict[str, Places] = {}
        self._judged: dict[str, Places] = {}

    def places(self, name: str, config: Config, places: Places) -> Places:
        """Return the places of a sink with `all_read` where no record is left."""
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
