"""Messages to a service manager: ready, alive, reloading, stopping (sd_notify of systemd).

Composition root. A message is one datagram of `NAME=value` lines to the socket in NOTIFY_SOCKET. A
name that begins with `@` is in Linux's abstract namespace. Without the variable no message is sent.
A manager that cannot be reached is logged and does not stop the worker. Event loop only.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

LOG = logging.getLogger(__name__)

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"
_PINGS_IN_INTERVAL = 3
_ASK_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceManager:
    """The manager of this process; `watchdog_s`: the longest time between two messages."""

    address: str | None
    watchdog_s: float | None

    @classmethod
    def of(cls, environment: Mapping[str, str], pid: int) -> ServiceManager:
        """Read the variables; ignore a watchdog for another process (WATCHDOG_PID)."""
        interval_us = environment.get("WATCHDOG_USEC", "")
        ours = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        return cls(
            address=environment.get("NOTIFY_SOCKET") or None,
            watchdog_s=int(interval_us) / 1e6 if ours and interval_us.isdecimal() else None,
        )

    def notify(self, *lines: str) -> None:
        """Send one message."""
        if self.address is None:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                # A manager that does not read must not stop the event loop.
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), address)
        except OSError as error:
            extra = {"address": self.address, "reason": str(error)}
            LOG.warning("the service manager cannot be reached", extra=extra)

    def reloading(self) -> None:
        """Report a restart in the same process; the next READY ends it."""
        clock_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        self.notify("RELOADING=1", f"MONOTONIC_USEC={clock_us}")

    async def report_alive(self) -> None:
        """Report until cancelled; the manager restarts a worker whose event loop hangs."""
        if self.address is None or not self.watchdog_s:
            return
        while True:
            self.notify(ALIVE)
            await asyncio.sleep(self.watchdog_s / _PINGS_IN_INTERVAL)

    async def report_ready(self, is_ready: Callable[[], Awaitable[bool]]) -> None:
        """Report as soon as the worker is ready."""
        if self.address is None:
            return
        while not await is_ready():  # noqa: ASYNC110 - no event reports it
            await asyncio.sleep(_ASK_AGAIN_S)
        self.notify(READY)


def service_manager() -> ServiceManager:
    """Return the manager of this process."""
    return ServiceManager.of(os.environ, os.getpid())
