"""The purpose of `is_closing` (KIP-275): a buffering sink in a rebalance, with a real broker."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.audits.sinks import BUFFERING_SINK
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import committed_offset, create_topics

pytestmark = pytest.mark.kafka

PARTITIONS = 4
RECORDS = 100
"""Of each partition before the rebalance, and again after it."""


@dataclass
class Outcome:
    """The result of one run.

    Offsets by partition, and the number of times that each value was seen.
    """

    committed_after_rebalance: dict[int, int] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    put: Counter[str] = field(default_factory=Counter)
    in_files: Counter[str] = field(default_factory=Counter)


class Kafka:
    """A topic of several partitions and the offsets of a sink's group."""

    def __init__(self, bootstrap_servers: str, topic: str, sink: str) -> None:
        self.bootstrap_servers, self.topic, self.sink = bootstrap_servers, topic, sink
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        create_topics(bootstrap_servers, [topic], partitions=PARTITIONS)

    def produce(self, batch: str) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for partition in range(PARTITIONS):
            for number in range(RECORDS):
                producer.produce(self.topic, f"{batch}-{partition}-{number}", partition=partition)
        assert producer.flush(30) == 0

    def committed(self) -> dict[int, int]:
        """Offset by partition; negative when there is none."""
        group = f"connect-{self.sink}"
        return {
            partition: committed_offset(self.bootstrap_servers, group, self.topic, partition)
            for partition in range(PARTITIONS)
        }

    def members(self) -> int:
        """Members of the group that have partitions."""
        group = f"connect-{self.sink}"
        described = self.admin.describe_consumer_groups([group])[group].result()
        return sum(1 for member in described.members if member.assignment.topic_partitions)


def put_values(directory: Path) -> list[str]:
    path = directory / "put"
    return path.read_text().splitlines() if path.exists() else []


async def rebalance(
    kafka: Kafka, directory: Path, *, finish: bool, strategy: str, w: ChildrenWorld
) -> Outcome:
    """Fill the buffers of one task half, add a second task, go on, and stop both."""
    config = {
        "name": kafka.sink,
        "connector.class": BUFFERING_SINK,
        "tasks.max": "2",
        "topics": kafka.topic,
        "directory": str(directory),
        "records.per.file": str(RECORDS * 10),
        "finish.when.closing": "true" if finish else "false",
        "consumer.override.heartbeat.interval.ms": "300",
        "consumer.override.partition.assignment.strategy": strategy,
    }
    outcome = Outcome()
    kafka.produce("before")
    first = await w.run_task(config)
    expected = PARTITIONS * RECORDS
    await eventually_async(lambda: len(put_values(directory)) == expected)
    second = ConnectorTaskId(first.connector, 1)
    w.children.tasks.start(second, config, config, TargetState.STARTED)
    await w.task_is(second, State.RUNNING)
    await eventually_async(lambda: kafka.members() == 2)
    outcome.committed_after_rebalance = kafka.committed()
    kafka.produce("after")
    await eventually_async(
        lambda: sum(v.startswith("after") for v in set(put_values(directory))) == expected, 30
    )
    await w.children.stop()
    outcome.committed = kafka.committed()
    outcome.put.update(put_values(directory))
    for path in directory.glob("*.json"):
        outcome.in_files.update(json.loads(path.read_text()))
    return outcome


@pytest.fixture
def outcome_of(
    kafka_broker: SharedBroker, unique_name: Callable[[str], str], tmp_path: Path
) -> Callable[..., Outcome]:
    def made(*, finish: bool, assignor: str) -> Outcome:
        kafka = Kafka(kafka_broker.bootstrap_servers, unique_name("buffered"), unique_name("sink"))
        # No commit comes by time: what is committed, a rebalance or an end has committed.
        properties = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "offset.flush.interval.ms": "3600000",
        }

        async def rebalanced() -> Outcome:
            async with children_world(properties) as w:
                return await rebalance(kafka, tmp_path, finish=finish, strategy=assignor, w=w)

        return asyncio.run(rebalanced())

    return made


RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"


@pytest.mark.parametrize("assignor", [RANGE, COOPERATIVE])
def test_a_sink_that_finishes_when_closing_loses_and_repeats_nothing(
    outcome_of: Callable[..., Outcome], assignor: str
) -> None:
    """Its progress survives the rebalance, each record is put once and is in one file."""
    outcome = outcome_of(finish=True, assignor=assignor)
    revoked = PARTITIONS if assignor == RANGE else PARTITIONS // 2
    offsets = sorted(outcome.committed_after_rebalance.values())
    assert offsets[PARTITIONS - revoked :] == [RECORDS] * revoked
    # Partitions that stay where they are keep their buffers, uncommitted.
    assert all(offset < 0 for offset in offsets[: PARTITIONS - revoked])
    assert set(outcome.committed.values()) == {2 * RECORDS}
    assert len(outcome.put) == len(outcome.in_files) == 2 * PARTITIONS * RECORDS
    assert set(outcome.put.values()) == {1}
    assert set(outcome.in_files.values()) == {1}


def test_a_sink_that_knows_nothing_of_closing_makes_no_progress(
    outcome_of: Callable[..., Outcome],
) -> None:
    """The rebalance throws its buffers away: all is put again, and nothing is ever in a file."""
    outcome = outcome_of(finish=False, assignor=RANGE)
    assert all(offset < 0 for offset in outcome.committed_after_rebalance.values())
    assert all(offset < 0 for offset in outcome.committed.values())
    again = {value for value, times in outcome.put.items() if times > 1}
    assert again == {value for value in outcome.put if value.startswith("before")}
    assert len(again) == PARTITIONS * RECORDS
    assert outcome.in_files == Counter()
