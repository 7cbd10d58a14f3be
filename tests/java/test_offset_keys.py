"""Offset keys of a partition of two members: agents and Java workers go on from each other's."""

from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.mixed_group import WAIT_S, MixedGroup, MixedWorker
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import test_connectors as compiled_connectors
from tests.support.seeds import chosen
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.topics import create_topics, read_topic

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

LIVE_KEY = b'["numbers",{"zone":"z","place":"here"}]'
"""Members in the order of the plugin, which is not that of the alphabet."""


class Numbers:
    """A Java source of numbers in a group whose workers change."""

    def __init__(self, group: MixedGroup, broker: SharedBroker) -> None:
        self.group = group
        self.servers = broker.bootstrap_servers
        self.topic = unique_name("numbers")
        create_topics(self.servers, [self.topic])

    def go_on(self, worker: MixedWorker, limit: int) -> None:
        """Let the task run at this worker until the number before `limit`, each number once."""
        config = {
            "connector.class": "io.pyconnect.tests.NumberSource",
            "tasks.max": "1",
            "topic": self.topic,
            "zone": "z",
            "limit": str(limit),
        }
        eventually(
            lambda: worker.call("PUT", "/connectors/numbers/config", config).status in (200, 201),
            WAIT_S,
        )
        eventually(lambda: len(self.seen()) >= limit, WAIT_S, self.seen)
        eventually(lambda: self.offset_keys() == {LIVE_KEY}, WAIT_S, self.offset_keys)
        assert self.seen() == list(range(limit))

    def seen(self) -> list[int]:
        values = [record.value() for record in read_topic(self.servers, self.topic, committed=True)]
        return [int((value or b"").decode().split()[1]) for value in values]

    def offset_keys(self) -> set[bytes]:
        """Return the keys of the offsets topic that have a value."""
        live: dict[bytes, bytes | None] = {}
        for record in read_topic(self.servers, f"{self.group.group_id}-offsets", committed=True):
            live[record.key() or b""] = record.value()
        return {key for key, value in live.items() if value is not None}


@pytest.fixture(params=chosen(["enabled"], long=["disabled"]))
def numbers(
    request: pytest.FixtureRequest,
    servers: Servers,
    kafka_broker: SharedBroker,
    kafka_runtime: KafkaRuntime,
    tmp_path: Path,
) -> Numbers:
    """At-least-once and exactly-once; an agent is alone in the group."""
    plugin_path = tmp_path / "plugins"
    plugin_path.mkdir()
    compiled_connectors(kafka_runtime, plugin_path)
    properties = {
        "plugin.path": str(plugin_path),
        "exactly.once.source.support": request.param,
        "offset.flush.interval.ms": "500",
    }
    return Numbers(MixedGroup(servers, kafka_broker, "agent", properties), kafka_broker)


def test_a_task_goes_on_at_a_java_worker_and_back(numbers: Numbers) -> None:
    """The agent writes first; both are members while the task moves."""
    agent = numbers.group.leader
    numbers.go_on(agent, 10)
    java = numbers.group.join()
    agent.process.stop()
    numbers.go_on(java, 20)
    agent.process.start()
    java.process.stop()
    numbers.go_on(agent, 30)


@pytest.mark.long(only=True)
def test_changed_offsets_are_found_by_a_java_worker(numbers: Numbers) -> None:
    """A client may give members in any order, for a partition with an offset or without one."""
    agent = numbers.group.leader
    numbers.go_on(agent, 10)
    for reset in (False, True):
        agent.do("PUT", "/connectors/numbers/stop")
        agent.wait_for_states("numbers", "STOPPED")
        if reset:
            agent.do("DELETE", "/connectors/numbers/offsets")
        change = {"partition": {"place": "here", "zone": "z"}, "offset": {"number": 9}}
        agent.do("PATCH", "/connectors/numbers/offsets", {"offsets": [change]})
        assert numbers.offset_keys() == {LIVE_KEY}
    java = numbers.group.join()
    agent.process.stop()
    assert java.get("/connectors/numbers/offsets")["offsets"][0]["offset"] == {"number": 9}
    java.do("PUT", "/connectors/numbers/resume")
    numbers.go_on(java, 20)
