"""A real agent process, as tests use it, and the Java processes of an agent."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from pyconnect_sandbox.connect_worker import AgentProcess, WorkerLaunch, worker_properties
from tests.support.agents.rest_client import WAIT_S, WorkerRest
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import STOP_TIMEOUT_S

STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
START_TIMEOUT_S = 90


class AgentWithFiles(AgentProcess):
    """An agent that gets further files on its command line."""

    extra_files: tuple[Path, ...] = ()

    def _command(self, worker_file: Path, connector_files: Sequence[Path]) -> Sequence[str]:
        return super()._command(worker_file, (*connector_files, *self.extra_files))


class Agent(WorkerRest[AgentProcess]):
    """An agent process with the calls of an operator and a client."""

    def log(self) -> str:
        return self.process.log_path.read_text()

    def supervisor(self) -> psutil.Process:
        """Return the process that was started."""
        return psutil.Process(self.process.pid)

    def children(self) -> list[psutil.Process]:
        """Return the processes of connectors and tasks, which the fork server has started."""
        return [
            grandchild for child in self.supervisor().children() for grandchild in child.children()
        ]

    def revived(self, name: str) -> bool:
        """Return whether all of a connector runs; restart FAILED parts as an operator does."""
        states = self.states(name)
        if "FAILED" in states:
            self.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
        return bool(states) and set(states) == {"RUNNING"}

    def drain(self) -> None:
        """Send SIGTERM to the worker process alone."""
        os.kill(self.process.pid, signal.SIGTERM)

    def kill_supervisor(self) -> None:
        """Send SIGKILL to the worker process alone; its children get no message."""
        os.kill(self.process.pid, signal.SIGKILL)

    def exit_code(self, timeout_s: float = WAIT_S) -> int:
        return self.process.wait_until_exited(timeout_s)


class Agents:
    """Agents on one broker, each with its own directory and group."""

    def __init__(self, bootstrap_servers: str, directory: Path) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._directory = directory
        self._started = ExitStack()
        self._count = 0

    def process(
        self,
        *,
        properties: Mapping[str, str] | None = None,
        connectors: tuple[Mapping[str, str], ...] | None = None,
        group_id: str | None = None,
        kind: type[AgentWithFiles] = AgentWithFiles,
    ) -> AgentWithFiles:
        """Return an agent that is not started; it ends with the test."""
        self._count += 1
        defaults = {
            **worker_properties(self._bootstrap_servers, group_id or unique_name("agents")),
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
            # FAILED parts stay FAILED until a test restarts them.
            "agent.restart.policy": "never",
        }
        if connectors is not None:
            defaults["offset.storage.file.filename"] = str(self._directory / "offsets.json")
        process = kind(
            WorkerLaunch(
                directory=self._directory / f"agent-{self._count}",
                properties={**defaults, **(properties or {})},
                connectors=connectors,
                start_timeout_s=START_TIMEOUT_S,
                stop_timeout_s=STOP_TIMEOUT_S,
                hold_file=self._directory / "agents.hold",
            )
        )
        self._started.callback(process.stop)
        return process

    def start(self, **options: Any) -> Agent:
        return Agent(self.process(**options).start())

    def close(self) -> None:
        self._started.close()


def emptied(*agents: Agent) -> Agent:
    """Start a group's agents, remove all connectors, and return the first agent without processes.

    Tests of a module share agents this way, in whatever state a test leaves them.
    """
    for agent in agents:
        agent.process.start()
    first = agents[0]
    for name in first.get("/connectors"):
        first.do("DELETE", f"/connectors/{name}")
        eventually(lambda name=name: first.states(name) == (), WAIT_S)  # type: ignore[misc]
    for agent in agents:
        eventually(lambda agent=agent: agent.children() == [], WAIT_S)  # type: ignore[misc]
    return first


def closing(make: Callable[[], Agents]) -> Iterator[Agents]:
    """Yield agents and end them, for fixtures."""
    agents = make()
    try:
        yield agents
    finally:
        agents.close()


def source_config(file: Path, topic: str, **settings: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def sink_config(file: Path, topic: str, **settings: str) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "file": str(file),
        "topics": topic,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def append_lines(file: Path, first: int, last: int) -> None:
    with file.open("a") as opened:
        opened.writelines(f"line {number}\n" for number in range(first, last + 1))


def line_count(file: Path) -> int:
    return len(file.read_bytes().splitlines()) if file.exists() else 0


def wait_until_equal(copied: Path, original: Path) -> None:
    eventually(
        lambda: copied.exists() and copied.read_bytes() == original.read_bytes(),
        WAIT_S,
        lambda: f"{line_count(original)} lines copied, there are {line_count(copied)}",
    )


def task_pids(agent: Agent) -> list[int]:
    """Return the processes of the tasks that run on an agent."""
    return [
        int(child["pid"])
        for child in agent.get("/agent/tasks")
        if child["task"] is not None and child["pid"] is not None
    ]


def java_processes(agent: Agent) -> list[psutil.Process]:
    """Return the Java processes of connectors and tasks, a connector's before those of its tasks.

    Processes of validations, which the agent keeps for a while, are left out.
    """
    owners = [child["pid"] for child in agent.get("/agent/tasks") if child["pid"] is not None]
    found = agent.supervisor().children(recursive=True)
    java = [each for each in found if each.name() == "java" and each.ppid() in owners]
    return sorted(java, key=lambda process: process.create_time())
