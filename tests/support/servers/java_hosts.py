"""Java workers as services of hosts, with an inventory of their commands, and a source's lines."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from pyconnect_sandbox.connect_worker import JavaConnectWorker, WorkerLaunch, worker_properties
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import append_lines
from tests.support.agents.rest_client import call_url
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers import service_script
from tests.support.servers.cluster import QUICK_GROUP
from tests.support.servers.topics import read_topic

STRING = "org.apache.kafka.connect.storage.StringConverter"
PROPERTIES = {**QUICK_GROUP, "key.converter": STRING, "value.converter": STRING}
START_S = 180
VERBS = ("restart", "show", "stop", "start", "replace")
SCRIPT = [sys.executable, service_script.__file__]


class Hosts:
    """Java workers as services, one directory for each REST port, and their inventory file."""

    def __init__(self, runtime: KafkaRuntime, bootstrap_servers: str, directory: Path) -> None:
        self.group_id = unique_name("java-upgrade")
        self.bootstrap_servers = bootstrap_servers
        self.directory = directory
        self.urls: list[str] = []
        self._runtime = runtime

    def add(self) -> None:
        """Start one more worker without waiting for it."""
        properties = {**worker_properties(self.bootstrap_servers, self.group_id), **PROPERTIES}
        worker = JavaConnectWorker(
            self._runtime, WorkerLaunch(directory=self.directory / "new", properties=properties)
        )
        own = self.directory / str(worker.port)
        config = WorkerLaunch(directory=own, properties=properties, port=worker.port)
        own.mkdir()
        command = JavaConnectWorker(self._runtime, config)._prepare()
        (own / "command.json").write_text(json.dumps(list(command)))
        agent = [sys.executable, "-m", "pyconnect_agent", str(own / "worker.properties")]
        (own / "replacement.json").write_text(json.dumps(agent))
        self.urls.append(worker.url)
        subprocess.run([*SCRIPT, str(own), "start"], check=True)

    def wait(self) -> None:
        for url in self.urls:
            eventually(lambda url=url: healthy(url), START_S, url)

    def remove(self, url: str) -> None:
        self.urls.remove(url)
        service_script.stop(self.directory / url.rpartition(":")[2])

    def inventory(self) -> str:
        """Write an operator's commands, a script for ssh and systemctl; return the file's path."""
        words = json.dumps([*SCRIPT, f"{self.directory}/{{port}}"])[:-1]
        lines = [
            "[commands]",
            f'configure = {words}, "configure", "{{phase}}"]',
            *(f'{verb} = {words}, "{verb}"]' for verb in VERBS),
        ]
        path = self.directory / "inventory.toml"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    def close(self) -> None:
        for pid in self.directory.glob("*/pid"):
            service_script.stop(pid.parent, signal.SIGKILL)


def healthy(url: str) -> bool:
    try:
        return call_url(url, "GET", "/health").status == 200
    except OSError:
        return False


class Lines:
    """A file that a source copies into a topic."""

    def __init__(self, hosts: Hosts, directory: Path) -> None:
        self.file = directory / "lines.txt"
        self.topic = unique_name("lines")
        self.written = 0
        self._bootstrap_servers = hosts.bootstrap_servers

    def write(self, count: int) -> None:
        append_lines(self.file, self.written + 1, self.written + count)
        self.written += count

    def seen(self) -> list[str]:
        """Return all committed lines, up to the topic's end; none without a topic."""
        found = read_topic(self._bootstrap_servers, self.topic, committed=True)
        return [(message.value() or b"").decode() for message in found]

    def check(self, *, once_after: int) -> None:
        """Assert that all lines exist, and those after a number only once."""
        wanted = {f"line {number}" for number in range(1, self.written + 1)}
        eventually(lambda: set(self.seen()) == wanted, 60, lambda: len(self.seen()))
        counted = Counter(self.seen())
        after = [f"line {number}" for number in range(once_after + 1, self.written + 1)]
        assert [line for line in after if counted[line] != 1] == []
