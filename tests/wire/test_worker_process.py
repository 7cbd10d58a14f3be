"""A worker's own process: its restarts, the death of a thread, and memory that it returns."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.process.worker_process import Restart, restart_of
from pyconnect_agent.worker.lifecycle import EXIT_DIED, RUN_AGAIN
from tests.support.cases import cases
from tests.support.commands.processes import run_python

pytestmark = pytest.mark.wire

WORKER = """
import argparse, os, pathlib, signal, sys, types
from pyconnect_agent import __main__
lives = pathlib.Path(sys.argv[1])
def run(options, launcher):
    with lives.open("a") as file:
        file.write(f"{os.getpid()} {signal.getsignal(signal.SIGHUP).name}\\n")
    if "gone" in sys.argv:
        sys.executable = "/nowhere/python"
    return int(sys.argv[1 + len(lives.read_text().splitlines())])
class NoForkServer:
    def close(self): pass
# What these import takes longer than the test.
for name, members in {"command": {"run": run}, "lifecycle": EXITS}.items():
    sys.modules[f"pyconnect_agent.worker.{name}"] = types.SimpleNamespace(**members)
__main__._fork_server = NoForkServer
__main__._parser = lambda: argparse.Namespace(parse_args=lambda given: None)
sys.exit(__main__.main())
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program that writes a line per run and ends its runs as its arguments say."""
    path = tmp_path / "worker.py"
    exits = {"EXIT_DIED": EXIT_DIED, "RUN_AGAIN": RUN_AGAIN}
    path.write_text(WORKER.replace("EXITS", repr(exits)))
    return path


def lives_of(script: Path, *ends: str) -> tuple[int, list[str], str]:
    lives = script.with_name("lives")
    done = run_python([str(script), str(lives), *ends], os.environ, 60)
    return done.returncode, lives.read_text().splitlines(), done.stderr


def test_a_worker_runs_again_in_the_same_process(script: Path) -> None:
    """A worker runs again in its process with the same arguments, as often as it asks."""
    code, lives, _ = lives_of(script, str(RUN_AGAIN), str(RUN_AGAIN), "3")
    assert code == 3
    assert len(lives) == 3
    assert len(set(lives)) == 1


@cases("code", 0, 1, 2)
def test_a_worker_that_ends_otherwise_stays_ended(script: Path, code: int) -> None:
    """A worker that stops or fails is not run again; a service manager reacts."""
    ended, lives, _ = lives_of(script, str(code), "0")
    assert (ended, len(lives)) == (code, 1)


def test_a_worker_whose_program_is_gone_reports_it(script: Path) -> None:
    """A worker whose program is gone reports it and ends with the code of a dead process."""
    code, lives, log = lives_of(script, str(RUN_AGAIN), "0", "gone")
    assert (code, len(lives)) == (1, 1)
    assert "start it by hand" in log


def test_the_method_follows_the_properties_and_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart uses the configured command, else the program, if it exists."""
    stops: list[str] = []
    config = DistributedConfig.parse(WORKER_PROPERTIES)
    own = restart_of(config, lambda: stops.append("stopped"))
    own.begin()
    assert (own.method, stops) == ("self", ["stopped"])
    by_command = restart_of(
        DistributedConfig.parse({**WORKER_PROPERTIES, "agent.restart.command": "touch 'a file'"}),
        lambda: stops.append("stopped"),
    )
    assert (by_command.method, by_command.command) == ("command", ("touch", "a file"))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    own.begin()
    assert (own.method, by_command.method, len(stops)) == ("none", "command", 1)


def test_a_command_that_cannot_run_is_reported() -> None:
    """A command that cannot run is an error, and the worker goes on."""
    missing = Restart(command=("/nowhere/restart",), stop_and_run_again=lambda: None)
    with pytest.raises(InternalError, match="restart the worker yourself"):
        missing.begin()


WORKER_PROPERTIES = {
    "bootstrap.servers": "localhost:9092",
    "group.id": "group",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


PROGRAM = """
import threading
from pyconnect_agent.process import long_lived
from pyconnect_agent.process.logging import configure_logging

configure_logging()
long_lived.BEFORE_END_S = 0.1
def report(error):
    print("last words:", error, flush=True)
    {last_words}
long_lived.call_before_end(report)
def work():
    raise ValueError("no good")
long_lived.Thread("reader", work).start()
threading.Event().wait()
"""


@cases("last_words", "pass", "raise OSError", "threading.Event().wait()")
def test_a_process_whose_thread_has_died_ends(last_words: str) -> None:
    """A process whose thread has died exits with 1 and logs its last words and the trace."""
    done = run_python(["-c", PROGRAM.format(last_words=last_words)], os.environ)
    assert done.returncode == 1
    assert done.stdout == "last words: no good\n"
    assert "part of the process has died unexpectedly part=reader" in done.stderr
    assert "ValueError: no good" in done.stderr


HEAP = """
import psutil
from pyconnect_agent.process import worker_process

def resident():
    return psutil.Process().memory_info().rss

worker_process.use_one_heap()
blocks = [bytes(2_000) for _ in range(50_000)]
kept = blocks[::50]
blocks.clear()
before = resident()
worker_process.give_back()
print(before - resident())
"""
FREED_BYTES = 100_000_000


def test_free_memory_between_used_blocks_is_returned() -> None:
    """Freed memory between used blocks is returned to the system."""
    done = subprocess.run([sys.executable, "-c", HEAP], capture_output=True, check=True)
    assert int(done.stdout) > FREED_BYTES // 2
