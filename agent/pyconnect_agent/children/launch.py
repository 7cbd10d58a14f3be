"""Start child processes through a fork server (`fork_server.py`), own ones and shared ones.

The host is named by a string, since `children` does not import `tasks`.

Several tasks may share a process, each in a thread (agent.isolation; Kafka: a Java worker, where
all tasks are threads of one process). The rest of the worker process treats a task of such a
process like any other child: it has a pipe and a fate of its own. A thread cannot be killed, so a
signal to one task goes to the whole process, and all tasks end with the process.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import logging
import os
import resource
import selectors
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import Signals

from pyconnect_agent.channel import TASK_FOLLOWS, encode
from pyconnect_agent.channel.requests import Job, RunTaskJob, ShareProcessJob
from pyconnect_agent.children import fork_server
from pyconnect_agent.core.config.agent_keys import OF_CONNECTOR, OWN_PROCESS, AgentKeys
from pyconnect_agent.core.plugin_catalog import (
    Catalog,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)

LOG = logging.getLogger(__name__)

DEFAULT_HOST = "pyconnect_agent.tasks.host:run"
DEFAULT_PRELOAD = ("pyconnect_agent.tasks.preload",)
SHARED = (
    "pyconnect_agent.core.clients.configs",
    "pyconnect_agent.core.offsets.source",
    "pyconnect_agent.kafka.offset_image",
    "pyconnect_agent.plugins.scan",
    "pyconnect_agent.plugins.loading",
    "pyconnect_agent.channel",
)
"""Modules of worker and children, imported before a fork so that they are in memory once."""

DESCRIPTORS_WANTED = 65_536
"""Each child takes three descriptors in the worker and two in the fork server."""
ANSWER_S = 60.0
"""Time limit for the first answer of a fork server, which has to load its modules first."""
_NO_PROCESS = (
    "The system allows no further process: see pids.max of the worker's cgroup (TasksMax of its"
    " service), RLIMIT_NPROC of its user (ulimit -u) and kernel.pid_max"
)
LATER_ANSWER_S = 10.0
"""Time limit for further answers, which take milliseconds."""


class Launched:
    """A started process; `connection` is the worker process's end of its pipe.

    `Launcher.launch` makes it; after that one thread uses it, until `close`.
    """

    def __init__(self, pid: int, connection: socket.socket, fate: int) -> None:
        self.pid = pid
        self.connection = connection
        self._fate = fate
        self._exit_code: int | None = None
        self.last_words = ""
        """The last words of the process, "" without any; complete with the exit code."""
        self._ended = False
        os.set_blocking(fate, False)
        self.watched: list[int] = []
        """Descriptors that also become readable at the process's end, if its fork server is
        stopped.
        """
        # The process may have ended and be reported, or the system is not Linux.
        with contextlib.suppress(OSError, AttributeError):
            self.watched.append(os.pidfd_open(pid))

    @property
    def sentinel(self) -> int:
        """The descriptor that becomes readable when the fork server reports the end."""
        return self._fate

    @property
    def failure(self) -> str:
        """The way in which the process ended, "" if its exit code says it."""
        return ""

    def exit_code(self) -> int | None:
        """Return the exit code, -n after signal n; None while running, or if it is not known."""
        if not self._ended:
            with contextlib.suppress(BlockingIOError):
                self._exit_code = fork_server.read_number(self._fate)
                self._ended = True
                if self._exit_code is not None:
                    self.last_words = fork_server.read_last_words(self._fate)
                else:
                    # The fork server was killed, so the child's end would not be reported: kill the
                    # child.
                    self._kill(Signals.SIGKILL)
        return self._exit_code

    def end_without_report(self) -> None:
        """Treat the process as ended: it is gone, and its fork server does not report the end."""
        if self.exit_code() is None and not self._ended:
            self._ended = True
            # The process is still in /proc, as its parent has not reaped it.
            with contextlib.suppress(OSError, ValueError, IndexError):
                status = int(Path(f"/proc/{self.pid}/stat").read_bytes().split()[-1])
                self._exit_code = os.waitstatus_to_exitcode(status)

    def signal(self, number: Signals) -> None:
        """Send a signal; do nothing if the process has ended."""
        self.exit_code()
        if not self._ended:
            self._kill(number)

    def close(self) -> None:
        """Release an ended process; the user of its connection closes that."""
        self._ended = True
        os.close(self._fate)
        for descriptor in self.watched:
            os.close(descriptor)

    def _kill(self, number: Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


class Launcher:
    """Starts processes that run `host` (`module:function`), with `preload` imported before.

    The fork server is a fork of this process if `fork` was called; otherwise, and after the end of
    that fork, a new program. `launch` blocks for some milliseconds; call it from one thread at a
    time.
    """

    def __init__(
        self, *, host: str = DEFAULT_HOST, preload: Sequence[str] = DEFAULT_PRELOAD
    ) -> None:
        self._host = host
        self._preload = tuple(preload)
        self._server: _ForkServer | None = None
        self._stuck: list[_ForkServer] = []

    def fork(self) -> None:
        """Fork the server off this process to share its memory.

        Call it before any thread starts.
        """
        # A JVM raises the limit too: many systems allow 1,024.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        unlimited = resource.RLIM_INFINITY
        wanted = DESCRIPTORS_WANTED if hard == unlimited else min(DESCRIPTORS_WANTED, hard)
        if soft != unlimited and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        for module in SHARED:
            importlib.import_module(module)
        fork_server.freeze()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            fork_server.serve(theirs, self._host, self._preload)
        theirs.close()
        self._server = _ForkServer(ours, pid)

    def launch(self) -> Launched:
        """Start a process.

        Raises OSError (also TimeoutError), and EOFError if the fork server ends meanwhile.
        """
        server = self._started()
        try:
            return server.launch()
        except EOFError as exc:
            LOG.warning(
                "the fork server has ended; another one is started", extra={"reason": str(exc)}
            )
            server.close()
        except TimeoutError as exc:
            LOG.error(
                "the fork server does not answer; another one is started",
                extra={"reason": str(exc), "pid": server.pid},
            )
            # Children of the old server live on; if it ended, they would be killed.
            self._stuck.append(server)
        self._server = None
        return self._started().launch()

    def close(self) -> None:
        """End the fork servers; children continue."""
        servers = self._stuck if self._server is None else [*self._stuck, self._server]
        self._server, self._stuck = None, []
        for server in servers:
            server.close()

    def _started(self) -> _ForkServer:
        if self._server is None:
            ours, theirs = socket.socketpair()
            with theirs:
                descriptor = theirs.fileno()
                arguments = (str(descriptor), json.dumps(sys.path), self._host, *self._preload)
                os.set_inheritable(descriptor, True)
                pid = os.posix_spawn(
                    sys.executable,
                    [sys.executable, "-m", fork_server.__name__, *arguments],
                    os.environ,
                )
            self._server = _ForkServer(ours, pid)
        return self._server


class _ForkServer:
    """The worker process's side of a fork server."""

    def __init__(self, requests: socket.socket, pid: int) -> None:
        self._requests = requests
        self.pid = pid
        self._has_answered = False

    def launch(self) -> Launched:
        ours, theirs = socket.socketpair()
        fate, told = os.pipe()
        try:
            try:
                socket.send_fds(self._requests, [fork_server.REQUEST], [theirs.fileno(), told])
            except ConnectionError:
                raise EOFError(self._end()) from None
            finally:
                theirs.close()
                os.close(told)
            timeout_s = LATER_ANSWER_S if self._has_answered else ANSWER_S
            with selectors.DefaultSelector() as selector:
                selector.register(fate, selectors.EVENT_READ)
                if not selector.select(timeout_s):
                    # A child of a request that the server serves later has no worker process and
                    # ends.
                    raise TimeoutError(f"The fork server did not answer within {timeout_s:g} s")
            pid = fork_server.read_number(fate)
            self._has_answered = True
            if pid is None:
                raise EOFError(self._end())
            if pid < 0:
                raise OSError(-pid, _NO_PROCESS if pid == -errno.EAGAIN else os.strerror(-pid))
        except BaseException:
            ours.close()
            os.close(fate)
            raise
        return Launched(pid, ours, fate)

    def _end(self) -> str:
        """Return an error about the server's end, with the reason if the server sent one."""
        text = bytearray()
        with contextlib.suppress(OSError):
            while part := self._requests.recv(1 << 16, socket.MSG_DONTWAIT):
                text += part
        why = text.decode(errors="replace").strip() or "standard error may say why"
        return f"The fork server has ended: {why}"

    def close(self) -> None:
        self._requests.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, Signals.SIGKILL)
        os.waitpid(self.pid, 0)


class SharedProcesses:
    """Starts a process for the first task of a group, and ends it after the last one.

    One thread at a time may call `launch`.
    """

    def __init__(self, launcher: Launcher, keys: AgentKeys, catalog: Catalog) -> None:
        self._launcher = launcher
        self._keys = keys
        self._catalog = catalog
        self._processes: dict[tuple[str, ...], _Shared] = {}

    def launch(self, name: str, job: Job) -> Launched:
        """Start a job, in a process of its own or in a shared one; raises as `Launcher.launch`."""
        group = isinstance(job, RunTaskJob) and self._group(job.connector_config)
        if not isinstance(job, RunTaskJob) or not group:
            return self._launcher.launch()
        if group in self._processes:
            with contextlib.suppress(OSError):
                return self._processes[group].admit(name)
        process = self._processes[group] = _Shared(self._launcher.launch())
        process.launched.connection.sendall(encode(ShareProcessJob(worker=job.worker)))
        return process.admit(name)

    def _group(self, config: Mapping[str, str | None]) -> tuple[str, ...]:
        """Return the key of the process that a task shares; empty for a process of its own."""
        keys = self._keys.of_connector(config)
        name, version = config.get("connector.class"), config.get("connector.plugin.version")
        is_java, location = False, ""
        # A Python class may be in no list of plugins.
        with contextlib.suppress(PluginNotFoundError, PluginVersionNotFoundError):
            plugin = self._catalog.connector(name or "", version_range=version)
            is_java, location = plugin.is_java, plugin.search_path or ""
        isolation = keys.isolation_of(is_java=is_java)
        if isolation == OWN_PROCESS or keys.limits.any:
            return ()
        if isolation == OF_CONNECTOR:
            return isolation, config.get("name") or ""
        return isolation, "java" if is_java else "python", location


class _Shared:
    """A shared process and the number of its tasks; any thread may use it."""

    def __init__(self, launched: Launched) -> None:
        self.launched = launched
        self.ended_with = ""
        """The task whose end is also that of the others; after it, no other task is admitted."""
        self._lock = threading.Lock()
        self._tasks = 0
        launched.connection.settimeout(LATER_ANSWER_S)

    def admit(self, name: str) -> LaunchedTask:
        """Give the process one more task. Raises OSError if it ends or does not read."""
        with self._lock:
            if self.ended_with:
                raise ChildProcessError("The process ends.")
            self._tasks += 1
        ours, theirs = socket.socketpair()
        fate, told = os.pipe()
        try:
            socket.send_fds(self.launched.connection, [TASK_FOLLOWS], [theirs.fileno(), told])
        except OSError:
            ours.close()
            os.close(fate)
            self.leave()
            raise
        finally:
            theirs.close()
            os.close(told)
        return LaunchedTask(self, name, ours, fate)

    def leave(self) -> None:
        """Kill the process after its last task, as there is nothing left to stop in order."""
        with self._lock:
            self._tasks -= 1
            if self._tasks:
                return
            self.ended_with = self.ended_with or "the last task"
            self.launched.signal(Signals.SIGKILL)
            self.launched.connection.close()
            self.launched.close()


class LaunchedTask(Launched):
    """A task of a shared process; the task's thread reports its fate."""

    def __init__(self, shared: _Shared, name: str, connection: socket.socket, fate: int) -> None:
        super().__init__(shared.launched.pid, connection, fate)
        self._shared = shared
        self._name = name
        # An event loop can wait for a descriptor only once.
        self.watched.append(os.dup(shared.launched.sentinel))

    @property
    def failure(self) -> str:
        other = self._shared.ended_with
        if other in ("", self._name):
            return ""
        return f"was ended with {other}, which shared its process (agent.isolation)"

    def exit_code(self) -> int | None:
        """Return the exit code; that of the shared process if the task's thread has not ended."""
        if super().exit_code() is None:
            self._exit_code = self._shared.launched.exit_code()
            self.last_words = self._shared.launched.last_words
        return self._exit_code

    def signal(self, number: Signals) -> None:
        """Send a signal to the shared process; note the task if the signal ends the others too."""
        if number is Signals.SIGKILL and not self._shared.ended_with:
            self._shared.ended_with = self._name
        super().signal(number)

    def close(self) -> None:
        super().close()
        self._shared.leave()
