"""Which topics a task uses, as the worker hears of them."""

from __future__ import annotations

from pyconnect_agent.tasks.active_topics import PERIOD_S, ActiveTopics


class Reports:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.heard: list[str] = []
        self.topics = ActiveTopics(self.heard.append, lambda: self.now_s)


def test_a_topic_is_reported_at_its_first_use() -> None:
    """A message per record would drown the worker."""
    reports = Reports()
    for _ in range(3):
        reports.topics.used("a")
        reports.topics.refresh()
    assert reports.heard == ["a"]


def test_a_topic_in_use_is_reported_once_per_period() -> None:
    """It may have been reset in between, and has to be listed again then."""
    reports = Reports()
    for _ in range(3):
        reports.topics.used("a")
    reports.now_s += PERIOD_S
    reports.topics.refresh()
    assert reports.heard == ["a", "a"]


def test_a_topic_that_is_used_no_more_is_not_reported() -> None:
    """What was reset stays so until a record uses the topic."""
    reports = Reports()
    reports.topics.used("a")
    for _ in range(3):
        reports.now_s += PERIOD_S
        reports.topics.refresh()
    assert reports.heard == ["a"]
