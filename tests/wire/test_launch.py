"""Processes started through a fork server, and what the launcher learns of their ends."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from signal import Signals

import psutil
import pytest

from pyconnect_agent.channel import encode
from pyconnect_agent.channel.requests import Stop, ValidateConfigJob, WorkerSettings
from pyconnect_agent.children import launch as launch_module
from pyconnect_agent.children.fork_server import LAST_WORDS_BYTES
from pyconnect_agent.children.launch import Launcher
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.children_world import (
    SCRIPTED_HOST,
    exit_code,
    has_ended,
    launch,
    scripted_launcher,
    shared_launcher,
)

pytestmark = pytest.mark.wire

WORKER = WorkerSettings(properties={})


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    """A launcher whose fork server a test may kill or stop."""
    launcher = Launcher(host=SCRIPTED_HOST, preload=())
    try:
        yield launcher
    finally:
        launcher.close()


def test_a_running_process_has_no_exit_code() -> None:
    """A process has an exit code once it ends with its pipe, and its input is /dev/null."""
    launcher = scripted_launcher()
    launched = launch(launcher, "run")
    assert launched.connection.recv(1)
    assert launched.exit_code() is None
    assert str(Path(f"/proc/{launched.pid}/fd/0").readlink()) == os.devnull
    launched.connection.close()
    assert exit_code(launched) == 70


def test_exit_codes_are_of_their_processes() -> None:
    """A process that has ended gets no signal, because another one may have its pid."""
    launcher = scripted_launcher()
    first, second = launch(launcher, "exit-now"), launch(launcher, "hang")
    second.signal(Signals.SIGKILL)
    assert exit_code(second) == -Signals.SIGKILL
    assert exit_code(first) == 3
    launched = launch(launcher, "exit-now")
    assert has_ended(launched)
    launched.signal(Signals.SIGKILL)
    assert exit_code(launched) == 3
    launched.signal(Signals.SIGKILL)


def test_a_fork_server_that_was_killed_is_replaced(launcher: Launcher) -> None:
    """A killed fork server is replaced at the next start."""
    before = launch(launcher, "run")
    server = psutil.Process(before.pid).parent()
    assert server is not None
    assert server.pid != os.getpid()
    server.kill()
    after = launch(launcher, "exit-now")
    assert exit_code(after) == 3
    assert exit_code(before) is None


def test_a_process_ends_when_its_end_could_not_be_reported(launcher: Launcher) -> None:
    """The children of a killed fork server end: they would run beside their successors."""
    launched = launch(launcher, "hang")
    child = psutil.Process(launched.pid)
    server = child.parent()
    assert server is not None
    server.kill()
    assert exit_code(launched) is None
    eventually(lambda: not child.is_running(), 30)


def test_a_forked_server_has_the_modules_of_its_parent() -> None:
    """A module that the forked server loads is not loaded in its parent."""
    program = (
        "import json, sys\n"
        "from pyconnect_agent.children.launch import Launcher\n"
        "from tests.support.fakes.children_world import exit_code\n"
        "launcher = Launcher(host='tests.support.fakes.child_host:tell_modules',"
        " preload=('tests.support.fakes.child_host',))\n"
        "launcher.fork()\n"
        "import tests.support.names\n"
        "launched = launcher.launch()\n"
        "told = launched.connection.makefile().read()\n"
        "assert exit_code(launched) == 0\n"
        "launcher.close()\n"
        "print(json.dumps([json.loads(told), list(sys.modules)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    child, maker = (set(names) for names in json.loads(done.stdout))
    assert "pyconnect_agent.channel" in child & maker
    assert "tests.support.fakes.child_host" in child - maker
    assert "tests.support.names" in maker - child


def test_last_words_keep_beginning_and_end() -> None:
    """Last words of any length keep their beginning and end and fit into a pipe."""
    launched = launch(scripted_launcher(), "long-last-words")
    assert exit_code(launched) == 1
    words = launched.last_words
    assert words.startswith("Traceback (most recent call last)")
    assert words.endswith("the end")
    assert "\n[...]\n" in words
    assert len(words.encode()) <= LAST_WORDS_BYTES


@cases(
    "frame, reason",
    (b"\x00\x00\x00\x02\x63\x00", "ChannelError: The message has version 63"),
    (encode(Stop()), "ChannelError: Stop is not a job"),
    (
        encode(ValidateConfigJob(worker=WORKER, config={"port": 1})),  # type: ignore[dict-item]
        "ChannelError: ValidateConfigJob is not valid: Expected `str | null`, got `int`",
    ),
    (
        encode(ValidateConfigJob(worker=replace(WORKER, log_format="xml"), config={})),
        "ValueError: 'xml' is not a valid LogFormat",
    ),
)
def test_a_child_that_fails_before_its_job_says_why(frame: bytes, reason: str) -> None:
    """A child that fails before its job reports the reason."""
    launched = shared_launcher().launch()
    launched.connection.sendall(frame)
    assert exit_code(launched) == 1
    assert reason in launched.last_words


def test_orphans_end() -> None:
    """A child ends when its worker process has ended."""
    launched = shared_launcher().launch()
    launched.connection.shutdown(socket.SHUT_WR)
    assert exit_code(launched) == 70
    assert launched.last_words == ""


def test_a_fork_server_that_does_not_answer_is_replaced(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork server that does not answer is replaced, and its children live on."""
    first = launch(launcher, "run")
    assert first.connection.recv(1)
    server = psutil.Process(first.pid).parent()
    assert server is not None
    monkeypatch.setattr(launch_module, "LATER_ANSWER_S", 0.5)
    server.suspend()
    assert exit_code(launch(launcher, "exit-now")) == 3
    assert exit_code(launch(launcher, "exit-now")) == 3
    assert first.exit_code() is None
    server.resume()
    # A process that the resumed server starts ends by itself.
    first.connection.close()
    assert exit_code(first) == 70
    eventually(lambda: server.children() == [])
    server.suspend()
    launcher.close()
    assert not server.is_running()


def test_the_end_of_a_process_is_seen_while_its_fork_server_is_stopped(launcher: Launcher) -> None:
    """The launcher gets an exit code while the fork server is stopped."""
    launched = launch(launcher, "hang")
    server = psutil.Process(launched.pid).parent()
    assert server is not None
    assert launched.watched
    server.suspend()
    launched.signal(Signals.SIGKILL)
    assert select.select([launched.watched[0]], [], [], 30)[0]
    assert launched.exit_code() is None
    launched.end_without_report()
    assert launched.exit_code() == -Signals.SIGKILL
    launched.connection.close()
    launched.close()
