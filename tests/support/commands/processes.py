"""Processes that tests start, and the progress that they report."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_sandbox.processes import ProcessIdentity, group_members

SOURCE_ROOTS = tuple(
    str(Path(__file__).resolve().parents[3] / root) for root in ("cli", "agent", ".")
)


def is_gone(identity: ProcessIdentity) -> bool:
    """Return whether no process of the group is alive."""
    return not group_members(identity)


def python_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return `base` with a path to this source tree, whether it is installed or not."""
    return {**base, "PYTHONPATH": ":".join((*base.get("PYTHONPATH", "").split(), *SOURCE_ROOTS))}


def run_python(
    arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run this Python with `arguments`, with the source tree importable."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=python_environment(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


class RecordedProgress:
    """A `Progress` that keeps the reported steps."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.passing: list[str] = []

    def __call__(self, message: str, *, passing: bool = False) -> None:
        (self.passing if passing else self.messages).append(message)
