"""A process with one below it."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

PARENT = """
import subprocess, sys
below = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
print(below.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A process and one below it, as a Java task has."""
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        yield parent.pid, int(parent.stdout.readline())
