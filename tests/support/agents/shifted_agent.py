"""An agent whose wall clock a test can set: that of the worker process and of its children."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.support.agents.agent import AgentWithFiles


class ShiftedAgent(AgentWithFiles):
    """Its clock is right until `set_clock`."""

    @property
    def clock(self) -> Path:
        return self.config.directory / "clock"

    def set_clock(self, shift_s: float) -> None:
        """Set the wall clock so many seconds before or behind the right time."""
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
