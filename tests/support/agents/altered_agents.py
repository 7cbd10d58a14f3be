"""Agents whose wall clock a test can set, and agents that SIGUSR1 blocks for a while.

The blocked agent runs this module: only its main thread stands still; the group's thread and the
children continue.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.agents.agent import Agent, AgentWithFiles


class ShiftedAgent(AgentWithFiles):
    """An agent whose clock is right until `set_clock`."""

    @property
    def clock(self) -> Path:
        return self.config.directory / "clock"

    def set_clock(self, shift_s: float) -> None:
        """Move the wall clock by so many seconds."""
        new = self.clock.with_suffix(".new")
        new.write_text(str(shift_s))
        new.replace(self.clock)

    def _environment(self) -> Mapping[str, str]:
        if not self.clock.exists():
            self.clock.parent.mkdir(parents=True, exist_ok=True)
            self.clock.touch()
        given = super()._environment()
        patch = str(Path(__file__).with_name("shifted_clock"))
        path = os.pathsep.join((patch, given["PYTHONPATH"]))
        return {**given, "PYTHONPATH": path, "PYCONNECT_TEST_CLOCK": str(self.clock)}


WEDGED_S = 14


class WedgeableAgent(AgentWithFiles):
    """An agent that runs this module."""

    def _command(self, worker_file: Path, connector_files: Sequence[Path]) -> Sequence[str]:
        command = super()._command(worker_file, connector_files)
        return [__name__ if part == "pyconnect_agent" else part for part in command]


def wedge_now(agent: Agent) -> None:
    os.kill(agent.process.pid, signal.SIGUSR1)


def wedge(number: int, frame: object) -> None:
    time.sleep(WEDGED_S)


if __name__ == "__main__":
    from pyconnect_agent.__main__ import main

    signal.signal(signal.SIGUSR1, wedge)
    sys.exit(main())
