"""Sockets of listeners, bound before the first request so that ports are known.

Layer: rest. Until `listen` connections are refused, as by Apache's worker: an accepted client would
have to wait while the brokers cannot be reached.
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

    def listen(self) -> None:
        """Let clients connect. Raises WorkerStartError: another process may have been quicker."""
        try:
            self.socket.listen(BACKLOG)
        except OSError as exc:
            raise _start_error(self.listener, exc) from exc


def bind(listener: Listener) -> BoundListener:
    """Bind; port 0 takes a free one. Raises WorkerStartError."""
    try:
        bound = _bound_socket(listener)
    # UnicodeError: an impossible host name.
    except (OSError, UnicodeError) as exc:
        raise _start_error(listener, exc) from exc
    port = bound.getsockname()[1]
    return BoundListener(Listener(protocol=listener.protocol, host=listener.host, port=port), bound)


def local_address() -> str:
    """Return the address for other hosts when no listener names one."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _start_error(listener: Listener, error: Exception) -> WorkerStartError:
    reason = getattr(error, "strerror", None) or error
    return WorkerStartError(
        f"Unable to listen on {listener.protocol}://{listener.netloc}: {reason}"
    )


def _bound_socket(listener: Listener) -> socket.socket:
    if not 0 <= listener.port <= HIGHEST_PORT:
        # getaddrinfo would cut it to 16 bits.
        raise OSError(errno.EINVAL, f"port out of range: {listener.port}")
    if not listener.host:
        return _every_interface(listener.port)
    addresses = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)
    # As Java: of several addresses the first of IPv4.
    family, _, _, _, address = min(addresses, key=lambda found: found[0] != socket.AF_INET)
    return _bound(family, address)


def _every_interface(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return _bound(socket.AF_INET6, ("::", port), dualstack=True)
        except OSError:
            if _is_taken(port):
                raise
    return _bound(socket.AF_INET, ("", port))


def _is_taken(port: int) -> bool:
    """Distinguish a port in use from an IPv6 stack that is switched off."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


def _bound(family: int, address: tuple[object, ...], *, dualstack: bool = False) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not dualstack)
        bound.bind((str(address[0]), int(str(address[1]))))
    except BaseException:
        bound.close()
        raise
    return bound
