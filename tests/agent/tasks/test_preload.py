"""What the fork server prepares for its children."""

import os

from tests.support.commands.processes import run_python

PROGRAM = """
import os
import pyconnect_agent.tasks.preload
print(os.listdir("/proc/self/task") == [str(os.getpid())])
"""


def test_no_thread_is_left_that_a_fork_would_lose() -> None:
    """The client that is made to be shared has ended, and says nothing."""
    done = run_python(["-c", PROGRAM], os.environ)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "True", "")
