"""Listening sockets, bound before anything is served so that ports are known (spec §10).

Layer: rest.
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from pyconnect_agent.core.config.listeners import Listener
from pyconnect_agent.core.errors import WorkerStartError

BACKLOG = 128
HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A listener with its socket; `listener.port` is the port really bound."""

    listener: Listener
    socket: socket.socket


def bind(listener: Listener) -> BoundListener:
    """Bind and listen; port 0 takes a free one. Raises WorkerStartError."""
    try:
        bound = _bound_socket(listener)
    # UnicodeError: a host name that cannot be.
    except (OSError, UnicodeError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise WorkerStartError(
            f"Unable to listen on {listener.protocol}://{listener.netloc}: {reason}"
        ) from exc
    port = bound.getsockname()[1]
    return BoundListener(Listener(protocol=listener.protocol, host=listener.host, port=port), bound)


def local_address() -> str:
    """Return the address other hosts are told when no listener names one."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _bound_socket(listener: Listener) -> socket.socket:
    if not 0 <= listener.port <= HIGHEST_PORT:
        # getaddrinfo would cut it to 16 bits.
        raise OSError(errno.EINVAL, f"port out of range: {listener.port}")
    if not listener.host:
        return _every_interface(listener.port)
    addresses = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)
    # As Java: of several addresses the first of IPv4.
    family, _, _, _, address = min(addresses, key=lambda found: found[0] != socket.AF_INET)
    return _listening(family, address)


def _every_interface(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
            )
        except OSError:
            if _is_taken(port):
                raise
    return _listening(socket.AF_INET, ("", port))


def _is_taken(port: int) -> bool:
    """Tell a port in use from an IPv6 stack that is switched off."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def _listening(family: int, address: tuple[object, ...]) -> socket.socket:
    host, port = str(address[0]), int(str(address[1]))
    return socket.create_server((host, port), family=family, backlog=BACKLOG)
