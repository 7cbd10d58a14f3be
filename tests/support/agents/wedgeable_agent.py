"""The agent's main program with one thing more: SIGUSR1 blocks its event loop for a while.

Only the main thread stands still: the group's thread and the children go on.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.agents.agent import Agent, AgentWithFiles

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
