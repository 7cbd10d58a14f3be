"""A Java process with one end of a socket pair.

The socket is the process's descriptor 0, so that output of Java code or the virtual machine does
not get between the frames; this output arrives as lines. The process ends with this one: it halts
at the end of the socket, and if it cannot (it is stopped, or out of memory) the kernel kills it.
One thread reads the output, another waits for the end of the process.

Traces and answers have the reason why a process has ended. The virtual machine prints which memory
was exhausted, and which of its options it refuses; its exit codes alone do not show that.
"""

import contextlib
import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from signal import Signals
from typing import Any

from pyconnect_agent.java_processes.launch import (
    TEMPORARY,
    JavaInstallation,
    JavaOptions,
    TemporaryDirectory,
    is_property,
    remove_leftovers,
)
from pyconnect_agent.process import long_lived
from pyconnect_api import ConnectException

EXIT_OUT_OF_MEMORY = 3
EXIT_HOST_FAILED = 70
"""The exit code with which the host ends the process when one of its threads fails."""
EXIT_STUCK = 76
"""The exit code of a shared process in which work for an ended process does not stop."""
_EXIT_REFUSED = 1
_EXITS_AT_A_PORT = (_EXIT_REFUSED, 2, -Signals.SIGABRT)

_OUT_OF_MEMORY = "Terminating due to java.lang.OutOfMemoryError: "
_NO_VM = "Error occurred during initialization of VM"
"""The text that Java prints before the reason."""
_REFUSED = "Error: Could not create the Java Virtual Machine"
"""The text that Java prints after the option that it refuses."""
_HEAP = ("Java heap space", "GC overhead limit exceeded")
_OTHER_MEMORY = {
    "Metaspace": (
        "the memory for its classes is limited by -XX:MaxMetaspaceSize. "
        "Raise it in agent.java.options of the worker's file."
    ),
    "Compressed class space": (
        "the memory for its classes is limited by -XX:CompressedClassSpaceSize. "
        "Raise it in agent.java.options of the worker's file."
    ),
    "Requested array size exceeds VM limit": (
        "its code asked for an array that is larger than Java allows (2 GiB of bytes)."
    ),
}


def reason_of(code: int, options: JavaOptions, lines: Sequence[str]) -> str:
    """Return the reason for an exit code, -n after signal n. `lines`: the last of its output."""
    taken = next((line.strip() for line in lines if "Address already in use" in line), "")
    if taken and code in _EXITS_AT_A_PORT:
        return (
            f"The Java process ended because a port was taken: {taken}. A port that is opened by an"
            " option of agent.java.options, or by a variable of agent.java.environment, is the same"
            " in every Java process of the worker."
        )
    lacks = (line.partition(_OUT_OF_MEMORY)[2] for line in reversed(lines))
    if code == EXIT_OUT_OF_MEMORY and (lack := next(filter(None, lacks), "")):
        limit = _OTHER_MEMORY.get(lack, "see agent.java.options of the worker's file.")
        if lack in _HEAP:
            limit = f"its heap is limited to {options.heap} (-Xmx{options.heap})."
            if options.heap_key:
                limit += (
                    f" Set {options.heap_key} in the connector's configuration, or let it hold "
                    "fewer records at once."
                )
        return f"The Java process ran out of memory ({lack}): {limit}"
    if code == _EXIT_REFUSED and (fault := _refusal(lines)):
        return (
            f"Java did not start: {fault}. Its heap and options are set by agent.java.heap and "
            "agent.java.options."
        )
    if code == EXIT_HOST_FAILED:
        return (
            "The Java process ended because a thread of its host failed, as it does when code of "
            "the plugin closes descriptor 0, the connection to the worker."
        )
    if code == EXIT_STUCK:
        return (
            "The Java process ended itself: a task or connector in it was killed or gave up its"
            " time, and its code went on."
        )
    if code == -Signals.SIGABRT:
        return "The Java process crashed (SIGABRT); its output names the file of the report."
    if code == -Signals.SIGKILL:
        return (
            "The Java process was killed by SIGKILL: the system may have run out of memory "
            "(dmesg), or a user killed the process."
        )
    if code < 0:
        return f"The Java process was killed by {Signals(-code).name}."
    return (
        f"The Java process ended by itself with exit code {code}: "
        "code of the plugin has called System.exit or Runtime.halt."
    )


def _refusal(printed: Sequence[str]) -> str:
    """Return Java's reason for not starting; "" if the output has none."""
    lines = [line for line in printed if "warning" not in line]
    if _NO_VM in lines:
        return next(iter(lines[lines.index(_NO_VM) + 1 :]), _NO_VM)
    return lines[0] if any(line.startswith(_REFUSED) for line in lines) else ""


LOG = logging.getLogger(__name__)
OUTPUT = logging.getLogger("java.output")

MAIN_CLASS = "io.pyconnect.host.Host"
SOCKET_BUFFER_BYTES = 1 << 20
LINE_BYTES = 8_192
LAST_LINES = 20
OUTPUT_WAIT_S = 1.0
"""How long to wait for the end of the output, which a program that a plugin has started may
hold.
"""

PROVEN_OPTIONS = (
    # At a different address in each process, all pages of an archive would be copied and changed.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:ArchiveRelocationMode=0",
    "-Xlog:cds*=off",
    # Otherwise the process would keep memory that the compiler has used and freed.
    "-XX:TrimNativeHeapInterval=2000",
)
"""Options for use with an archive only: a Java that has written one knows them, an older one
may not.
"""

_PR_SET_PDEATHSIG = 1
_ESCAPES = str.maketrans(
    {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}
)
"""The escapes in Java's files of arguments."""


class JavaProcess:
    """A running process; `socket` carries the frames."""

    def __init__(
        self,
        installation: JavaInstallation,
        options: JavaOptions,
        archive_options: tuple[str, ...] = (),
    ) -> None:
        """Start the process. Raises ConnectException if the program does not exist.

        `archive_options` replace those that map the archive of classes.
        """
        self.options = options = without_jmx(options)
        base = options.temporary_base()
        try:
            remove_leftovers(base)
            self._temporary = TemporaryDirectory(base)
        except OSError as exc:
            raise ConnectException(f"Java's directory for temporary files: {exc}") from exc
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self.socket, theirs = socket.socketpair()
        for end in (self.socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        try:
            with theirs:
                self._process = spawn(
                    installation,
                    options,
                    self._temporary.path,
                    archive_options=archive_options,
                    stdin=theirs.fileno(),
                    stdout=subprocess.PIPE,
                    pass_fds=(self._temporary.descriptor,),
                    preexec_fn=preparation(dies_with_parent=True),
                )
        except ConnectException:
            self.socket.close()
            self._temporary.remove()
            raise
        self._reader = long_lived.Thread("java-output", self._read_output)
        self._reader.start()
        long_lived.Thread("java-end", self._await_end).start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def kill(self) -> None:
        """End the process at once, and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self.socket.close()
        self._temporary.remove()

    def wait(self, timeout_s: float) -> bool:
        """Return whether the process has ended within the time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def explain_end(self) -> str:
        """Wait for the end of the process and return its reason."""
        code = self._process.wait()
        self._reader.join(OUTPUT_WAIT_S)
        lines = tuple(self._last_lines)
        reason = reason_of(code, self.options, lines)
        printed = "".join(f"\n    {line}" for line in lines)
        return f"{reason}\nIts last output:{printed}" if printed else reason

    def _await_end(self) -> None:
        self._process.wait()
        # A program that a plugin has started may have inherited the other end.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RD)
        self._temporary.remove()

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            while line := lines.readline(LINE_BYTES):
                text = line.decode(errors="backslashreplace").rstrip("\n")
                self._last_lines.append(text)
                OUTPUT.info("%s", text)


def without_jmx(options: JavaOptions) -> JavaOptions:
    """Return the options without those of JMX's ports; log those that are left out."""
    options, dropped = options.without_jmx()
    if dropped:
        LOG.warning(
            "options of JMX are left out, as every Java process would open the same port; the"
            " admin interface serves the MBeans of tasks with the metrics",
            extra={"options": " ".join(dropped)},
        )
    return options


def spawn(
    installation: JavaInstallation,
    options: JavaOptions,
    temporary: Path,
    *arguments: str,
    archive_options: tuple[str, ...] = (),
    pass_fds: tuple[int, ...] = (),
    **how: Any,
) -> subprocess.Popen[bytes]:
    """Start the host; `how`: as for Popen. Raises ConnectException if the Java does not exist."""
    archive = installation.archive
    if not archive_options and archive and Path(archive).exists():
        # Java ignores an archive that does not fit.
        archive_options = (f"-XX:SharedArchiveFile={archive}", *PROVEN_OPTIONS)
    command = [installation.java, *archive_options]
    main = ["-cp", installation.class_path, MAIN_CLASS, *arguments]
    own = f"{TEMPORARY}{temporary}"
    try:
        with _hidden((*options.arguments(), own)) as (words, files):
            return subprocess.Popen(
                [*command, *words, *main],
                stderr=subprocess.STDOUT,
                env={**os.environ, **options.environment},
                pass_fds=(*files, *pass_fds),
                **how,
            )
    except OSError as exc:
        raise ConnectException(f"Java could not be started: {exc}") from exc


@contextlib.contextmanager
def _hidden(arguments: Sequence[str]) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Move properties to a file of arguments: all users can read a command line.

    Yields the arguments and the descriptors that they need. On systems without files in memory,
    properties stay on the command line.
    """
    if not hasattr(os, "memfd_create"):
        yield list(arguments), ()
        return
    properties = [each.translate(_ESCAPES) for each in arguments if is_property(each)]
    with os.fdopen(os.memfd_create("java-properties"), "wb") as file:
        file.writelines(os.fsencode(f'"{each}"\n') for each in properties)
        file.flush()
        others = [each for each in arguments if not is_property(each)]
        yield [f"@/proc/self/fd/{file.fileno()}", *others], (file.fileno(),)


def preparation(*, dies_with_parent: bool) -> Callable[[], None]:
    """Return the function that runs in the new process before its program.

    The function ignores signals that a service manager sends to all processes of the worker. With
    `dies_with_parent`, Linux kills the process when the thread that has started it ends.
    """
    libc = ctypes.CDLL(None) if dies_with_parent and sys.platform == "linux" else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    return prepare
