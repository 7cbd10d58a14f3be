"""A Java process with one end of a socket pair.

Layer: java. The socket is the process's descriptor 0, so that output of Java code or the virtual
machine does not get between the frames; this output arrives as lines. The process ends with this
one: it halts at the end of the socket, and if it cannot (it is stopped, or out of memory) the
kernel kills it.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import logging
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pyconnect_agent import long_lived
from pyconnect_agent.java.launch import JavaInstallation, JavaOptions
from pyconnect_api import ConnectException

LOG = logging.getLogger(__name__)
OUTPUT = logging.getLogger("java.output")

MAIN_CLASS = "io.pyconnect.host.Host"
EXIT_OUT_OF_MEMORY = 3
SOCKET_BUFFER_BYTES = 1 << 20
LINE_CHARACTERS = 8_192
LAST_LINES = 20

PROVEN_OPTIONS = (
    # At another address in each process, all pages of an archive would be copied and changed.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:ArchiveRelocationMode=0",
    "-Xlog:cds*=off",
    # Memory that the compiler has used and freed would remain with the process.
    "-XX:TrimNativeHeapInterval=2000",
)
"""Used with an archive only: a Java that has written one knows them, an older one may not."""

_KILLED = "The system may have run out of memory (dmesg), or a user killed the process."
_NO_VM = "Error occurred during initialization of VM"
"""What Java prints before the reason."""
_REFUSED = "Error: Could not create the Java Virtual Machine"
"""What it prints behind the option that it refuses."""
_PR_SET_PDEATHSIG = 1


class JavaProcess:
    """A running process; `socket` carries the frames."""

    def __init__(
        self, installation: JavaInstallation, options: JavaOptions, properties: tuple[str, ...] = ()
    ) -> None:
        """Start it. Raises ConnectException if the program does not exist.

        `properties` are further options.
        """
        self.options = options
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self.socket, theirs = socket.socketpair()
        for end in (self.socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        command = [
            installation.java,
            *(properties or _archived(installation)),
            *options.arguments(),
            "-cp",
            installation.class_path,
            MAIN_CLASS,
        ]
        try:
            with theirs:
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    command,
                    stdin=theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    preexec_fn=_die_with_parent(),  # noqa: PLW1509  prctl and sigaction only
                )
        except OSError as exc:
            self.socket.close()
            raise ConnectException(f"Java could not be started: {exc}") from exc
        context = contextvars.copy_context()
        self._reader = long_lived.Thread("java-output", partial(context.run, self._read_output))
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self.socket.close()

    def wait(self, timeout_s: float) -> bool:
        """Return whether it has ended within the time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def explain_end(self) -> str:
        """Wait for the end of the process and return its reason."""
        code = self._process.wait()
        self._reader.join()
        reason = _refusal([*self._last_lines]) or _reason(code, self.options)
        printed = "".join(f"\n    {line}" for line in self._last_lines)
        return f"{reason}\nIts last output:{printed}" if printed else reason

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            while line := lines.readline(LINE_CHARACTERS):
                text = line.decode(errors="backslashreplace").rstrip("\n")
                self._last_lines.append(text)
                OUTPUT.info("%s", text)


def _archived(installation: JavaInstallation) -> tuple[str, ...]:
    """Return the options to map an archive of classes; Java ignores one that does not fit."""
    if not installation.archive or not Path(installation.archive).exists():
        return ()
    return (f"-XX:SharedArchiveFile={installation.archive}", *PROVEN_OPTIONS)


def _reason(code: int, options: JavaOptions) -> str:
    if code == EXIT_OUT_OF_MEMORY:
        return (
            f"The Java process ran out of memory: its heap is limited to {options.heap} "
            f"(-Xmx{options.heap}). Set agent.java.heap in the connector's configuration, or let "
            "it hold fewer records at once."
        )
    if code < 0:
        killed = f"The Java process was killed by {signal.Signals(-code).name}."
        return f"{killed} {_KILLED}" if code == -signal.SIGKILL else killed
    if code == 128 + signal.SIGABRT:
        return "The Java process crashed; its output says where the report is."
    return (
        f"The Java process ended by itself with exit code {code}: "
        "code of the plugin has called System.exit or Runtime.halt."
    )


def _refusal(printed: Sequence[str]) -> str | None:
    """Return why Java did not start, None if it did."""
    lines = [line for line in printed if "warning" not in line]
    if _NO_VM in lines:
        fault = lines[lines.index(_NO_VM) + 1 :]
    elif any(line.startswith(_REFUSED) for line in lines):
        fault = lines
    else:
        return None
    return (
        f"Java did not start: {fault[0] if fault else _NO_VM}. Its heap and options are set by "
        "agent.java.heap and agent.java.options."
    )


def _die_with_parent() -> Callable[[], None]:
    """Return the function that runs in the new process before its program.

    It ignores signals that a service manager sends to all processes of the worker.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    return prepare
