"""Lag where only markers of transactions are left to read."""

from collections.abc import Mapping

from pyconnect_cli.kafka.model import SinkPosition, TopicPartition
from pyconnect_cli.overview.commands import Markers

AT = TopicPartition("orders", 0)


class Topic:
    """A topic in which only markers are left, or also records; counts how often it is read."""

    def __init__(self, *, only_markers: bool) -> None:
        self.only_markers = only_markers
        self.reads = 0
        self._markers = Markers(self._read)

    def lag(self, offset: int | None, end: int | None) -> int | None:
        """Return the lag of a look at these offsets."""
        return self._markers.places("sink", {}, {AT: SinkPosition(offset, end)})[AT].lag

    def _read(
        self, _: Mapping[str, str | None], places: Mapping[TopicPartition, SinkPosition]
    ) -> set[TopicPartition]:
        self.reads += 1
        return set(places) if self.only_markers else set()


def test_what_lies_before_a_sink_is_read_once() -> None:
    """A partition is read once while the sink stands there, and only near its end."""
    topic = Topic(only_markers=True)
    assert [topic.lag(9, 10), topic.lag(9, 10)] == [0, 0]
    assert topic.reads == 1
    topic = Topic(only_markers=False)
    assert [topic.lag(3, 10), topic.lag(3, 10)] == [7, 7]
    assert topic.reads == 1
    topic = Topic(only_markers=True)
    assert [topic.lag(None, 10), topic.lag(10, 10), topic.lag(0, 1_000_000)] == [None, 0, 1_000_000]
    assert topic.reads == 0


def test_a_sink_that_moves_costs_no_read_until_it_stops() -> None:
    """The lag of a sink that moves is the difference of offsets."""
    topic = Topic(only_markers=False)
    topic.lag(3, 10)
    assert [topic.lag(9, 20), topic.lag(19, 20)] == [11, 1]
    assert topic.reads == 1
    topic.only_markers = True
    assert topic.lag(19, 20) == 0
