"""Ports that nothing listens on.

Taken from below the ranges that Linux (32768) and macOS (49152) give to outgoing connections, so
that a broker which is killed and started again does not find its port used by a client socket.
A port that was given out is reserved by a UDP socket of the same number for a while: until its
server listens, a client of another process would be answered by whoever got the port too. Programs
that do not ask here may still be quicker: `server` tries others then.
"""

from __future__ import annotations

import os
import random
import socket
from collections import deque
from contextlib import suppress

from pyconnect_sandbox.errors import PortTaken

LOOPBACK = "127.0.0.1"
FIRST_PORT, LAST_PORT = 20000, 32700
ATTEMPTS = 200
RESERVED = 64
_reserved: deque[int] = deque()
"""Sockets of the latest ports: the others have a listener by now, or nobody wants them."""


def is_free(port: int) -> bool:
    """Return whether a listener could be opened on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the JVM does: a port whose last connections are in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def accepts_connections(port: int) -> bool:
    """Return whether something listens on `port`."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0):
            return True
    except OSError:
        return False


def free_port(exclude: frozenset[int] = frozenset()) -> int:
    """Return a port that is free now and not in `exclude`; raise PortTaken when none is found."""
    for _ in range(ATTEMPTS):
        port = random.randint(FIRST_PORT, LAST_PORT)
        if port in exclude or not is_free(port):
            continue
        reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with suppress(OSError):
            reservation.bind((LOOPBACK, port))
            _reserved.append(reservation.detach())
            if len(_reserved) > RESERVED:
                os.close(_reserved.popleft())
            return port
        reservation.close()
    raise PortTaken(
        f"No free port found between {FIRST_PORT} and {LAST_PORT} in {ATTEMPTS} attempts",
        hint="name one with --port",
    )


def require_free(port: int) -> None:
    """Raise PortTaken unless `port` is free."""
    if not is_free(port):
        raise PortTaken(
            f"Port {port} on {LOOPBACK} is in use",
            hint="choose another --port, or leave it out for a free port",
        )
