"""A child process: its log lines, its last words, and its preparation by the fork server."""

import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import LineLogged
from pyconnect_agent.process.logging import configure_logging, mask_logs
from pyconnect_agent.tasks.host import BURST, LINE_CHARACTERS, LINES_A_SECOND, LogReports, leave
from tests.support.commands.processes import run_python


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Return the log of this process, in which the password is masked."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging(stream=stream)
    mask_logs(lambda text: text.replace("sesame", "${file:x:password}"))
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def test_last_words_are_logged_and_hide_values_of_config_providers(
    log: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Last words are masked, as the worker process shows them to every REST client."""
    # pytest-xdist cannot send a report whose captured log holds a lone surrogate.
    handlers = [h for h in logging.getLogger().handlers if getattr(h, "stream", None) is log]
    monkeypatch.setattr(logging.getLogger(), "handlers", handlers)
    try:
        raise LookupError("no caf\udce9") from ValueError("bad sesame")
    except LookupError as exc:
        error = exc
    with (tmp_path / "words").open("wb", buffering=0) as file:
        leave(error, file.fileno())
    words = (tmp_path / "words").read_text()
    assert words.startswith("LookupError: no caf\\udce9\n")
    assert "Caused by: ValueError: bad ${file:x:password}" in words
    assert "ValueError: bad ${file:x:password}" in log.getvalue()
    assert "sesame" not in words + log.getvalue()


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
        # A line that sending logs must not be sent.
        logging.getLogger("reported").warning("sent")
        lines.append(message)

    handler = LogReports(send, clock)
    logger = logging.getLogger("reported")
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


LOG = logging.getLogger("reported")


def test_a_line_has_its_fields_and_its_trace(sent: list[LineLogged]) -> None:
    """The line has Log4j's level; fields and traces of several lines are below it."""
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
    """A task that logs each record sends a limited number of lines, and the count of the others."""
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
    """A line is cut to a limit, as a record's value may be of any size."""
    LOG.warning("x" * 10 * LINE_CHARACTERS)
    assert len(sent[0].text) == LINE_CHARACTERS
    assert sent[0].text.endswith(" [...]")


def test_logging_does_not_fail_without_the_worker_process() -> None:
    """Logging does not raise when the pipe is broken, as the process is about to end."""

    def send(_: Message) -> None:
        raise BrokenPipeError

    handler = LogReports(send)
    handler.emit(logging.makeLogRecord({"msg": "x", "levelno": logging.INFO}))


PROGRAM = """
import os
import pyconnect_agent.tasks.preload
print(os.listdir("/proc/self/task") == [str(os.getpid())])
"""


def test_no_thread_is_left_that_a_fork_would_lose() -> None:
    """The client that preloads libraries leaves neither a thread nor output."""
    done = run_python(["-c", PROGRAM], os.environ)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "True", "")
