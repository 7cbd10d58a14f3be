"""`pyconnect upgrade` on Apache's workers, by commands, and on a mixed group (upgrade.md)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from pyconnect_cli.sandbox.connect_worker import WorkerConfig, worker_properties
from pyconnect_cli.sandbox.java_worker import JavaConnectWorker
from pyconnect_cli.sandbox.runtime import KafkaRuntime
from tests.support import service_script
from tests.support.agent import Agent, Agents, append_lines, source_config
from tests.support.cluster import QUICK_GROUP
from tests.support.eventually import eventually
from tests.support.kafka import SharedBroker
from tests.support.names import unique_name
from tests.support.rest_client import call_url
from tests.support.upgrade_cluster import ALLOWED, SupervisedAgent, Tool

pytestmark = [pytest.mark.java, pytest.mark.timeout(420)]

STRING = "org.apache.kafka.connect.storage.StringConverter"
PROPERTIES = {**QUICK_GROUP, "key.converter": STRING, "value.converter": STRING}
START_S = 90
SCRIPT = [sys.executable, service_script.__file__]


class Hosts:
    """Java workers as services, one directory per REST port, and the inventory file of them."""

    def __init__(self, runtime: KafkaRuntime, bootstrap_servers: str, directory: Path) -> None:
        self.group_id = unique_name("java-upgrade")
        self.bootstrap_servers = bootstrap_servers
        self.directory = directory
        self.urls: list[str] = []
        self._runtime = runtime

    def add(self) -> None:
        """Begin to start one more worker."""
        properties = {**worker_properties(self.bootstrap_servers, self.group_id), **PROPERTIES}
        worker = JavaConnectWorker(
            self._runtime, WorkerConfig(directory=self.directory / "new", properties=properties)
        )
        own = self.directory / str(worker.port)
        config = WorkerConfig(directory=own, properties=properties, port=worker.port)
        own.mkdir()
        command = JavaConnectWorker(self._runtime, config)._prepare()
        (own / "command.json").write_text(json.dumps(list(command)))
        self.urls.append(worker.url)
        subprocess.run([*SCRIPT, str(own), "start"], check=True)

    def wait(self) -> None:
        for url in self.urls:
            eventually(lambda url=url: healthy(url), START_S, url)

    def remove(self, url: str) -> None:
        self.urls.remove(url)
        service_script.stop(self.directory / url.rpartition(":")[2])

    def inventory(self) -> str:
        """Commands as an operator would write them, with a script for ssh and systemctl."""
        words = json.dumps([*SCRIPT, f"{self.directory}/{{port}}"])[:-1]
        lines = [
            "[commands]",
            f'configure = {words}, "configure", "{{phase}}"]',
            *(f'{verb} = {words}, "{verb}"]' for verb in ("restart", "show", "stop", "start")),
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


@pytest.fixture(scope="module")
def hosts(
    kafka_runtime: KafkaRuntime,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Hosts]:
    """Three Java workers at `disabled` in one group."""
    started = Hosts(kafka_runtime, kafka_broker.bootstrap_servers, tmp_path_factory.mktemp("hosts"))
    try:
        for _ in range(3):
            started.add()
        started.wait()
        yield started
    finally:
        started.close()


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
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": unique_name("readers"),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        try:
            consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
            found = []
            while (message := consumer.poll(1)) is not None:
                if message.error() is None:
                    found.append((message.value() or b"").decode())
            return found
        finally:
            consumer.close()

    def check(self, *, once_after: int) -> None:
        """All lines are there; those after a number are there once."""
        wanted = {f"line {number}" for number in range(1, self.written + 1)}
        eventually(lambda: set(self.seen()) == wanted, 60, lambda: len(self.seen()))
        counted = Counter(self.seen())
        after = [f"line {number}" for number in range(once_after + 1, self.written + 1)]
        assert [line for line in after if counted[line] != 1] == []


@pytest.fixture(scope="module")
def lines(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """The source runs through all tests."""
    found = Lines(hosts, tmp_path_factory.mktemp("lines"))
    found.write(5)
    config = {**source_config(found.file, found.topic), "name": "lines", "batch.size": "5"}
    answer = call_url(
        hosts.urls[0],
        "PUT",
        "/connectors/lines/config",
        json.dumps(config),
        {"Content-Type": "application/json"},
    )
    assert answer.status == 201, answer.text
    found.check(once_after=0)
    return found


@pytest.fixture
def tool(hosts: Hosts, tmp_path: Path) -> Tool:
    return Tool(hosts.bootstrap_servers, hosts.urls[0], tmp_path)


def task_states(url: str) -> list[str]:
    status = call_url(url, "GET", "/connectors/lines/status").json()
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]


def test_three_java_workers_go_up_by_commands(hosts: Hosts, lines: Lines, tool: Tool) -> None:
    """Phases are labelled as inferred or shown; nothing is missing, nothing twice afterwards."""
    options = ("--inventory", hosts.inventory(), "--accept-unknown")
    assert tool.upgrade("enabled", *options).returncode == 9
    skipped = tool.upgrade("enabled", *options, "--plan", "--declared").stderr
    assert "preparing would be skipped" in skipped
    plan = json.loads(
        tool.run(*(["upgrade", "--phase", "preparing", "--plan", "-o", "json"]), *options).stdout
    )
    assert {worker["phase"] for worker in plan["workers"]} == {"disabled (shown)"}
    assert {worker["fences"] for worker in plan["workers"]} == {True}
    tool.must_upgrade("preparing", *options)
    lines.write(5)
    without_show = tool.upgrade("enabled", "--accept-unknown", "--plan")
    assert without_show.returncode == 9
    assert "cannot be told from outside" in without_show.stderr
    tool.must_upgrade("enabled", *options)
    for url in hosts.urls:
        assert task_states(url) == ["RUNNING", "RUNNING"]
    lines.check(once_after=10)
    lines.write(5)
    lines.check(once_after=10)


def test_a_mixed_group_goes_down(
    hosts: Hosts, lines: Lines, tool: Tool, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """An agent takes the place of two Java workers; it changes itself, the other by commands."""
    for url in hosts.urls[1:]:
        hosts.remove(url)
    agents = Agents(kafka_broker.bootstrap_servers, tmp_path)
    try:
        properties = {**PROPERTIES, **ALLOWED, "exactly.once.source.support": "enabled"}
        process = agents.process(
            kind=SupervisedAgent, group_id=hosts.group_id, properties=properties
        )
        agent = Agent(process.start())
        words = Path(hosts.inventory()).read_text().partition("[commands]\n")[2]
        commands = "".join(f"commands.{line}\n" for line in words.splitlines())
        each = "".join(f'[[workers]]\nurl = "{url}"\n{commands}' for url in hosts.urls)
        inventory = tmp_path / "mixed.toml"
        inventory.write_text(f'{each}[[workers]]\nurl = "{agent.url}"\n')
        tool.must_upgrade("disabled", "--direct", "--inventory", str(inventory), "--accept-unknown")
        assert agent.get("/agent")["exactly_once_source_support"] == "disabled"
        eventually(lambda: task_states(agent.url) == ["RUNNING", "RUNNING"], 60)
        before = lines.written
        lines.write(5)
        lines.check(once_after=before)
    finally:
        agents.close()
