"""A restored backup brings back the connectors of a cluster without its internal topics."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.agents.agent import Agent, Agents, sink_config, source_config
from tests.support.audits.sequences import Sequences
from tests.support.commands.processes import python_environment
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.bad_plugins import BAD_SOURCE
from tests.support.seeds import LONG
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, delete_topics, produce

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
EXACTLY_ONCE, SINKS, PAUSED, STOPPED = (8, 4, 8, 9) if LONG else (3, 2, 2, 2)
FAILED = "failed-and-paused"
CONNECTORS = EXACTLY_ONCE + SINKS + PAUSED + STOPPED + 1


class Fleet:
    """An agent's connectors: sources of numbers, sinks, and connectors that do not run."""

    def __init__(self, agent: Agent, broker: SharedBroker, directory: Path) -> None:
        self.agent = agent
        self.servers = broker.bootstrap_servers
        self.topic = unique_name("lines")
        self.outputs = [directory / f"out-{number}" for number in range(SINKS)]
        self.numbers = []
        for number in range(EXACTLY_ONCE):
            flags = directory / f"numbers-{number}"
            flags.mkdir()
            self.numbers.append(Sequences(self.servers, flags))
        create_topics(self.servers, [self.topic])
        for numbers in self.numbers:
            agent.create(numbers.name, numbers.config())
        for number, output in enumerate(self.outputs):
            agent.create(f"sink-{number}", sink_config(output, self.topic))
        lines = directory / "lines"
        lines.write_text("never read\n")
        for state, count in (("PAUSED", PAUSED), ("STOPPED", STOPPED)):
            for number in range(count):
                config = source_config(lines, unique_name("lines"))
                agent.create(f"{state.lower()}-{number}", config, initial_state=state)
        agent.create(FAILED, {"connector.class": BAD_SOURCE, "start": "raise"})
        agent.wait_for_states(FAILED, "FAILED")
        agent.do("PUT", f"/connectors/{FAILED}/pause")

    def write(self, *lines: str) -> None:
        produce(self.servers, self.topic, *(line.encode() for line in lines))

    def allow(self, limit: int) -> None:
        for numbers in self.numbers:
            numbers.allow(limit)

    def wait_for_lines(self, *lines: str) -> None:
        text = "".join(f"{line}\n" for line in lines)
        for output in self.outputs:
            eventually(lambda output=output: output.read_text() == text, 90, output.read_text)  # type: ignore[misc]

    def wait_for_commits(self, count: int) -> None:
        """Wait until the sinks have committed their offsets."""
        for number in range(SINKS):
            path = f"/connectors/sink-{number}/offsets"
            eventually(
                lambda path=path: (
                    [  # type: ignore[misc]
                        entry["offset"]["kafka_offset"] for entry in self.agent.get(path)["offsets"]
                    ]
                    == [count]
                ),
                90,
                lambda path=path: self.agent.get(path),  # type: ignore[misc]
            )

    def states(self) -> dict[str, str]:
        """Return the target states, which FAILED connectors have too."""
        found = self.agent.get("/agent/connectors")
        return {name: each["target_state"] for name, each in found.items()}


def wait_until_gone(servers: str, topics: Sequence[str]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    eventually(lambda: not set(topics) & set(admin.list_topics(timeout=400).topics))


def delete_group(servers: str, group: str) -> None:
    """Delete a consumer group, so that its offsets are in the backup only."""
    admin = AdminClient({"bootstrap.servers": servers})
    with suppress(KafkaException):
        admin.delete_consumer_groups([group])[group].result(60)


@pytest.mark.long
def test_a_cluster_without_its_internal_topics_comes_back(
    agents: Agents, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Exactly-once sources lose and repeat nothing although the first restore is killed."""
    group = unique_name("disaster")
    agent = agents.start(properties=ENABLED, group_id=group)
    fleet = Fleet(agent, kafka_broker, tmp_path)
    fleet.write("one", "two")
    fleet.allow(50)
    for numbers in fleet.numbers:
        numbers.wait_for(50)
    fleet.wait_for_lines("one", "two")
    fleet.wait_for_commits(2)
    states = fleet.states()
    assert (len(states), states[FAILED]) == (CONNECTORS, "PAUSED")
    pyconnect = Pyconnect(tmp_path, agent.url)
    saved = pyconnect("backup", str(tmp_path / "backup"), "--parallel", "4")
    assert saved.code == 0, saved.err

    agent.process.stop()
    internal = [f"{group}-{kind}" for kind in ("configs", "offsets", "status")]
    delete_topics(kafka_broker.bootstrap_servers, internal)
    wait_until_gone(kafka_broker.bootstrap_servers, internal)
    for number in range(SINKS):
        delete_group(kafka_broker.bootstrap_servers, f"connect-sink-{number}")
    fleet.allow(100)
    fleet.write("three")
    agent.process.start()
    assert agent.get("/connectors") == []

    line = ["restore", str(tmp_path / "backup"), "--yes", "--timeout", "5m"]
    with subprocess.Popen(
        [sys.executable, "-m", "pyconnect_cli", *line], env=python_environment(pyconnect.environ)
    ) as killed:
        eventually(lambda: len(agent.get("/connectors")) >= CONNECTORS // 3, 120)
        killed.kill()
    restored = pyconnect(*line, "--parallel", "4")
    assert restored.code == 0, restored.err
    assert "did not finish and goes on" in restored.err
    assert fleet.states() == states
    for numbers in fleet.numbers:
        numbers.check(100)
    fleet.wait_for_lines("one", "two", "three")
