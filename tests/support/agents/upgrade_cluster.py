"""Agents in one group, and `pyconnect upgrade` as a process against them."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyconnect_cli.acting.journal import entries_of
from pyconnect_cli.upgrade.plan.run import Entry, Started
from tests.support.commands import killed_command
from tests.support.commands.killed_command import KILLED_AT
from tests.support.commands.processes import python_environment, run_python
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of

RUN_S = 240
SETTLE = "300ms"
ALLOWED = {
    "agent.allow.phase.change": "true",
    "task.shutdown.graceful.timeout.ms": "5000",
    "offset.flush.interval.ms": "500",
}


class Tool:
    """`pyconnect` with a home of its own."""

    def __init__(self, bootstrap_servers: str, url: str, directory: Path) -> None:
        self.state = directory / "state"
        self.environment = {
            **os.environ,
            "PYCONNECT_URL": url,
            "PYCONNECT_KAFKA_BOOTSTRAP": bootstrap_servers,
            "XDG_CONFIG_HOME": str(directory / "config"),
            "XDG_STATE_HOME": str(self.state),
        }

    def run(self, *arguments: str, timeout_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
        return run_python(["-m", "pyconnect_cli", *arguments], self.environment, timeout_s)

    def upgrade(self, phase: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run an upgrade with shortened times, without a question."""
        shortened = ("--settle", SETTLE, "--step-timeout", "120s", "--yes")
        return self.run("upgrade", "--phase", phase, *shortened, *options)

    def must_upgrade(self, phase: str, *options: str) -> str:
        done = self.upgrade(phase, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    def upgrade_killed_at(self, point: str, phase: str, *options: str) -> None:
        """Run an upgrade that kills itself at a point of its journal; see killed_command.

        SIGKILL, as of a host that runs out of memory.
        """
        arguments = ["upgrade", "--phase", phase, "--settle", SETTLE, "--yes", *options]
        environment = {**self.environment, KILLED_AT: point}
        done = run_python(["-m", killed_command.__name__, *arguments], environment, RUN_S)
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr

    def upgrade_until(
        self, reached: Callable[[list[Entry]], bool], phase: str, *options: str
    ) -> None:
        """Begin an upgrade and kill it as soon as `reached` is true for its entries."""
        before = len(self.journal())
        arguments = ["upgrade", "--phase", phase, "--settle", SETTLE, "--yes", *options]
        process = subprocess.Popen(
            [sys.executable, "-m", "pyconnect_cli", *arguments],
            env=python_environment(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            eventually(
                lambda: reached(self.journal()[before:]) or process.poll() is not None, RUN_S
            )
            assert process.poll() is None, "it ended before it was to be killed"
        finally:
            process.kill()
            process.wait()

    def started_at(self, before: int) -> int:
        """Return the start of the run that was in progress when there were `before` entries."""
        entries = self.journal()[:before]
        return max(at for at, entry in enumerate(entries) if isinstance(entry, Started))

    def journal(self) -> list[Entry]:
        """Return every entry so far, of all runs."""
        return [
            entry
            for path in (self.state / "pyconnect" / "upgrades").glob("*.jsonl")
            for entry in entries_of(path, Entry)
        ]


@contextmanager
def upgradable_cluster(
    size: int, bootstrap_servers: str, directory: Path, properties: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Start agents that may change their phase."""
    settings = {**ALLOWED, **(properties or {})}
    with cluster_of(size, bootstrap_servers, directory, settings) as cluster:
        yield cluster


def phases(cluster: Cluster) -> list[str]:
    """Return the phase that each agent reports."""
    return [agent.get("/agent")["exactly_once_source_support"] for agent in cluster.agents]
