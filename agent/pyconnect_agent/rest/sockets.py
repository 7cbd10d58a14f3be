"""Sockets of listeners, bound before the first request so that ports are known.

Until `listen` connections are refused, as by Apache's worker: an accepted client would have to wait
while the brokers cannot be reached. Connections never take the last descriptors of the process,
which tasks and Kafka's clients need.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import socket
import time
from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.config.listeners import Listener
from pyconnect_agent.core.errors import WorkerStartError

LOG = logging.getLogger(__name__)

BACKLOG = 128
HIGHEST_PORT = 65_535
REFUSALS_LOGGED_AFTER_S = 60.0
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


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


class ListeningSocket(socket.socket):
    """Closes accepted connections while few descriptors are left; the log says so rarely."""

    def __init__(self, family: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._spare = os.open(os.devnull, os.O_RDONLY)
        self._failed_s = self._logged_s = -REFUSALS_LOGGED_AFTER_S
        self._refused = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection that may stay."""
        while True:
            try:
                connection, address = super().accept()
            except OSError as exc:
                if exc.errno not in _OUT_OF_RESOURCES:
                    raise
                if self._refuse_next():
                    continue
                # The event loop stops listening for a second after an error, but goes on to accept
                # before: that would be as many errors as the backlog has places.
                now_s = time.monotonic()
                if now_s - self._failed_s < 1:
                    raise BlockingIOError from exc
                self._failed_s = now_s
                raise
            # A new descriptor has the lowest free number.
            if connection.fileno() < _most_descriptors():
                return connection, address
            connection.close()
            self._log_refusal()

    def close(self) -> None:
        super().close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def _refuse_next(self) -> bool:
        """Close the next connection, by the descriptor that was kept for it."""
        if self._spare < 0:
            return False
        os.close(self._spare)
        self._spare = -1
        try:
            connection, _ = super().accept()
            connection.close()
            self._log_refusal()
        except BlockingIOError:
            pass
        except OSError:
            return False
        finally:
            # Another thread may have been quicker.
            with contextlib.suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY)
        return True

    def _log_refusal(self) -> None:
        self._refused += 1
        now_s = time.monotonic()
        if now_s - self._logged_s >= REFUSALS_LOGGED_AFTER_S:
            LOG.warning(
                "connections are refused because few file descriptors are left",
                extra={"refused": self._refused, "limit": resource.getrlimit(_DESCRIPTORS)[0]},
            )
            self._logged_s, self._refused = now_s, 0


_DESCRIPTORS = resource.RLIMIT_NOFILE


def _most_descriptors() -> float:
    """Return how many descriptors may be open when a connection is accepted."""
    limit, _ = resource.getrlimit(_DESCRIPTORS)
    return float("inf") if limit == resource.RLIM_INFINITY else limit - max(limit // 4, 32)


def bind(listener: Listener) -> BoundListener:
    """Bind; port 0 takes a free one. Raises WorkerStartError."""
    try:
        if not 0 <= listener.port <= HIGHEST_PORT:
            # getaddrinfo would cut it to 16 bits.
            raise OSError(errno.EINVAL, f"port out of range: {listener.port}")
        if listener.host:
            found = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)
            # As Java: of several addresses the first of IPv4.
            family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
            bound = _bound(family, address)
        else:
            bound = _every_interface(listener.port)
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
    bound = ListeningSocket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not dualstack)
        bound.bind((str(address[0]), int(str(address[1]))))
    except BaseException:
        bound.close()
        raise
    return bound
