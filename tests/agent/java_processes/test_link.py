"""Frames of a link to a Java process; the test holds the other end of the socket."""

import io
import logging
import socket
from collections.abc import Iterator
from typing import cast

import pytest

from pyconnect_agent.java_processes.frames import FrameKind, frame, json_bytes
from pyconnect_agent.java_processes.link import JavaLink
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.process.logging import TextFormatter
from tests.support.eventually import eventually

LOGGER = "plugin.of.the.test"
TRACE = "java.lang.IllegalStateException: outer\n\tat a.B.c\nCaused by: java.lang.Error: inner\n"


class SilentProcess:
    """A substitute for `JavaProcess` that ends when it is killed, and answers nothing."""

    pid = 42

    def __init__(self) -> None:
        self.socket, self.java = socket.socketpair()

    def wait(self, _timeout_s: float) -> bool:
        return True

    def explain_end(self) -> str:
        return "It was ended by the test."

    def kill(self) -> None:
        self.socket.close()
        self.java.close()

    def send(self, kind: FrameKind, value: object) -> None:
        self.java.sendall(b"".join(frame(kind, 0, json_bytes(value))))


@pytest.fixture
def process() -> Iterator[SilentProcess]:
    made = SilentProcess()
    yield made
    made.kill()


@pytest.fixture
def link(process: SilentProcess) -> JavaLink:
    return JavaLink(cast("JavaProcess", process))


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Return the lines of one logger as the worker writes them."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter())
    logger = logging.getLogger(LOGGER)
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


def test_lines_of_java_have_the_form_of_other_lines(
    link: JavaLink, process: SilentProcess, lines: io.StringIO
) -> None:
    """A message takes one line, and a trace is below it, like a traceback of Python."""
    line = {"logger": LOGGER, "level": "WARN", "message": "one\ntwo 100 %", "trace": TRACE}
    process.send(FrameKind.LOG, line)
    eventually(lambda: "inner" in lines.getvalue(), 10)
    first, *others = lines.getvalue().splitlines()
    assert first.endswith(f"] WARN one\\ntwo 100 % ({LOGGER})")
    assert others == [f"    {each}" for each in TRACE.splitlines()]
    process.java.close()
    assert str(link.ended()) == "It was ended by the test."


def test_stacks_of_a_process_that_does_not_answer(link: JavaLink, process: SilentProcess) -> None:
    """The text comes within the time limit while the process is frozen, and after its end."""
    assert "The Java process (pid 42) did not answer within 0.8 s: it is frozen" in link.stacks()
    process.java.close()
    link.ended()
    assert link.stacks() == "It was ended by the test.\n"
