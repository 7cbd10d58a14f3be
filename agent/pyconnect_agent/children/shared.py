"""Processes that several tasks share, each in a thread (agent.isolation).

Kafka: a Java worker, where all tasks are threads of one process. For the rest of the worker process
a task of such a process is a child like any other: it has a pipe and a fate of its own. A thread
cannot be killed, so a signal to one task is for the whole process, and the end of the process is
the end of all.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Mapping
from signal import Signals

from pyconnect_agent.channel import TASK_FOLLOWS, Job, RunTaskJob, ShareProcessJob, encode
from pyconnect_agent.children.launch import LATER_ANSWER_S, Launched, Launcher
from pyconnect_agent.core.config.agent_keys import OF_CONNECTOR, OWN_PROCESS, AgentKeys
from pyconnect_agent.core.plugin_catalog import (
    Catalog,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)


class SharedProcesses:
    """Starts a process for the first task of a group, and ends it after the last one.

    `launch` is for one thread at a time.
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
        """Return what a task's process is known by; nothing for one of its own."""
        keys = self._keys.of_connector(config)
        name, version = config.get("connector.class"), config.get("connector.plugin.version")
        is_java, location = False, ""
        # A Python class needs no list.
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
    """One process and the number of its tasks; for any thread."""

    def __init__(self, launched: Launched) -> None:
        self.launched = launched
        self.ended_with = ""
        """The task that was not ended without the others; no other is admitted then."""
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
        """Kill the process after its last task: nothing in it is left to be done in order."""
        with self._lock:
            self._tasks -= 1
            if self._tasks:
                return
            self.ended_with = self.ended_with or "the last task"
            self.launched.signal(Signals.SIGKILL)
            self.launched.connection.close()
            self.launched.close()


class LaunchedTask(Launched):
    """A task of a shared process; its fate is what the task's thread reports."""

    def __init__(self, shared: _Shared, name: str, connection: socket.socket, fate: int) -> None:
        super().__init__(shared.launched.pid, connection, fate)
        self._shared = shared
        self._name = name
        # A descriptor can be waited for once in an event loop.
        self.watched.append(os.dup(shared.launched.sentinel))

    @property
    def failure(self) -> str:
        other = self._shared.ended_with
        if other in ("", self._name):
            return ""
        return f"was ended with {other}, which shared its process (agent.isolation)"

    def exit_code(self) -> int | None:
        """As of any process; that of the shared process if the task's thread has not ended."""
        if super().exit_code() is None:
            self._exit_code = self._shared.launched.exit_code()
            self.last_words = self._shared.launched.last_words
        return self._exit_code

    def signal(self, number: Signals) -> None:
        """Send a signal to the process of all; one that ends it is kept in mind for the others."""
        if number is Signals.SIGKILL and not self._shared.ended_with:
            self._shared.ended_with = self._name
        super().signal(number)

    def close(self) -> None:
        super().close()
        self._shared.leave()
