"""A cluster whose workers are replaced one by one, as docs/how-to/move-a-java-cluster.md says.

Each worker has a host of its own: its port and its file stay, whichever kind runs there. The file
for agents has one line more.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import javaproperties

from pyconnect_sandbox.connect_worker import ConnectWorker, worker_properties
from pyconnect_sandbox.server import free_port
from tests.support.agents.agent import STRING_CONVERTER
from tests.support.agents.worker_rest import WorkerRest
from tests.support.commands.pyconnect_command import Command
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import QUICK_GROUP
from tests.support.servers.kafka import Servers

WAIT_S = 150


class RolledCluster:
    """`size` Java workers at the start."""

    def __init__(
        self,
        servers: Servers,
        bootstrap_servers: str,
        directory: Path,
        size: int,
        properties: Mapping[str, str],
    ) -> None:
        self.group_id = unique_name("moved")
        self._servers = servers
        self._bootstrap_servers = bootstrap_servers
        self._directory = directory
        self._properties = {
            **QUICK_GROUP,
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
            "exactly.once.source.support": "enabled",
            **properties,
        }
        self._ports = [free_port() for _ in range(size)]
        self._workers: list[WorkerRest[ConnectWorker]] = [
            self._start("java", port) for port in self._ports
        ]

    @property
    def worker(self) -> WorkerRest[ConnectWorker]:
        return self._workers[-1]

    def workers(self) -> Sequence[str]:
        """Return the worker ids."""
        return [f"127.0.0.1:{port}" for port in self._ports]

    def command(self) -> Command:
        return Command(self._directory, self.worker.url)

    def worker_file(self) -> Path:
        """Return the file of a Java worker."""
        file = self._directory / "worker.properties"
        common = worker_properties(self._bootstrap_servers, self.group_id)
        file.write_text(javaproperties.dumps({**common, **self._properties}))
        return file

    def export(self) -> Path:
        """Write the configs as they are before the move."""
        before = self._directory / "before"
        command = self.command()
        arguments = ("connectors", "export", "--all", "--dir", str(before), "--show-secrets")
        assert command(*arguments) == 0, command.err
        return before

    def roll(self, kind: str, before: Path, progress: Callable[[], None]) -> None:
        """Replace each worker; go on when everything runs and `progress` returns.

        Offsets stay those of the same partitions: none has a second form that the next worker reads
        and the one before it does not.
        """
        partitions = eventually(
            lambda: found if all((found := self.partitions()).values()) else None,
            WAIT_S,
            self.partitions,
        )
        for number, port in enumerate(self._ports):
            self._workers[number].process.stop()
            self._workers[number] = self._start(kind, port)
            self._check(self._workers[number], before)
            progress()
            eventually(lambda: self.partitions() == partitions, WAIT_S, self.partitions)

    def partitions(self) -> Mapping[str, Sequence[str]]:
        """Return the partitions of the offsets of each connector, as JSON; none yet: empty."""
        answers = {
            name: self.worker.call("GET", f"/connectors/{name}/offsets")
            for name in self.worker.get("/connectors")
        }
        return {
            name: sorted(
                json.dumps(each["partition"], sort_keys=True) for each in answer.json()["offsets"]
            )
            if answer.status == 200
            else []
            for name, answer in answers.items()
        }

    def _check(self, worker: WorkerRest[ConnectWorker], before: Path) -> None:
        """Run the commands of the page against the worker that is new."""
        command = Command(self._directory, worker.url)
        names = worker.get("/connectors")
        for name in names:
            eventually(
                lambda name=name: self._runs(worker, name),
                WAIT_S,
                lambda name=name: worker.call("GET", f"/connectors/{name}/status").text,
            )
        assert command("connectors", "wait", "--all", "--for", "RUNNING") == 0, command.err
        assert command("tasks", "list", "--state", "FAILED", "-o", "name") == 0, command.err
        assert command.out == ""
        assert command("connectors", "diff", "-f", str(before)) == 0, command.out + command.err

    def _runs(self, worker: WorkerRest[ConnectWorker], name: str) -> bool:
        answer = worker.call("GET", f"/connectors/{name}/status")
        if answer.status != 200:
            return False
        status = answer.json()
        parts = [status["connector"], *status["tasks"]]
        states = {part["state"] for part in parts}
        return len(parts) > 1 and states == {"RUNNING"}

    def _start(self, kind: str, port: int) -> WorkerRest[ConnectWorker]:
        properties = {**self._properties, "listeners": f"http://127.0.0.1:{port}"}
        bootstrap, group_id = self._bootstrap_servers, self.group_id
        if kind == "java":
            return WorkerRest(self._servers.java_worker(bootstrap, group_id, properties=properties))
        properties["agent.java.kafka.home"] = str(self._servers.runtime.libs)
        return WorkerRest(self._servers.agent(bootstrap, group_id, properties=properties))
