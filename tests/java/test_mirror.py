"""MirrorMaker's connectors in an agent between two brokers, with a killed process."""

import time
from collections import defaultdict
from collections.abc import Mapping

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.agents.agent import Agent, Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import MIRROR, location_of
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import (
    aborted_transactions,
    committed_offset,
    create_topics,
    open_records,
    produce,
    read_topic,
)

pytestmark = [pytest.mark.java, pytest.mark.timeout(800)]

WAIT_S = 150
PARTITIONS = (0, 1, 2)
STEP = 300
GROUP_STEP = 50
ROUND_S = 15
# The transaction must still be open when its process is killed, however slow the machine is.
NEVER = {"transaction.boundary.interval.ms": "3600000"}
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
BEATS = "heartbeats"
MIRROR_CLASSES = "org.apache.kafka.connect.mirror"


@pytest.fixture
def agent(agents: Agents) -> Agent:
    properties = {
        "plugin.path": str(location_of(MIRROR).parent),
        "exactly.once.source.support": "enabled",
        **{f"{kind}.converter": BYTES for kind in ("key", "value", "header")},
    }
    return agents.start(properties=properties)


@pytest.mark.long(only=True)
def test_records_offsets_and_groups_are_mirrored(
    agent: Agent, other_broker: SharedBroker, kafka_broker: SharedBroker
) -> None:
    """Each record is copied once to the same partition, although a process is killed.

    A group that moves to the target continues where it was, or shortly before.
    """
    source, target = other_broker.bootstrap_servers, kafka_broker.bootstrap_servers
    alias, topic, group = unique_name("origin"), unique_name("orders"), unique_name("readers")
    clusters = {
        "source.cluster.alias": alias,
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "replication.factor": "1",
    }
    mirrored = f"{alias}.{topic}"
    for bootstrap, name in ((source, topic), (target, mirrored)):
        create_topics(bootstrap, [name], partitions=len(PARTITIONS))
    records = Records(source, topic)
    records.write(STEP)
    config = _records_config(clusters, topic)
    agent.create("records", config)
    agent.create("beats", _config("Heartbeat", clusters, emit_heartbeats_interval_seconds="1"))
    _await_copies(agent, target, mirrored, records)
    agent.start_with("records", config | NEVER, "RUNNING", "RUNNING")
    _kill_in_transaction(agent, "records", target, mirrored, records)
    agent.start_with("records", config, "RUNNING", "RUNNING")
    _await_copies(agent, target, mirrored, records)
    # MirrorMaker makes no task for groups until one exists.
    _commit(source, group, topic, records.written)
    agent.create("groups", _groups_config(clusters, group))
    agent.wait_for_states("groups", "RUNNING", "RUNNING", timeout_s=WAIT_S)

    def moves() -> bool:
        """Let the group read on at the source; return whether it may continue at the target.

        MirrorMaker reads in the background where records went, and may keep only the newest of
        these places: it translates no offset from before them. It writes ten places at a time,
        and the others with later records.
        """
        records.write(GROUP_STEP)
        has_read = records.written
        _commit(source, group, topic, has_read)
        records.write(10)
        _await_copies(agent, target, mirrored, records)
        return eventually(
            lambda: all(0 < place <= has_read for place in _next(target, group, mirrored)),
            ROUND_S,
            lambda: (has_read, _next(target, group, mirrored)),
        )

    eventually(
        moves,
        WAIT_S,
        lambda: (
            _next(target, group, mirrored),
            read_topic(target, f"{alias}.checkpoints.internal")[-3:],
        ),
    )
    assert _by_partition(target, mirrored) == _by_partition(source, topic)
    assert aborted_transactions(target, [mirrored]) == 1
    eventually(
        lambda: any(alias.encode() in (beat.key() or b"") for beat in read_topic(target, BEATS)),
        WAIT_S,
    )
    assert agent.states("groups") == agent.states("beats") == ("RUNNING", "RUNNING")


def _config(kind: str, clusters: Mapping[str, str], **settings: str) -> dict[str, str]:
    return {
        "connector.class": f"{MIRROR_CLASSES}.Mirror{kind}Connector",
        **clusters,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def _records_config(clusters: Mapping[str, str], topic: str) -> dict[str, str]:
    return {
        **_config("Source", clusters, topics=topic, exactly_once_support="required"),
        "consumer.isolation.level": "read_committed",
        "consumer.max.poll.records": "50",
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "1000",
        "offset.lag.max": "20",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
    }


def _groups_config(clusters: Mapping[str, str], group: str) -> dict[str, str]:
    return {
        **_config("Checkpoint", clusters, groups=group),
        "checkpoints.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
    }


class Records:
    """Records of a topic; number n of each partition has the value n."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._began_ms = int(time.time() * 1000)
        self.written = 0

    def write(self, count: int) -> None:
        """Write `count` more records into each partition."""
        first, self.written = self.written, self.written + count
        for partition in PARTITIONS:
            produce(
                self._bootstrap_servers,
                self._topic,
                *(str(number).encode() for number in range(first, self.written)),
                partition=partition,
                key=b"\x00\xff",
                headers=[("from", b"partition %d" % partition), ("empty", None)],
                # Brokers delete records older than the topic's retention, so the timestamp is
                # recent.
                timestamp=self._began_ms - 60_000 + first,
            )


def _commit(bootstrap_servers: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group})
    try:
        places = [TopicPartition(topic, partition, offset) for partition in PARTITIONS]
        consumer.commit(offsets=places, asynchronous=False)
    finally:
        consumer.close()


def _kill_in_transaction(
    agent: Agent, name: str, target: str, mirrored: str, records: Records
) -> None:
    """Kill the task's Java process while records wait for their commit."""
    records.write(10)
    eventually(
        lambda: any(open_records(target, mirrored, partition) for partition in PARTITIONS),
        WAIT_S,
        lambda: agent.get(f"/connectors/{name}/status"),
    )
    (task,) = [
        each for each in agent.get("/agent/tasks") if (each["connector"], each["task"]) == (name, 0)
    ]
    found = psutil.Process(int(task["pid"])).children(recursive=True)
    (java,) = [process for process in found if process.name() == "java"]
    java.kill()
    agent.wait_for_states(name, "RUNNING", "FAILED", timeout_s=WAIT_S)


def _await_copies(agent: Agent, target: str, mirrored: str, records: Records) -> None:
    eventually(
        lambda: _count(target, mirrored) == records.written * len(PARTITIONS),
        WAIT_S,
        lambda: (_count(target, mirrored), agent.get("/connectors/records/status")),
    )


def _by_partition(bootstrap_servers: str, topic: str) -> dict[int, list[tuple[object, ...]]]:
    """Return the fields of each record that must not change, by partition and in order."""
    found = defaultdict(list)
    for record in read_topic(bootstrap_servers, topic, committed=True):
        found[record.partition() or 0].append(
            (record.key(), record.value(), record.headers(), record.timestamp())
        )
    return dict(found)


def _count(bootstrap_servers: str, topic: str) -> int:
    return len(read_topic(bootstrap_servers, topic, committed=True))


def _next(bootstrap_servers: str, group: str, topic: str) -> list[int]:
    """Return the number of the next record to read of each partition; -1 if unknown."""
    offsets = [committed_offset(bootstrap_servers, group, topic, each) for each in PARTITIONS]
    if min(offsets) < 0:
        return [-1]
    found: dict[int, int] = {}
    for record in read_topic(bootstrap_servers, topic, committed=True):
        partition = record.partition() or 0
        if (record.offset() or 0) >= offsets[partition]:
            found.setdefault(partition, int(record.value() or b""))
    return [found.get(partition, -1) for partition in PARTITIONS]
