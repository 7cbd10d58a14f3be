"""Our own Connect worker as a process: `python -m pyconnect_agent worker.properties`.

The agent is started, never imported: the command line meets it over REST.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_sandbox.connect_worker import ConnectWorker


class AgentProcess(ConnectWorker):
    """An agent process with its children; standalone when it is given connectors.

    `kill` ends the whole group, `suspend` freezes all of it: the death or the freeze of a host.
    """

    name = "agent"

    @property
    def log_path(self) -> Path:
        return self.output_path

    def _environment(self) -> Mapping[str, str]:
        # Found beside this package in a source tree, wherever it is when it is installed.
        roots = (str(Path(entry).resolve()) for entry in sys.path if entry)
        return {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}

    def _command(self, worker_file: Path, connector_files: Sequence[Path]) -> Sequence[str]:
        mode = [] if self.config.connectors is None else ["--standalone"]
        files = map(str, (worker_file, *connector_files))
        return [sys.executable, "-m", "pyconnect_agent", *mode, *files]
