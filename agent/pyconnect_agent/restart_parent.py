"""`pyconnect-agent --supervise`: a tiny parent that runs the worker again when it asks for it.

Composition root. The worker asks by exiting with code 64, after a change of its own properties for
instance; with any other end its supervision ends too, with the same code. Signals are passed on.
It imports nothing of the worker, so it stays small and can't fail with it. Under a service manager
that restarts (`Restart=always`) it is not needed.

The worker runs in a process group of its own: a terminal's Ctrl-C reaches it once, through here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

EXIT_RESTART = 64
SUPERVISOR_VARIABLE = "PYCONNECT_AGENT_SUPERVISOR"
"""Holds the restart parent's pid, so that a worker's own children do not take it for theirs."""

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def is_supervised(environ: Mapping[str, str]) -> bool:
    """Whether this process's parent runs it again after exit code 64."""
    return environ.get(SUPERVISOR_VARIABLE) == str(os.getppid())


def worker_command(arguments: Sequence[str]) -> list[str]:
    """Return the command of the worker with these arguments, run by this Python."""
    return [sys.executable, "-m", "pyconnect_agent", *arguments]


def supervise(command: Sequence[str]) -> int:
    """Run `command` until it ends without asking for a restart; returns its exit code.

    As a shell does, 128 and the signal's number when a signal ended it.
    """
    return _Supervisor(command).run()


class _Supervisor:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._worker: subprocess.Popen[bytes] | None = None
        self._stop_signal: int | None = None

    def run(self) -> int:
        for number in PASSED_ON:
            # Under nohup it stays ignored, here and in the worker.
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            signal.signal(number, self._pass_on)
        while True:
            code = self._run_once()
            if code != EXIT_RESTART:
                return 128 - code if code < 0 else code
            if self._stop_signal is not None:
                return 0

    def _run_once(self) -> int:
        environment = {**os.environ, SUPERVISOR_VARIABLE: str(os.getpid())}
        self._worker = subprocess.Popen(self._command, env=environment, process_group=0)
        if self._stop_signal is not None:
            # It came between two lives of the worker.
            self._worker.send_signal(self._stop_signal)
        return self._worker.wait()

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._stop_signal = number
        if self._worker is not None:
            self._worker.send_signal(number)
