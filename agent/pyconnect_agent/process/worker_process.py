"""The worker's process and its system: a service manager, its restart, freed memory.

Composition root. Messages to a service manager are ready, alive, reloading and stopping (sd_notify
of systemd): one datagram of `NAME=value` lines to the socket in NOTIFY_SOCKET. A name that begins
with `@` is in Linux's abstract namespace. Without the variable no message is sent. If the manager
cannot be reached, the worker logs it and goes on. Event loop only.

After a change of its own properties a worker restarts. By default it stops in order, and its
process then runs the same command again: the pid stays, so a service manager, a container or a
shell does not notice, and no parent process is needed. If `agent.restart.command` is set, a
separate process runs that command instead; the worker continues until the command stops it.

Python's blocks beyond 512 bytes and all of librdkafka's come from the C library's allocator. The
functions that limit the freed memory that it keeps work with glibc; on other systems they do
nothing. Any thread.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import AgentError, InternalError

LOG = logging.getLogger(__name__)

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"
_PINGS_IN_INTERVAL = 3
_ASK_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceManager:
    """The manager of this process; `watchdog_s`: its longest time without a message, or None."""

    address: str | None
    watchdog_s: float | None

    @classmethod
    def of(cls, environment: Mapping[str, str], pid: int) -> ServiceManager:
        """Read the manager from environment variables; a watchdog may be for another process."""
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
        """Report a restart in the same process, which ends with the next READY."""
        clock_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        self.notify("RELOADING=1", f"MONOTONIC_USEC={clock_us}")

    async def report_alive(self) -> None:
        """Report until cancelled; the manager restarts a worker whose event loop hangs."""
        if self.address is None or not self.watchdog_s:
            return
        while True:
            self.notify(ALIVE)
            await asyncio.sleep(self.watchdog_s / _PINGS_IN_INTERVAL)

    async def report_ready(self, probe: Callable[[], Awaitable[object]]) -> None:
        """Report readiness as soon as `probe` raises no AgentError."""
        while self.address is not None:
            try:
                await probe()
            except AgentError:
                await asyncio.sleep(_ASK_AGAIN_S)
            else:
                self.notify(READY)
                return


_M_ARENA_MAX = -8
_EVERY_S = 10.0


def use_one_heap() -> None:
    """Let all threads share one heap, instead of up to eight mostly empty ones per core.

    Call it before the first thread, in a process whose threads allocate rarely.
    """
    _call("mallopt", _M_ARENA_MAX, 1)


def give_back() -> None:
    """Return free memory to the system, also free pages between used ones; takes milliseconds."""
    _call("malloc_trim", 0)


async def keep_low() -> None:
    """Return free memory at intervals until cancelled, because large answers leave much of it."""
    while True:
        await asyncio.sleep(_EVERY_S)
        await asyncio.to_thread(give_back)


def _call(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)


SELF, COMMAND, NONE = "self", "command", "none"


def run_again() -> None:
    """Replace this process with the command that started it; return if that is impossible.

    The replacement ends other threads and closes Python's descriptors.
    """
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - its own command
    except OSError as error:
        reason = f"{sys.executable}: {error.strerror}"
        LOG.error("worker could not run again; start it by hand", extra={"reason": reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A worker's restart. `stop_and_run_again` stops it in order; its process then runs again."""

    command: tuple[str, ...]
    stop_and_run_again: Callable[[], None]

    @property
    def method(self) -> str:
        """Return command, self, or none if the program of this process has been removed."""
        if self.command:
            return COMMAND
        return SELF if os.access(sys.executable, os.X_OK) else NONE

    def begin(self) -> None:
        """Begin a restart; the worker goes on until it is stopped. InternalError if impossible."""
        match self.method:
            case "self":
                LOG.info("worker restarts: its process runs the same command again")
                self.stop_and_run_again()
            case "command":
                LOG.info("worker restarts: by its command")
                try:
                    # In a new session, so that it outlives the worker that it stops.
                    subprocess.Popen(
                        self.command,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                except OSError as error:
                    raise InternalError(
                        f"agent.restart.command cannot be run: {self.command[0]}:"
                        f" {error.strerror}. The phase is set in the file; restart the worker"
                        " yourself."
                    ) from error
            case _:
                LOG.warning("worker needs a restart by hand: its program has been removed")


def restart_of(config: WorkerConfig, stop_and_run_again: Callable[[], None]) -> Restart:
    """Return the restart of this worker, from its configuration."""
    text = config.agent_restart_command if isinstance(config, DistributedConfig) else None
    return Restart(command=tuple(shlex.split(text or "")), stop_and_run_again=stop_and_run_again)
