"""Exactly-once sources in a group of a Java worker and an agent; either may lead (KIP-618).

FileStreamSource has the same name, the same offsets and one task on both. A test that wants a
fencing round therefore writes a task count record of three itself.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from pyconnect_agent.core.internal_topics import config_records
from tests.support.agents.agent import source_config
from tests.support.agents.mixed_group import MixedGroup
from tests.support.chaos.chaos_lines import LineReader, SteadyLines
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import chosen
from tests.support.servers.cluster import worker_of
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.topics import create_topics, read_topic

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
INTERVAL = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "2000"}
TASKS_OF_OLD = 3
WAIT_S = 150


@pytest.fixture(params=["java", "agent"])
def group(
    request: pytest.FixtureRequest, module_servers: Servers, kafka_broker: SharedBroker
) -> Iterator[MixedGroup]:
    """Two workers with exactly-once enabled; the parameter names the kind of the leader."""
    made = MixedGroup(module_servers, kafka_broker, request.param, ENABLED)
    workers = made.both
    yield made
    for worker in workers:
        worker.process.stop()


class Sources:
    """File connectors, a writer that appends lines to their files, and a reader of their topics."""

    def __init__(
        self, group: MixedGroup, kafka_broker: SharedBroker, directory: Path, count: int
    ) -> None:
        self.names = [f"lines-{number}" for number in range(count)]
        self.topics = {name: unique_name(name) for name in self.names}
        self.files = {name: directory / f"{name}.txt" for name in self.names}
        self.reader = LineReader(kafka_broker.bootstrap_servers, list(self.topics.values()))
        self._group = group
        self._lines = SteadyLines(list(self.files.values()), 50, seed=1)
        create_topics(kafka_broker.bootstrap_servers, list(self.topics.values()))
        for name in self.names:
            self.files[name].touch()
            group.leader.create(name, self.config(name))
        self._lines.start()

    def config(self, name: str, **settings: str) -> dict[str, str]:
        return {
            **source_config(self.files[name], self.topics[name]),
            "exactly.once.support": "required",
            "producer.override.transaction.timeout.ms": "10000",
            **INTERVAL,
            **settings,
        }

    def wait_for_more(self) -> None:
        """Wait until readers have seen a line of each connector that is not yet written now."""
        lasts = {name: self._lines.written[self.files[name]] for name in self.names}
        for name, last in lasts.items():
            seen = self.reader.seen[self.topics[name]]
            eventually(lambda seen=seen, last=last: self._read() and seen[-1:] > [last], WAIT_S)

    def check(self) -> None:
        """Check that every line ever written is seen once and in order."""
        self._lines.finish()
        for name in self.names:
            last = self._lines.written[self.files[name]]
            seen = self.reader.seen[self.topics[name]]
            eventually(
                lambda seen=seen, last=last: self._read() and seen[-1:] == [last],
                WAIT_S,
                lambda seen=seen, last=last, name=name: (
                    f"{last} of {name}, but {seen[-3:]}; {self._group.owners(name)}"
                ),
            )
            assert seen == list(range(1, last + 1)), name
        assert self.reader.read(2.0) == 0

    def close(self) -> None:
        self._lines.finish()
        self.reader.close()

    def _read(self) -> bool:
        self.reader.read(0.2)
        return True


@pytest.fixture
def sources(group: MixedGroup, kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Sources]:
    made = Sources(group, kafka_broker, tmp_path, 2)
    yield made
    made.close()


def owners_of_tasks(group: MixedGroup, sources: Sources) -> dict[str, str]:
    return {name: group.owners(name)[1] for name in sources.names}


def all_run(group: MixedGroup, sources: Sources) -> None:
    for name in sources.names:
        group.wait_for_states(name, "RUNNING", "RUNNING")


def zombie(kafka_broker: SharedBroker, transactional_id: str, topic: str) -> Producer:
    """A producer with an open transaction."""
    producer = Producer(
        {"bootstrap.servers": kafka_broker.bootstrap_servers, "transactional.id": transactional_id}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value="0", partition=0)
    producer.flush(30)
    return producer


def claim_three_old_tasks(group: MixedGroup, kafka_broker: SharedBroker, name: str) -> None:
    """Write the task count record of a connector that once had three tasks."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    record = config_records.task_count_record(name, TASKS_OF_OLD)
    producer.produce(f"{group.group_id}-configs", key=record.key, value=record.value)
    assert producer.flush(WAIT_S) == 0


def task_count(group: MixedGroup, kafka_broker: SharedBroker, name: str) -> int:
    """Return the number in the last task count record."""
    key = config_records.task_count_record(name, 1).key
    records = read_topic(
        kafka_broker.bootstrap_servers, f"{group.group_id}-configs", committed=True
    )
    values = [record.value() for record in records if record.key() == key]
    count: int = json.loads(values[-1] or b"")["task-count"]
    return count


@pytest.mark.long(only=True)
@pytest.mark.parametrize("group", ["java", "agent"], indirect=True)
def test_the_leader_fences_for_tasks_of_either_kind(
    group: MixedGroup, sources: Sources, kafka_broker: SharedBroker
) -> None:
    """New tasks start after the leader has fenced the old ids; readers see no zombie's record."""
    all_run(group, sources)
    assert set(owners_of_tasks(group, sources).values()) == {worker_of(w) for w in group.both}
    sources.wait_for_more()
    for number, name in enumerate(sources.names):
        claim_three_old_tasks(group, kafka_broker, name)
        # The running task has the first id, which its successor fences.
        zombies = [
            zombie(kafka_broker, f"{group.group_id}-{name}-{task}", sources.topics[name])
            for task in range(1, TASKS_OF_OLD)
        ]
        asked = group.both[number % 2]
        # Java's task keeps what it has read beyond a full batch until more lines come.
        config = sources.config(name, **{"batch.size": "5000"})
        asked.do("PUT", f"/connectors/{name}/config", config)
        # RUNNING and new lines may be the old task's; a new task count ends the fencing round.
        eventually(lambda name=name: task_count(group, kafka_broker, name) == 1, WAIT_S)
        group.wait_for_states(name, "RUNNING", "RUNNING")
        sources.wait_for_more()
        for producer in zombies:
            with pytest.raises(KafkaException):
                producer.commit_transaction(30)
    assert set(owners_of_tasks(group, sources).values()) == {worker_of(w) for w in group.both}
    sources.check()


@pytest.mark.long
@pytest.mark.parametrize("group", chosen(("java",), long=("agent",)), indirect=True)
def test_tasks_move_between_the_kinds(group: MixedGroup, sources: Sources) -> None:
    """No line is lost when the follower and then the leader are killed in transactions."""
    all_run(group, sources)
    sources.wait_for_more()
    leader, follower = group.both
    follower.process.kill()
    for name in sources.names:
        eventually(
            lambda name=name: leader.states(name) == ("RUNNING", "RUNNING"),
            WAIT_S,
            lambda name=name: leader.get(f"/connectors/{name}/status"),
        )
    sources.wait_for_more()
    follower.process.start()
    eventually(
        lambda: worker_of(follower) in owners_of_tasks(group, sources).values(),
        WAIT_S,
        lambda: owners_of_tasks(group, sources),
    )
    all_run(group, sources)
    sources.wait_for_more()
    leader.process.kill()
    group.leader, group.follower = follower, None
    for name in sources.names:
        eventually(
            lambda name=name: (
                follower.states(name) == ("RUNNING", "RUNNING")
                and follower.get(f"/connectors/{name}/status")["tasks"][0]["worker_id"]
                == worker_of(follower)
            ),
            WAIT_S,
            lambda name=name: follower.get(f"/connectors/{name}/status"),
        )
    sources.wait_for_more()
    sources.check()
