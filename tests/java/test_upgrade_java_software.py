"""`--full-stop` of Apache's worker, and `--hard`: other software takes its place."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import source_config
from tests.support.agents.rest_client import call_url
from tests.support.agents.upgrade_cluster import Tool
from tests.support.servers.java_hosts import Hosts, Lines
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


@pytest.fixture
def hosts(
    kafka_runtime: KafkaRuntime, kafka_broker: SharedBroker, tmp_path: Path
) -> Iterator[Hosts]:
    """One Java worker at `disabled`."""
    directory = tmp_path / "hosts"
    directory.mkdir()
    started = Hosts(kafka_runtime, kafka_broker.bootstrap_servers, directory)
    try:
        started.add()
        started.wait()
        yield started
    finally:
        started.close()


@pytest.mark.long(only=True)
def test_up_by_a_full_stop_and_down_to_other_software(hosts: Hosts, tmp_path: Path) -> None:
    """No record is missing; an agent is the other software, with the same file at the same address.
    The abilities of the worker are known from its file, so no unknown has to be accepted.
    """
    (url,) = hosts.urls
    lines = Lines(hosts, tmp_path)
    lines.write(5)
    config = {**source_config(lines.file, lines.topic), "name": "lines", "batch.size": "5"}
    headers = {"Content-Type": "application/json"}
    created = call_url(url, "PUT", "/connectors/lines/config", json.dumps(config), headers)
    assert created.status == 201, created.text
    lines.check(once_after=0)
    tool = Tool(hosts.bootstrap_servers, url, tmp_path)
    file = hosts.directory / url.rpartition(":")[2] / "worker.properties"
    options = ("--inventory", hosts.inventory(), "--worker-config", str(file))
    unknown = tool.upgrade("enabled", "--full-stop", "--inventory", hosts.inventory())
    assert unknown.returncode == 9
    assert "Java workers do not report it" in unknown.stderr
    tool.must_upgrade("enabled", "--full-stop", *options)
    lines.write(5)
    lines.check(once_after=0)
    tool.must_upgrade("disabled", "--direct", "--hard", *options)
    assert call_url(url, "GET", "/agent").json()["exactly_once_source_support"] == "disabled"
    lines.write(5)
    lines.check(once_after=15)
