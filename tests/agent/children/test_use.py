"""What a child uses of its host."""

from __future__ import annotations

import subprocess

import psutil

from pyconnect_agent.children.use import resident_memory, use_of
from tests.support.eventually import eventually


def test_a_process_that_the_child_has_started_counts() -> None:
    """A Java task's memory is that of its Java process."""
    with subprocess.Popen(["sh", "-c", "sleep 600 & wait"]) as child:
        shell = psutil.Process(child.pid)
        eventually(lambda: [each.name() for each in shell.children()] == ["sleep"])
        (started,) = shell.children()
        resident = [process.memory_info().rss for process in (shell, started)]
        found = use_of(child.pid)
        started.kill()
    assert found is not None
    assert found.resident_bytes == sum(resident)


def test_the_use_of_a_process_that_is_gone_is_not_known() -> None:
    with subprocess.Popen(["true"]) as child:
        pass
    assert use_of(child.pid) is None
    assert resident_memory(child.pid) is None
    assert use_of(None) is None
