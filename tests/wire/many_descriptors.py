"""Descriptors above the numbers that select() takes, as the thousandth child of a worker has.

`run` is the worker's own host of child processes, whose pipe has such a number.
"""

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from pyconnect_agent.tasks import host

HOST = "tests.wire.many_descriptors:run"
FD_SETSIZE = 1_024
_ROOM = 256


def take_descriptors() -> list[int]:
    """Open descriptors until the next one is above the numbers that select() takes."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(FD_SETSIZE + _ROOM, hard), hard))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] < FD_SETSIZE:
        taken.append(os.dup(taken[0]))
    return taken


@contextmanager
def many_descriptors() -> Iterator[None]:
    """Hold such descriptors during the context."""
    taken = take_descriptors()
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)


def run(connection: socket.socket, last_words: int) -> None:
    """Serve one job, with the pipe above the numbers of select(); does not return."""
    take_descriptors()
    moved = connection.dup()
    connection.close()
    assert moved.fileno() > FD_SETSIZE
    host.run(moved, last_words)
