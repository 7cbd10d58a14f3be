"""Start child processes from a fork server.

Layer: supervise. The fork server is Python's own (`multiprocessing`): a process that has imported
the task host and the Kafka client once, so a child starts in milliseconds and shares that memory.
It must be started before any thread, because a fork copies locks that other threads hold.

The host is named by a string, since `supervise` does not import `tasks`.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess

DEFAULT_HOST = "pyconnect_agent.tasks.host:run"
DEFAULT_PRELOAD = ("pyconnect_agent.supervise.launch", "pyconnect_agent.tasks.preload")


@dataclass(slots=True)
class Launched:
    """A started process; `connection` is the supervisor's end of the pipe."""

    process: ForkServerProcess
    connection: socket.socket
    pid: int = field(init=False)

    def __post_init__(self) -> None:
        self.pid = self.process.pid or 0

    @property
    def sentinel(self) -> int:
        """A descriptor that becomes readable when the process has ended."""
        return self.process.sentinel

    def exit_code(self) -> int | None:
        """None while it runs; -n when signal n ended it."""
        return self.process.exitcode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended is left alone."""
        if number is signal.SIGTERM:
            self.process.terminate()
        elif number is signal.SIGKILL:
            self.process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Launcher:
    """`launch` blocks some milliseconds.

    Call it and `Launched.exit_code` from one thread: multiprocessing reads the exit codes of all
    children whenever it starts one, and a code can be read only once.
    """

    def __init__(
        self, *, host: str = DEFAULT_HOST, preload: Sequence[str] = DEFAULT_PRELOAD
    ) -> None:
        self._host = host
        self._preload = list(preload)
        self._context = multiprocessing.get_context("forkserver")

    def start(self) -> None:
        """Start the fork server with its preloaded modules."""
        self._context.set_forkserver_preload(self._preload)
        with _main_module_hidden():
            forkserver.ensure_running()

    def launch(self, name: str) -> Launched:
        """Start a process that serves the other end of a new pipe."""
        ours, theirs = socket.socketpair()
        try:
            process = self._context.Process(
                target=_enter, args=(theirs, self._host, list(sys.path)), name=name, daemon=True
            )
            with _main_module_hidden():
                process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return Launched(process, ours)


@contextlib.contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Keep multiprocessing from running the program's main script again in each child.

    Children import the host by name and need nothing else of the supervisor.
    """
    names = vars(sys.modules["__main__"])
    script = names.pop("__file__", None)
    try:
        yield
    finally:
        if script is not None:
            names["__file__"] = script


def _enter(connection: socket.socket, host: str, path: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Daemonic so that the supervisor ends it at exit; but a plugin may have children of its own.
    multiprocessing.current_process().daemon = False
    sys.path[:] = path
    module, _, function = host.partition(":")
    getattr(importlib.import_module(module), function)(connection)


def describe_exit(exit_code: int | None) -> str:
    """Return how a process ended, to be read after "task process"."""
    if exit_code is None:
        return "ended in an unknown way"
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        return f"was killed by signal {-exit_code}"
    return f"was killed by signal {-exit_code} ({name})"
