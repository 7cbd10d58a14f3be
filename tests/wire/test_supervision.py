"""The small parent of `--supervise`, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pyconnect_agent.restart_parent import EXIT_RESTART, SUPERVISOR_VARIABLE, is_supervised
from tests.support.eventually import eventually
from tests.support.processes import python_environment

pytestmark = pytest.mark.wire

SUPERVISOR = """
import sys
from pyconnect_agent.restart_parent import supervise
sys.exit(supervise(sys.argv[1:]))
"""
WORKER = """
import os, pathlib, signal, sys
from pyconnect_agent.restart_parent import is_supervised
lives = pathlib.Path(sys.argv[1])
with lives.open("a") as file:
    file.write(f"{os.getpid()} {is_supervised(os.environ)}\\n")
life = len(lives.read_text().splitlines())
ends = sys.argv[2:]
end = ends[life - 1]
if end.startswith("wait"):
    def stopped(number, frame):
        with lives.open("a") as file:
            file.write(f"signal {number}\\n")
        sys.exit(int(end.removeprefix("wait")))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stopped)
    with lives.open("a") as file:
        file.write("ready\\n")
    while True:
        signal.pause()
elif end == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(int(end))
"""

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def lives(tmp_path: Path) -> Path:
    """A line per life of the worker, and what it heard."""
    return tmp_path / "lives"


@pytest.fixture
def start(tmp_path: Path, lives: Path) -> Iterator[Start]:
    """Start a restart parent whose worker ends its lives as given."""
    started: list[subprocess.Popen[bytes]] = []
    script = tmp_path / "worker.py"
    script.write_text(WORKER)

    def start_supervisor(*ends: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        command = [*before, sys.executable, "-c", SUPERVISOR]
        worker = [sys.executable, str(script), str(lives), *ends]
        process = subprocess.Popen([*command, *worker], env=python_environment(os.environ))
        started.append(process)
        return process

    yield start_supervisor
    for process in started:
        process.kill()
        process.wait()


def lines(lives: Path) -> list[str]:
    return lives.read_text().splitlines() if lives.exists() else []


def test_a_worker_that_asks_for_it_runs_again(start: Start, lives: Path) -> None:
    """Exit code 64, twice; the restart parent ends with the last code. Lives know their parent."""
    again = str(EXIT_RESTART)
    assert start(again, again, "3").wait(30) == 3
    assert [line.split()[1] for line in lines(lives)] == ["True"] * 3
    assert len({line.split()[0] for line in lines(lives)}) == 3


@pytest.mark.parametrize(("end", "code"), [("0", 0), ("2", 2), ("kill", 128 + signal.SIGKILL)])
def test_any_other_end_is_the_supervisors_too(
    start: Start, lives: Path, end: str, code: int
) -> None:
    """Nothing is started again."""
    assert start(end, "0").wait(30) == code
    assert len(lines(lives)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_worker(start: Start, lives: Path, number: signal.Signals) -> None:
    """And how it ends is for the worker to say."""
    supervisor = start("wait7")
    eventually(lambda: "ready" in lines(lives))
    supervisor.send_signal(number)
    assert supervisor.wait(30) == 7
    assert lines(lives)[-1] == f"signal {number.value}"


def test_a_hangup_under_nohup_is_ignored_by_both(start: Start, lives: Path) -> None:
    """Who was started so outlives the terminal; other signals still reach the worker."""
    supervisor = start("wait7", before=("env", "--ignore-signal=HUP"))
    eventually(lambda: "ready" in lines(lives))
    supervisor.send_signal(signal.SIGHUP)
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(30) == 7
    assert lines(lives)[-1] == f"signal {signal.SIGTERM.value}"


def test_a_stop_is_not_undone_by_a_restart(start: Start, lives: Path) -> None:
    """A worker that was told to stop while it ended for a restart stays ended."""
    supervisor = start(f"wait{EXIT_RESTART}", "0")
    eventually(lambda: "ready" in lines(lives))
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(30) == 0
    assert len([line for line in lines(lives) if line.endswith("True")]) == 1


def test_only_the_parent_itself_counts() -> None:
    """The variable is inherited by a worker's own children; they are not supervised."""
    assert is_supervised({SUPERVISOR_VARIABLE: str(os.getppid())})
    assert not is_supervised({SUPERVISOR_VARIABLE: str(os.getpid())})
    assert not is_supervised({})
