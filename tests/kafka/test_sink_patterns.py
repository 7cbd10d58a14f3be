"""Topics of sinks that match a pattern, or are deleted and come back, with a real broker."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from pyconnect_agent.core.ids import State
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, produce

pytestmark = pytest.mark.kafka


class Topics:
    """Topics whose names begin alike."""

    def __init__(self, bootstrap_servers: str, prefix: str) -> None:
        self.bootstrap_servers, self.prefix = bootstrap_servers, prefix
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def create(self, *endings: str) -> None:
        create_topics(self.bootstrap_servers, [f"{self.prefix}{ending}" for ending in endings])

    def delete(self, ending: str) -> None:
        for future in self.admin.delete_topics([f"{self.prefix}{ending}"]).values():
            future.result()

    def produce(self, ending: str, value: str) -> None:
        produce(self.bootstrap_servers, f"{self.prefix}{ending}", value.encode())

    def sink(self, name: str, pattern: str, file: Path) -> dict[str, str]:
        return {
            "name": name,
            "connector.class": "FileStreamSink",
            "file": str(file),
            "topics.regex": pattern,
            "consumer.override.metadata.max.age.ms": "300",
        }


class SinkGroup:
    """The offsets that a sink's group has committed for partitions 0."""

    def __init__(self, bootstrap_servers: str, group_id: str) -> None:
        self._group_id = group_id
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def offset(self, topic: str) -> int:
        asked = ConsumerGroupTopicPartitions(self._group_id, [TopicPartition(topic, 0)])
        (future,) = self._admin.list_consumer_group_offsets([asked]).values()
        (found,) = future.result().topic_partitions
        return int(found.offset)


@pytest.fixture
def topics(kafka_broker: SharedBroker, unique_name: Callable[[str], str]) -> Topics:
    return Topics(kafka_broker.bootstrap_servers, unique_name("topics"))


def lines_of(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines()) if path.exists() else []


async def test_a_pattern_has_javas_meaning(
    topics: Topics, unique_name: Callable[[str], str], tmp_path: Path
) -> None:
    """Look-ahead, alternatives, a class minus another: none of it is known to the client."""
    topics.create("-a1", "-b2", "-x3", "-internal", "-a1-more")
    for ending in ("-a1", "-b2", "-x3", "-internal", "-a1-more"):
        topics.produce(ending, ending)
    file = tmp_path / "out"
    pattern = topics.prefix + r"-(?!internal)([\p{Lower}&&[^x]]\d|nothing)"

    properties = {"bootstrap.servers": topics.bootstrap_servers}
    async with children_world(properties) as w:
        await w.run_task(topics.sink(unique_name("sink"), pattern, file))
        await eventually_async(lambda: len(lines_of(file)) == 2)
        await w.children.stop()
    assert lines_of(file) == ["-a1", "-b2"]


async def test_topics_that_come_and_go_are_followed(
    topics: Topics, unique_name: Callable[[str], str], tmp_path: Path
) -> None:
    """From none at the start over two to one; the task runs all the time."""
    file = tmp_path / "out"

    properties = {"bootstrap.servers": topics.bootstrap_servers}
    async with children_world(properties) as w:
        sink = await w.run_task(topics.sink(unique_name("sink"), topics.prefix + ".*", file))
        await w.task_is(sink, State.RUNNING)
        topics.create("-a")
        topics.produce("-a", "a1")
        await eventually_async(lambda: lines_of(file) == ["a1"])
        topics.create("-b")
        topics.produce("-b", "b1")
        await eventually_async(lambda: lines_of(file) == ["a1", "b1"])
        topics.delete("-a")
        topics.produce("-b", "b2")
        await eventually_async(lambda: lines_of(file) == ["a1", "b1", "b2"])
        await w.children.stop()
        assert w.listener.task_states(sink) == [State.RUNNING, State.UNASSIGNED]


async def test_a_topic_of_a_list_may_be_deleted_and_come_back(
    topics: Topics, unique_name: Callable[[str], str], tmp_path: Path
) -> None:
    """The others go on meanwhile; the new one is read from its beginning, however short it is."""
    file = tmp_path / "out"
    connector = unique_name("sink")
    config = topics.sink(connector, "", file)
    del config["topics.regex"]
    config["topics"] = f"{topics.prefix}-a,{topics.prefix}-b"
    topics.create("-a", "-b")
    for value in ("a1", "a2", "a3"):
        topics.produce("-a", value)
    committed = SinkGroup(topics.bootstrap_servers, f"connect-{connector}")

    properties = {
        "bootstrap.servers": topics.bootstrap_servers,
        "offset.flush.interval.ms": "300",
    }
    async with children_world(properties) as w:
        sink = await w.run_task(config)
        await eventually_async(lambda: lines_of(file) == ["a1", "a2", "a3"])
        await eventually_async(lambda: committed.offset(f"{topics.prefix}-a") == 3)
        topics.delete("-a")
        topics.produce("-b", "b1")
        await eventually_async(lambda: lines_of(file) == ["a1", "a2", "a3", "b1"])
        await eventually_async(lambda: committed.offset(f"{topics.prefix}-b") == 1)
        topics.create("-a")
        topics.produce("-a", "a4")
        await eventually_async(lambda: lines_of(file) == ["a1", "a2", "a3", "a4", "b1"])
        await eventually_async(lambda: committed.offset(f"{topics.prefix}-a") == 1)
        await w.children.stop()
        assert w.listener.task_states(sink) == [State.RUNNING, State.UNASSIGNED]
