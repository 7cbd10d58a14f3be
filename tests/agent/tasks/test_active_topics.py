"""The topics that a task reports as in use."""

import threading

from pyconnect_agent.tasks.control import PERIOD_S, ActiveTopics


class Reports:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.heard: list[str] = []
        self.topics = ActiveTopics(self.heard.append, lambda: self.now_s)


def test_a_topic_in_use_is_reported_once_per_period() -> None:
    """A used topic is reported in the next period again, as it may have been reset in between."""
    reports = Reports()
    for _ in range(3):
        reports.topics.used("a")
        reports.topics.refresh()
    assert reports.heard == ["a"]
    reports = Reports()
    for _ in range(3):
        reports.topics.used("a")
    reports.now_s += PERIOD_S
    for _ in range(2):
        reports.topics.refresh()
        reports.topics.used("a")
    assert reports.heard == ["a", "a"]
    reports = Reports()
    reports.topics.used("a")
    for _ in range(3):
        reports.now_s += PERIOD_S
        reports.topics.refresh()
    assert reports.heard == ["a"]


class SlowToHash(str):
    """A topic whose use is held up between the look-up and the addition in `used`."""

    __slots__ = ("go_on", "hashed", "looked_up")

    def __init__(self, _name: str) -> None:
        self.hashed = 0
        self.looked_up, self.go_on = threading.Event(), threading.Event()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        self.hashed += 1
        if self.hashed == 2:
            self.looked_up.set()
            assert self.go_on.wait(60)
        return str.__hash__(self)


def test_a_topic_may_be_used_while_others_are_reported() -> None:
    """A topic that another thread uses during a report is reported in the next period."""
    reports = Reports()
    reports.topics.used("a")
    reports.topics.used("a")
    reports.topics.used("b")
    reports.heard.clear()
    topic = SlowToHash("b")
    using = threading.Thread(target=reports.topics.used, args=(topic,))
    using.start()
    assert topic.looked_up.wait(60)

    def report(name: str) -> None:
        topic.go_on.set()
        using.join(60)
        reports.heard.append(name)

    reports.topics._report = report
    reports.now_s += PERIOD_S
    reports.topics.refresh()
    reports.now_s += PERIOD_S
    reports.topics.refresh()
    assert reports.heard == ["a", "b"]
