"""The topics that match a pattern, and their changes."""

import re

import pytest

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka.topic_pattern import MatchingTopics


class Cluster:
    """Topics, a clock, and the number of listings."""

    def __init__(self, *names: str) -> None:
        self.names, self.now_s, self.lists, self.down = set(names), 100.0, 0, False

    def topic_names(self) -> set[str]:
        self.lists += 1
        if self.down:
            raise KafkaError("down")
        return self.names

    def matching(self, pattern: str) -> MatchingTopics:
        return MatchingTopics(pattern, self.topic_names, interval_s=30, now_s=lambda: self.now_s)


def test_the_whole_name_must_match() -> None:
    """The pattern has Java's syntax and matches whole names, but not Kafka's own topics."""
    cluster = Cluster("b", "a", "ax", "xa", "d", "__consumer_offsets")
    assert cluster.matching("[a-z&&[^d]]|_.*").change() == ("a", "b")
    with pytest.raises(re.error):
        Cluster().matching("(")


def test_only_a_change_is_returned() -> None:
    """Topics come and go, and are looked up once in an interval."""
    cluster = Cluster("x")
    matching = cluster.matching("a.*")
    assert matching.change() is None
    cluster.names |= {"a1", "a2"}
    assert matching.change() is None
    assert cluster.lists == 1
    cluster.now_s += 30
    assert matching.change() == ("a1", "a2")
    assert matching.change() is None
    cluster.now_s += 30
    cluster.names -= {"a1", "a2"}
    assert matching.change() == ()


def test_a_failed_look_up_is_repeated_soon() -> None:
    """After a failed look-up the topics that were found before stay."""
    cluster = Cluster("a")
    cluster.down = True
    matching = cluster.matching("a")
    assert matching.change() is None
    cluster.down = False
    cluster.now_s += 5
    assert matching.change() == ("a",)
