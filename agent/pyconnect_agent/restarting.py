"""The restart of a worker: by the parent of `--supervise`, or by a command of its properties.

Composition root. Supervised, the worker stops in order and exits with 64. Otherwise the command of
`agent.restart.command` is run, apart from this process, and whatever it does stops the worker.
"""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.restart_parent import SUPERVISOR_VARIABLE, is_supervised

LOG = logging.getLogger(__name__)

SUPERVISED, COMMAND, NONE = "supervised", "command", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """`method`: supervised, command or none. `exit_for_restart` stops this worker in order."""

    method: str
    command: tuple[str, ...]
    exit_for_restart: Callable[[], None]

    def begin(self) -> None:
        """Begin; the worker goes on until it is stopped. InternalError when it cannot begin."""
        match self.method:
            case "supervised":
                LOG.info("worker restarts: its parent runs it again")
                self.exit_for_restart()
            case "command":
                LOG.info("worker restarts: by its command")
                self._run_command()
            case _:
                LOG.info("worker needs a restart and has no means for it")

    def _run_command(self) -> None:
        environment = {k: v for k, v in os.environ.items() if k != SUPERVISOR_VARIABLE}
        try:
            # In a session of its own: it has to outlive the worker that it stops.
            subprocess.Popen(
                self.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise InternalError(
                f"agent.restart.command cannot be run: {self.command[0]}: {error.strerror}."
                " The phase is set in the file; restart the worker yourself."
            ) from error


def restart_of(config: WorkerConfig, exit_for_restart: Callable[[], None]) -> Restart:
    """Return how this worker is restarted; the restart parent goes before the command."""
    text = config.agent_restart_command if isinstance(config, DistributedConfig) else None
    command = tuple(shlex.split(text or ""))
    if is_supervised(os.environ):
        method = SUPERVISED
    else:
        method = COMMAND if command else NONE
    return Restart(method=method, command=command, exit_for_restart=exit_for_restart)
