"""The use of a child is its own use and that of the processes that it has started."""

import subprocess
import sys

import pytest

from pyconnect_agent.children.limits import processes_of, resident_memory, use_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the use is known on Linux only")


def test_processes_below_a_process_count_while_they_are(family: tuple[int, int]) -> None:
    """A limit of a Java task is one for its Java process too; one that is gone has no use."""
    parent, below = family
    assert list(processes_of(parent)) == [parent, below]
    both, one = resident_memory(parent), resident_memory(below)
    assert both is not None
    assert one is not None
    assert both > one > 0
    use = use_of(parent)
    assert use is not None
    assert use.resident_bytes > one
    with subprocess.Popen(["true"]) as gone:
        pass
    assert use_of(gone.pid) is None
    assert resident_memory(None) is None
