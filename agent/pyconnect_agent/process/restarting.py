"""The restart of a worker after a change of its own properties.

Composition root. By default the worker stops in order, and its process then runs the same command
again: the pid stays, so a service manager, a container or a shell does not notice, and no parent
process is needed. If `agent.restart.command` is set, a separate process runs that command instead;
the worker continues until the command stops it.
"""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import InternalError

LOG = logging.getLogger(__name__)

SELF, COMMAND, NONE = "self", "command", "none"


def run_again() -> None:
    """Replace this process by the command that it was started with; return if that is impossible.

    The replacement ends other threads and closes descriptors, which Python opens as such.
    """
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - its own command
    except OSError as error:
        reason = f"{sys.executable}: {error.strerror}"
        LOG.error("worker could not run again; start it by hand", extra={"reason": reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """`stop_and_run_again` stops this worker in order; its process runs again then."""

    command: tuple[str, ...]
    stop_and_run_again: Callable[[], None]

    @property
    def method(self) -> str:
        """Return command, self, or none if the program of this process has been removed."""
        if self.command:
            return COMMAND
        return SELF if os.access(sys.executable, os.X_OK) else NONE

    def begin(self) -> None:
        """Begin; the worker continues until it is stopped. InternalError if it cannot begin."""
        match self.method:
            case "self":
                LOG.info("worker restarts: its process runs the same command again")
                self.stop_and_run_again()
            case "command":
                LOG.info("worker restarts: by its command")
                try:
                    # In a new session, because it has to outlive the worker that it stops.
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
