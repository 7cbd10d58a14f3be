"""`pyconnect upgrade` on Apache's workers and mixed groups, by commands and `--full-stop`."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import Agents, source_config
from tests.support.agents.rest_client import call_url
from tests.support.agents.upgrade_cluster import ALLOWED, Tool
from tests.support.eventually import eventually
from tests.support.servers.java_hosts import PROPERTIES, Hosts, Lines
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


@contextmanager
def java_hosts(
    count: int, runtime: KafkaRuntime, broker: SharedBroker, directory: Path
) -> Iterator[Hosts]:
    """A group of Java workers with exactly-once disabled."""
    directory.mkdir(exist_ok=True)
    with closing(Hosts(runtime, broker.bootstrap_servers, directory)) as started:
        for _ in range(count):
            started.add()
        started.wait()
        yield started


@pytest.fixture(scope="module")
def hosts(
    kafka_runtime: KafkaRuntime,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Hosts]:
    with java_hosts(3, kafka_runtime, kafka_broker, tmp_path_factory.mktemp("hosts")) as started:
        yield started


@pytest.fixture(scope="module")
def lines(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """A growing file and its source, which runs through all tests."""
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
    """Phases are labelled as inferred or shown; no record is missing or doubled afterwards."""
    options = ("--inventory", hosts.inventory(), "--accept-unknown")
    assert tool.upgrade("enabled", *options).returncode == 9
    skipped = tool.run("upgrade", "plan", "--phase", "enabled", *options, "--declared").stderr
    assert "preparing would be skipped" in skipped
    plan = json.loads(
        tool.run("upgrade", "plan", "--phase", "preparing", "-o", "json", *options).stdout
    )
    assert {worker["phase"] for worker in plan["workers"]} == {"disabled (shown)"}
    assert {worker["fences"] for worker in plan["workers"]} == {True}
    tool.must_upgrade("preparing", *options)
    lines.write(5)
    without_show = tool.run("upgrade", "plan", "--phase", "enabled", "--accept-unknown")
    assert without_show.returncode == 9
    assert "its REST API does not show" in without_show.stderr
    tool.must_upgrade("enabled", *options)
    for url in hosts.urls:
        eventually(lambda url=url: task_states(url) == ["RUNNING", "RUNNING"])
    lines.check(once_after=10)
    lines.write(5)
    lines.check(once_after=10)


@pytest.mark.long(only=True)
def test_a_mixed_group_goes_down(
    hosts: Hosts, lines: Lines, tool: Tool, agents: Agents, tmp_path: Path
) -> None:
    """An agent replaces two workers and changes itself; commands change the Java worker."""
    for url in hosts.urls[1:]:
        hosts.remove(url)
    properties = {**PROPERTIES, **ALLOWED, "exactly.once.source.support": "enabled"}
    agent = agents.start(group_id=hosts.group_id, properties=properties)
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


@pytest.fixture
def one_host(
    kafka_runtime: KafkaRuntime, kafka_broker: SharedBroker, tmp_path: Path
) -> Iterator[Hosts]:
    with java_hosts(1, kafka_runtime, kafka_broker, tmp_path / "hosts") as started:
        yield started


@pytest.mark.long(only=True)
def test_up_by_a_full_stop_and_down_to_other_software(one_host: Hosts, tmp_path: Path) -> None:
    """No record is missing; the other software is an agent with the same file at the same address.

    The worker's abilities are known from its file, so that no unknown has to be accepted.
    """
    (url,) = one_host.urls
    lines = Lines(one_host, tmp_path)
    lines.write(5)
    config = {**source_config(lines.file, lines.topic), "name": "lines", "batch.size": "5"}
    headers = {"Content-Type": "application/json"}
    created = call_url(url, "PUT", "/connectors/lines/config", json.dumps(config), headers)
    assert created.status == 201, created.text
    lines.check(once_after=0)
    tool = Tool(one_host.bootstrap_servers, url, tmp_path)
    file = one_host.directory / url.rpartition(":")[2] / "worker.properties"
    options = ("--inventory", one_host.inventory(), "--worker-config", str(file))
    unknown = tool.upgrade("enabled", "--full-stop", "--inventory", one_host.inventory())
    assert unknown.returncode == 9
    assert "Java workers do not report it" in unknown.stderr
    tool.must_upgrade("enabled", "--full-stop", *options)
    lines.write(5)
    lines.check(once_after=0)
    tool.must_upgrade("disabled", "--direct", "--hard", *options)
    assert call_url(url, "GET", "/agent").json()["exactly_once_source_support"] == "disabled"
    lines.write(5)
    lines.check(once_after=15)
