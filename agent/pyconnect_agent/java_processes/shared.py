"""A Java process that connectors and tasks of several Python processes share.

The first process that needs it starts it. Each process has a connection of its own, by TCP with a
token (`Shared.java`), and the Java process ends some time after the last one. It has no parent that
it would end with: its sessions end with the worker's other processes.
"""

import contextlib
import fcntl
import hashlib
import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyconnect_agent.java_processes.launch import TEMPORARY_PREFIX, JavaInstallation, JavaOptions
from pyconnect_agent.java_processes.process import (
    EXIT_OUT_OF_MEMORY,
    EXIT_STUCK,
    LAST_LINES,
    preparation,
    reason_of,
    spawn,
    without_jmx,
)
from pyconnect_agent.process import long_lived
from pyconnect_api import ConnectException

START_S = 60.0
"""The time for the start of a process, and for a start by another process that is under way."""
ANSWER_S = 10.0
LOOK_S = 0.02
_HANG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)


class SharedJavaProcess:
    """A connection to the process of a group; `socket` carries the frames, as in `JavaProcess`.

    `group`: identifies the sharing processes, together with the Java, the jars and the options.
    """

    def __init__(self, installation: JavaInstallation, options: JavaOptions, group: str) -> None:
        """Connect; start the process if there is none. Raises ConnectException."""
        self.options = options = without_jmx(options)
        told = repr((group, installation, options.arguments(), sorted(options.environment.items())))
        self._installation = installation
        self._registry, self._descriptor = _registry(options.temporary_base())
        self._place = self._registry / hashlib.sha256(told.encode()).hexdigest()[:16]
        self._address = self._place / "address"
        self._output = self._place / "output"
        try:
            self._place.mkdir(mode=0o700, exist_ok=True)
            with _locked(self._place / "lock"):
                found = self._connected()
                if found is None:
                    self._address.unlink(missing_ok=True)
                    found = self._start()
            self.socket, self.pid = found
        except BaseException:
            os.close(self._descriptor)
            raise

    def kill(self) -> None:
        """End this connection; the Java process stops the work begun on it, or ends itself."""
        with contextlib.suppress(OSError):
            self.socket.close()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def wait(self, timeout_s: float) -> bool:
        """Return whether the process has ended the connection within the time."""
        poll = select.poll()
        try:
            poll.register(self.socket, _HANG_UP)
        except ValueError:  # closed
            return True
        return bool(poll.poll(timeout_s * 1000))

    def explain_end(self) -> str:
        """Return the reason why the process, or its connection, has ended."""
        deadline = time.monotonic() + 1
        while _is_alive(self.pid) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        if _is_alive(self.pid):
            return (
                f"The Java process (pid {self.pid}), which others share, has ended the connection"
                " because a thread of its host failed; the log has the failure."
            )
        lines = self._last_lines()
        shared = "It was shared (agent.java.isolation); the others have ended too."
        if stuck := next((line for line in lines if "did not end within" in line), ""):
            return f"{reason_of(EXIT_STUCK, self.options, lines)} {stuck} {shared}"
        if any("OutOfMemoryError" in line for line in lines):
            return f"{reason_of(EXIT_OUT_OF_MEMORY, self.options, lines)} {shared}"
        printed = "".join(f"\n    {line}" for line in lines)
        return f"The Java process (pid {self.pid}) was killed or ended by itself. {shared}{printed}"

    def _start(self) -> tuple[socket.socket, int]:
        descriptor = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            process = spawn(
                self._installation,
                self.options,
                self._place,
                str(self._address),
                str(os.getppid()),
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                pass_fds=(self._descriptor,),
                preexec_fn=preparation(dies_with_parent=False),
            )
        finally:
            os.close(descriptor)
        # Waited for, as it would remain a zombie while this process lives.
        long_lived.Thread("java-end", process.wait).start()
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if found := self._connected():
                return found
            code = process.poll()
            if code is not None:
                raise ConnectException(reason_of(code, self.options, self._last_lines()))
            time.sleep(LOOK_S)
        process.kill()
        raise ConnectException(f"Java did not start within {START_S:g} s.")

    def _connected(self) -> tuple[socket.socket, int] | None:
        """Return a connection that the process has accepted; None if there is no such process."""
        try:
            port, token, pid = self._address.read_text().split()
            connection = socket.create_connection(("127.0.0.1", int(port)), ANSWER_S)
        except (OSError, ValueError):
            return None
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(bytes.fromhex(token))
            if connection.recv(1) == b"+":
                connection.settimeout(None)
                return connection, int(pid)
        except OSError:
            pass
        connection.close()
        return None

    def _last_lines(self) -> tuple[str, ...]:
        try:
            text = self._output.read_text(errors="backslashreplace")
        except OSError:
            return ()
        return tuple(text.splitlines()[-LAST_LINES:])


def _registry(base: Path) -> tuple[Path, int]:
    """Return the directory of this worker's shared processes, and a descriptor that locks it.

    The worker's processes find the directory by the id of their common parent. Without a lock it is
    a leftover.
    """
    path = base / f"{TEMPORARY_PREFIX}shared-{os.geteuid()}-{os.getppid()}"
    while True:
        path.mkdir(mode=0o700, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            os.close(descriptor)
            raise ConnectException(f"{path} can be read or is owned by another user: remove it")
        # Waits while another process checks whether the directory is a leftover.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if path.exists() and path.stat().st_ino == status.st_ino:
            return path, descriptor
        os.close(descriptor)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock. Raises ConnectException when another process holds it too long."""
    with path.open("w") as file:
        deadline = time.monotonic() + 2 * START_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConnectException(
                        "Another process of the worker has tried to start Java for too long."
                    ) from None
                time.sleep(LOOK_S)
            else:
                break
        yield


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
