"""Log lines that a child sends."""

import logging
from collections.abc import Iterator

import pytest

from pyconnect_agent.channel import LineLogged, Message
from pyconnect_agent.tasks.host import BURST, LINE_CHARACTERS, LINES_A_SECOND, LogReports


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sent(clock: Clock) -> Iterator[list[LineLogged]]:
    """Return the messages that the logger `reported` sends."""
    lines: list[LineLogged] = []

    def send(message: Message) -> None:
        assert isinstance(message, LineLogged)
        # Whatever sending logs must not come back here.
        logging.getLogger("reported").warning("sent")
        lines.append(message)

    handler = LogReports(send, clock)
    logger = logging.getLogger("reported")
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


LOG = logging.getLogger("reported")


def test_a_line_has_its_fields_and_its_trace(sent: list[LineLogged]) -> None:
    """Level by Log4j's name; what has several lines stands below."""
    try:
        raise ValueError("x")
    except ValueError:
        LOG.warning(
            "an event", extra={"one": 1, "two": "a b", "how": "first\nsecond"}, exc_info=True
        )
    (line,) = sent
    assert (line.level, line.logger) == ("WARN", "reported")
    first, *below = line.text.splitlines()
    assert first == 'an event one=1 two="a b"'
    assert below[:3] == ["    how:", "    first", "    second"]
    assert below[-1] == "    ValueError: x"


def test_too_many_lines_are_counted_instead(sent: list[LineLogged], clock: Clock) -> None:
    """A task that logs each record must not keep its worker busy; the gap is visible."""
    for number in range(BURST + 7):
        LOG.warning("event %d", number)
    assert len(sent) == BURST
    clock.now_s += 1
    LOG.warning("later")
    expected = ["7 lines are left out here; standard error has them all", "later"]
    assert [line.text for line in sent[BURST:]] == expected
    for _ in range(2 * LINES_A_SECOND):
        LOG.warning("again")
    assert len(sent) == BURST + 1 + LINES_A_SECOND


def test_a_long_line_is_cut(sent: list[LineLogged]) -> None:
    """A record's value may be of any size."""
    LOG.warning("x" * 10 * LINE_CHARACTERS)
    assert len(sent[0].text) == LINE_CHARACTERS
    assert sent[0].text.endswith(" [...]")


def test_logging_does_not_fail_without_the_worker_process() -> None:
    """The process is about to end; what logs goes on until then."""

    def send(_: Message) -> None:
        raise BrokenPipeError

    handler = LogReports(send)
    handler.emit(logging.makeLogRecord({"msg": "x", "levelno": logging.INFO}))
