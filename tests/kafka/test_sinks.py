"""A buffering sink in a rebalance, the purpose of `is_closing` (KIP-275), and a hanging sink."""

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
from tests.support.agents.agent import Agent, Agents, append_lines, source_config
from tests.support.audits.sinks import BUFFERING_SINK, HANGING_SINK
from tests.support.eventually import eventually, eventually_async
from tests.support.fakes.children_world import ChildrenWorld, children_world
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import committed_offset, create_topics

pytestmark = pytest.mark.kafka

PARTITIONS = 4
RECORDS = 100
"""Records of each partition before the rebalance, and again after it."""


@dataclass
class Outcome:
    """The result of one run: offsets by partition, and how often each value was seen."""

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
        """Return offsets by partition; negative if there is none."""
        group = f"connect-{self.sink}"
        return {
            partition: committed_offset(self.bootstrap_servers, group, self.topic, partition)
            for partition in range(PARTITIONS)
        }

    def members(self) -> int:
        """Return the number of members of the group that have partitions."""
        group = f"connect-{self.sink}"
        described = self.admin.describe_consumer_groups([group])[group].result()
        return sum(1 for member in described.members if member.assignment.topic_partitions)


def put_values(directory: Path) -> list[str]:
    path = directory / "put"
    return path.read_text().splitlines() if path.exists() else []


async def rebalance(
    kafka: Kafka, directory: Path, *, finish: bool, strategy: str, w: ChildrenWorld
) -> Outcome:
    """Fill the buffers of one task by half, add a second task, write the rest, and stop both."""
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
    first = w.start_task(config)
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
        # Commits come only from a rebalance or an end, not after an interval.
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
    """A sink that finishes its buffers when it is closing has each record in one file, once."""
    outcome = outcome_of(finish=True, assignor=assignor)
    revoked = PARTITIONS if assignor == RANGE else PARTITIONS // 2
    offsets = sorted(outcome.committed_after_rebalance.values())
    assert offsets[PARTITIONS - revoked :] == [RECORDS] * revoked
    # Partitions that do not move keep their buffers, uncommitted.
    assert all(offset < 0 for offset in offsets[: PARTITIONS - revoked])
    assert set(outcome.committed.values()) == {2 * RECORDS}
    assert len(outcome.put) == len(outcome.in_files) == 2 * PARTITIONS * RECORDS
    assert set(outcome.put.values()) == {1}
    assert set(outcome.in_files.values()) == {1}


def test_a_sink_that_knows_nothing_of_closing_makes_no_progress(
    outcome_of: Callable[..., Outcome],
) -> None:
    """A sink that ignores `is_closing` loses its buffers in a rebalance and commits nothing."""
    outcome = outcome_of(finish=False, assignor=RANGE)
    assert all(offset < 0 for offset in outcome.committed_after_rebalance.values())
    assert all(offset < 0 for offset in outcome.committed.values())
    again = {value for value, times in outcome.put.items() if times > 1}
    assert again == {value for value in outcome.put if value.startswith("before")}
    assert len(again) == PARTITIONS * RECORDS
    assert outcome.in_files == Counter()


WAIT_S = 150
NEIGHBOURS = ("a", "b", "c")
QUICK = {
    # The test compares the pids of connectors.
    "agent.connector.sleep": "false",
    "task.shutdown.graceful.timeout.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
    "offset.flush.interval.ms": "500",
    # The group should remove a killed consumer as soon as a broker allows.
    "consumer.session.timeout.ms": "6000",
    "consumer.heartbeat.interval.ms": "1000",
}


@pytest.fixture
def cluster(agents: Agents) -> tuple[Agent, Agent]:
    options = {"group_id": unique_name("hung"), "properties": QUICK}
    return agents.start(**options), agents.start(**options)


def processes(agent: Agent) -> dict[tuple[str, int | None], int]:
    """Return the pid of each connector and task except the sink's."""
    return {
        (child["connector"], child["task"]): child["pid"]
        for child in agent.get("/agent/tasks")
        if child["connector"] != "sink"
    }


def owner(agents: tuple[Agent, Agent]) -> str:
    """Return the worker id of the sink's task."""
    worker: str = agents[0].get("/connectors/sink/status")["tasks"][0]["worker_id"]
    return worker


def of_url(worker_id: str, agents: tuple[Agent, Agent]) -> tuple[Agent, Agent]:
    """Return the agent of that id and the other one."""
    first, second = agents
    return (first, second) if first.url.endswith(worker_id) else (second, first)


def settled(agents: tuple[Agent, Agent]) -> bool:
    """Return whether all runs, both agents have work, and no rebalance is under way."""
    names = ("sink", *NEIGHBOURS)
    running = all(agents[0].states(name) == ("RUNNING", "RUNNING") for name in names)
    about = [agent.get("/agent") for agent in agents]
    return (
        running
        and all(processes(agent) for agent in agents)
        and all(worker["state"] == "active" for worker in about)
        and len({worker["generation"] for worker in about}) == 1
    )


def test_a_hung_put_is_killed_and_its_task_goes_on_without_touching_its_neighbours(
    cluster: tuple[Agent, Agent], kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A task with a hung put is killed and goes on, and neighbours keep their processes."""
    topic, flag, out = unique_name("hung"), tmp_path / "flag", tmp_path / "out"
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})

    def hang(value: str) -> None:
        flag.touch()
        producer.produce(topic, value.encode())
        assert producer.flush(30) == 0
        taken = tmp_path / "flag.taken"
        eventually(taken.exists, WAIT_S)
        taken.unlink()

    def written(*values: str) -> bool:
        # Uncommitted records come again.
        return out.exists() and list(dict.fromkeys(out.read_text().split())) == list(values)

    append_lines(tmp_path / "lines", 1, 1)
    for name in NEIGHBOURS:
        cluster[0].create(name, source_config(tmp_path / "lines", unique_name(name)))
    sink = {"connector.class": HANGING_SINK, "topics": topic, "file": str(out), "flag": str(flag)}
    cluster[0].create("sink", sink)
    eventually(lambda: settled(cluster), WAIT_S, lambda: str([processes(a) for a in cluster]))
    here, other = of_url(owner(cluster), cluster)
    before = processes(here), processes(other)

    hang("first")
    assert here.call("POST", "/agent/tasks/sink/0/kill", {"force": False}).status == 202
    eventually(lambda: here.states("sink") == ("RUNNING", "FAILED"), WAIT_S)
    restart = "/connectors/sink/tasks/0/restart"
    # Clients repeat a 409, the answer until the other worker has read the newest configs.
    eventually(
        lambda: other.call("POST", restart).status == 204,
        WAIT_S,
        lambda: str(other.call("POST", restart).body),
    )
    eventually(lambda: written("first"), WAIT_S)
    assert (processes(here), processes(other)) == before

    hang("second")
    assert here.call("POST", "/agent/drain").status == 202
    eventually(lambda: written("first", "second"), WAIT_S)
    assert of_url(owner((other, here)), cluster)[0] is other
    assert before[1].items() <= processes(other).items()
