"""Memory that the C library keeps, and gives back when it is told to."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.wire

PROGRAM = """
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
    """Every fiftieth block stays in use; without being told, the heap keeps all between them."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert int(done.stdout) > FREED_BYTES // 2
