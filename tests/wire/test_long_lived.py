"""The end of a process whose thread has died."""

import os

import pytest

from tests.support.cases import cases
from tests.support.commands.processes import run_python

pytestmark = pytest.mark.wire

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
    """With exit code 1, its last words and the trace, however the last words end."""
    done = run_python(["-c", PROGRAM.format(last_words=last_words)], os.environ)
    assert done.returncode == 1
    assert done.stdout == "last words: no good\n"
    assert "part of the process has died unexpectedly part=reader" in done.stderr
    assert "ValueError: no good" in done.stderr
