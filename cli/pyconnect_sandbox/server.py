"""One server process of the sandbox, and free ports: start, wait until it answers, stop, kill.

`Server` owns the process group; subclasses define the files, the command, and the request that
shows that the server answers. Not thread-safe: one owner calls it.

Ports are taken from below the ranges that Linux (32768) and macOS (49152) give to outgoing
connections, so that a broker which is killed and started again does not find its port used by a
client socket. A chosen port is reserved by a UDP socket of the same number for a while: until its
server listens, another process that got the port too would answer its clients. Programs that do
not use this module may still take the port first: the server then tries others.
"""

import os
import random
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from pyconnect_sandbox import processes
from pyconnect_sandbox.errors import PortTaken, ServerExited, ServerNotReady
from pyconnect_sandbox.processes import ProcessIdentity
from pyconnect_sandbox.runtime import keep_archives

READY_POLL_INTERVAL_S = 0.05
COLLISION_RETRIES = 3
_EXCERPT_LINES = 15
_EXCERPT_BYTES = 64 * 1024
# A shell that waits for a line and then becomes the server: no server runs without its tether.
_GATE = ("/bin/sh", "-c", 'read -r _ && exec "$@" < /dev/null', "sh")


class Server(ABC):
    """A server process in a process group and a directory of its own.

    `hold_file` None: the server outlives this process and is stopped by a process that knows its
    identity. Otherwise it is killed when the last holder of that file is gone (see `processes`);
    `start` takes a hold, `stop` gives it back.
    """

    name: str

    def __init__(
        self,
        *,
        directory: Path,
        start_timeout_s: float,
        stop_timeout_s: float,
        hold_file: Path | None,
    ) -> None:
        self.directory = directory
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._hold_file = hold_file
        self._hold: processes.Hold | None = None
        self._tether: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._was_ready = False
        self._seen_bytes: Mapping[Path, int] = {}
        self._identity: ProcessIdentity | None = None

    # For subclasses

    @abstractmethod
    def _prepare(self) -> Sequence[str]:
        """Write the server's files and return its command."""

    @abstractmethod
    def _answers(self, timeout_s: float) -> bool:
        """Return, within about `timeout_s` seconds, whether the server answers a real request."""

    def _environment(self) -> Mapping[str, str]:
        return os.environ

    def _give_up_ports(self) -> bool:
        """Choose other ports after a collision; return False when the user has chosen the ports."""
        return False

    # State

    @property
    def log_path(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def output_path(self) -> Path:
        """The file of the process's stdout and stderr."""
        return self.directory / f"{self.name}.out"

    @property
    def identity(self) -> ProcessIdentity:
        """The started process; raises ServerExited when there is none."""
        if self._identity is None:
            raise ServerExited(f"{self.name} is not running")
        return self._identity

    @property
    def pid(self) -> int:
        """The pid of the started process, which is also the id of its group."""
        return self.identity.pid

    @property
    def is_running(self) -> bool:
        return self._identity is not None and processes.is_running(self._identity)

    def resident_bytes(self) -> int:
        return processes.resident_bytes(self.pid)

    # Operations

    def start(self) -> Self:
        """Start the server and wait until it answers; raise ServerExited or ServerNotReady.

        After a failure or an interrupt no process of it is left.
        """
        if self.is_running:
            return self
        deadline = time.monotonic() + self._start_timeout_s
        try:
            for _ in range(COLLISION_RETRIES):
                self.launch()
                try:
                    self.wait_until_ready(deadline - time.monotonic())
                except ServerExited:
                    if not (
                        ("Address already in use" in self._written()) and self._give_up_ports()
                    ):
                        raise
                else:
                    return self
        except BaseException:
            self.stop()
            raise
        raise ServerExited(
            f"the ports of {self.name} were in use {COLLISION_RETRIES} times",
            hint="free some ports, or choose ports",
        )

    def launch(self) -> None:
        """Start the process without waiting until it answers."""
        self.stop()  # processes that a crashed server left in its group
        self.directory.mkdir(parents=True, exist_ok=True)
        self._was_ready = False
        command = self._prepare()
        if self._hold_file is not None:
            self._hold = processes.Hold(self._hold_file)
        self._seen_bytes = {
            path: path.stat().st_size if path.exists() else 0
            for path in (self.log_path, self.output_path)
        }
        is_tethered = self._hold_file is not None
        with self.output_path.open("ab") as output:
            self._process = subprocess.Popen(
                [*_GATE, *command] if is_tethered else command,
                cwd=self.directory,
                env=self._environment(),
                stdin=subprocess.PIPE if is_tethered else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._identity = processes.identify(self._process.pid)
        if self._hold_file is not None and self._identity is not None:
            self._tether = processes.spawn_tether(self._hold_file, self._identity)
        if self._process.stdin is not None:
            # The process is dead and does not read; `wait_until_ready` reports its end.
            with suppress(BrokenPipeError), self._process.stdin as gate:
                gate.write(b"\n")

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait until a launched server answers.

        Raises ServerExited when it ends instead; ServerNotReady, having stopped it, when it
        does not answer within `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while (remaining_s := deadline - time.monotonic()) > 0:
            if self._process is None or self._process.poll() is not None:
                raise self._exited_early()
            if self._answers(min(remaining_s, 2.0)):
                self._was_ready = True
                return
            time.sleep(READY_POLL_INTERVAL_S)
        excerpt = self._excerpt()
        self.stop()
        raise ServerNotReady(
            f"{self.name} did not answer within {timeout_s:.3g} s{excerpt}",
            hint=f"see {self.log_path}, or allow more with --timeout",
        )

    def stop(self, grace_s: float | None = None) -> bool:
        """End the server: SIGTERM to the group, SIGKILL after the grace; False after SIGKILL.

        `grace_s` None is the `stop_timeout_s` of the server.
        """
        graceful = True
        if self._identity is not None:
            graceful = processes.end_group(
                self._identity, self._stop_timeout_s if grace_s is None else grace_s
            )
            # A server that ended before it answered has loaded too few classes.
            if graceful and self._was_ready:
                keep_archives(self.directory)
        self._forget()
        return graceful

    def disown(self) -> None:
        """Release the hold and forget the process without ending it.

        Without a hold file the process goes on; with one it ends when its last holder is gone, at
        once if that was this server.
        """
        for process in (self._process, self._tether):
            if process is not None:
                # No caller waits for the process any more; a Popen without a return code warns when
                # collected.
                process.returncode = process.returncode or 0
        if self._hold is not None:
            self._hold.release()
        self._process = self._tether = self._hold = self._identity = None

    def detach(self) -> None:
        """Return the plugin properties of a worker; `libs`: Kafka's jars for Java plugins."""
        self._end_tether()
        self.disown()

    def terminate(self) -> None:
        """Send SIGTERM to the group, without waiting."""
        processes.signal_group(self.identity, signal.SIGTERM)

    def kill(self) -> None:
        """End the server as a crash does: SIGKILL to the whole group."""
        processes.end_group_now(self.identity)
        self._forget()

    def suspend(self) -> None:
        """Freeze the server: it keeps its connections and answers nothing."""
        processes.signal_group(self.identity, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen server go on."""
        processes.signal_group(self.identity, signal.SIGCONT)

    def restart(self) -> Self:
        """Stop the server if it runs, and start it on the same ports and data."""
        self.stop()
        return self.start()

    def wait_until_exited(self, timeout_s: float) -> int:
        """Wait for the process to end by itself and return its exit code.

        Raises ServerNotReady if the process is alive after `timeout_s` seconds.
        """
        if self._process is None:
            raise ServerExited(f"{self.name} is not running")
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as expired:
            raise ServerNotReady(f"{self.name} still runs after {timeout_s:.3g} s") from expired

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Internals

    def _exited_early(self) -> ServerExited:
        exit_code = None if self._process is None else self._process.returncode
        self.stop()
        return ServerExited(
            f"{self.name} ended with exit code {exit_code} before it answered{self._excerpt()}",
            hint=f"see {self.log_path} and {self.output_path}",
        )

    def _forget(self) -> None:
        if self._process is not None:
            self._process.wait()
        self._end_tether()
        if self._hold is not None:
            self._hold.release()
        self._process = self._hold = self._identity = None

    def _end_tether(self) -> None:
        if self._tether is not None:
            self._tether.kill()
            self._tether.wait()
            self._tether = None

    def _written(self) -> str:
        """Return the end of the output that the process has written since it was launched."""
        texts = []
        for path in dict.fromkeys((self.output_path, self.log_path)):
            if path.exists():
                with path.open("rb") as stream:
                    size = path.stat().st_size
                    stream.seek(max(self._seen_bytes.get(path, 0), size - _EXCERPT_BYTES))
                    texts.append(stream.read().decode(errors="replace"))
        return "".join(texts)

    def _excerpt(self) -> str:
        lines = self._written().splitlines()
        return "".join(f"\n  {line}" for line in lines[-_EXCERPT_LINES:])


LOOPBACK = "127.0.0.1"
FIRST_PORT, LAST_PORT = 20000, 32700
ATTEMPTS = 200
RESERVED = 64
_reserved: deque[int] = deque()
"""Sockets of the latest ports; servers of earlier ports listen by now, or do not need them."""


def is_free(port: int) -> bool:
    """Return whether a listener could be opened on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # The JVM does the same: a port whose last connections are in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def accepts_connections(port: int) -> bool:
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
