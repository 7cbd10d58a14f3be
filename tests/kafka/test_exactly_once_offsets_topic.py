"""An offsets topic of a source connector's own, with and without exactly-once support (KIP-618)."""

import json
from pathlib import Path

import pytest

from tests.support.agents.agent import Agents, append_lines, source_config
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import OffsetTopics

pytestmark = pytest.mark.kafka

SUPPORT = "exactly.once.source.support"
QUICK = {"offset.flush.interval.ms": "500", "task.shutdown.graceful.timeout.ms": "5000"}


@pytest.fixture
def own_topic() -> str:
    return unique_name("own-offsets")


@pytest.fixture
def topics(kafka_broker: SharedBroker) -> OffsetTopics:
    return OffsetTopics(kafka_broker.bootstrap_servers)


def key_of(connector: str, number: int = 0) -> bytes:
    return json.dumps([connector, {"number": str(number)}], separators=(",", ":")).encode()


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_offsets_are_in_the_own_topic_and_copied_to_the_workers(
    agents: Agents, sequences: Sequences, topics: OffsetTopics, own_topic: str, support: str
) -> None:
    """The topic is made as the worker's settings say; a restarted task goes on from it."""
    group = unique_name("own")
    properties = {
        **QUICK,
        SUPPORT: support,
        "offset.storage.partitions": "3",
        "offset.storage.segment.ms": "7654321",
    }
    agent = agents.start(group_id=group, properties=properties)
    config = {
        **sequences.config(),
        "exactly.once.support": "requested",
        "offsets.storage.topic": own_topic,
    }
    agent.create("numbers", config)
    agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    sequences.allow(30)
    sequences.check(30)
    last = {key_of("numbers"): {"last": 30}}
    eventually(lambda: topics.live(own_topic) == last, WAIT_S, lambda: topics.live(own_topic))
    worker_topic = f"{group}-offsets"
    eventually(lambda: topics.live(worker_topic) == last, WAIT_S)
    settings = topics.settings(own_topic)
    assert (settings["cleanup.policy"], settings["segment.ms"]) == ("compact", "7654321")
    assert topics.partitions(own_topic) == 3
    assert agent.call("POST", "/connectors/numbers/tasks/0/restart").status == 204
    sequences.allow(50)
    sequences.check(50)


def test_rest_shows_the_own_topics_offsets_before_the_workers(
    agents: Agents, topics: OffsetTopics, own_topic: str, tmp_path: Path
) -> None:
    """A partition that only the worker's topic has shows through; a newer own value wins."""
    group = unique_name("own")
    agent = agents.start(group_id=group, properties=QUICK)
    lines = tmp_path / "lines"
    append_lines(lines, 1, 5)
    config = source_config(lines, unique_name("lines"), offsets_storage_topic=own_topic)
    agent.create("file", config)
    key = json.dumps(["file", {"filename": str(lines)}], separators=(",", ":")).encode()
    size = lines.stat().st_size
    eventually(lambda: topics.live(f"{group}-offsets") == {key: {"position": size}}, WAIT_S)
    assert topics.live(own_topic) == {key: {"position": size}}
    topics.write(f"{group}-offsets", key, b'{"position":3}')
    topics.write(f"{group}-offsets", b'["file",{"filename":"other"}]', b'{"position":9}')
    shown = agent.get("/connectors/file/offsets")["offsets"]
    found = {entry["partition"]["filename"]: entry["offset"]["position"] for entry in shown}
    assert found == {str(lines): size, "other": 9}


@pytest.mark.parametrize(
    ("support", "place"),
    [("disabled", "own topic"), ("enabled", "own topic"), ("enabled", "worker's topic")],
)
def test_a_key_of_another_form_is_kept_and_doubles_are_tombstoned(
    agents: Agents,
    sequences: Sequences,
    topics: OffsetTopics,
    own_topic: str,
    support: str,
    place: str,
) -> None:
    """Readers that compare bytes would see two offsets of one partition."""
    group = unique_name("keys")
    agent = agents.start(group_id=group, properties={**QUICK, SUPPORT: support})
    topic = f"{group}-offsets"
    config = {**sequences.config(), "exactly.once.support": "requested"}
    if place == "own topic":
        config["offsets.storage.topic"] = topic = own_topic
        topics.create(topic)
    older, newer = b'["numbers" ,{"number":"0"}]', b'["numbers", {"number": "0"}]'
    for number, key in enumerate((older, newer), 7):
        topics.write(topic, key, b'{"last":%d}' % number, timestamp_ms=number)
    agent.create("numbers", config)
    sequences.allow(20)
    sequences.wait_for(20)
    expected = {newer: {"last": 20}}
    eventually(lambda: topics.live(topic) == expected, WAIT_S, lambda: topics.live(topic))
    assert sequences.seen()["0"] == list(range(9, 21))


@pytest.mark.long(only=True)
def test_other_clients_of_a_connector_reach_another_cluster(
    agents: Agents,
    sequences: Sequences,
    topics: OffsetTopics,
    other_broker: SharedBroker,
    tmp_path: Path,
) -> None:
    """Records and offsets share transactions there, under the worker's topic name if no other.

    Offsets are copied to the worker's cluster, from where a worker that is not `enabled` goes on.
    """
    other = other_broker.bootstrap_servers
    there, remote = OffsetTopics(other), Sequences(other, tmp_path)
    group = unique_name("far")
    agent = agents.start(group_id=group, properties={**QUICK, SUPPORT: "enabled"})
    clients = ("producer", "consumer", "admin")
    config = {
        **remote.config(),
        "exactly.once.support": "requested",
        **{f"{client}.override.bootstrap.servers": other for client in clients},
    }
    agent.create("numbers", config)
    remote.allow(40)
    remote.check(40)
    topic, last = f"{group}-offsets", {key_of("numbers"): {"last": 40}}
    eventually(lambda: there.live(topic) == last, WAIT_S)
    values = [json.loads(value or b"")["last"] for _, value in there.records(topic)]
    assert values == sorted(values)
    assert all(value % 10 == 0 for value in values)
    eventually(lambda: topics.live(topic) == last, WAIT_S)
    agent.process.stop()
    agent = agents.start(group_id=group, properties={**QUICK, SUPPORT: "disabled"})
    agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    remote.allow(60)
    remote.check(60)


def test_another_spelling_of_the_brokers_is_the_same_topic(
    agents: Agents, sequences: Sequences, topics: OffsetTopics, kafka_broker: SharedBroker
) -> None:
    """No offset is copied into the topic itself, where it would outlive an aborted transaction."""
    group = unique_name("spelling")
    agent = agents.start(group_id=group, properties={**QUICK, SUPPORT: "enabled"})
    spelled = kafka_broker.bootstrap_servers.replace("127.0.0.1", "localhost")
    assert spelled != kafka_broker.bootstrap_servers
    clients = ("producer", "consumer", "admin")
    overrides = {f"{client}.override.bootstrap.servers": spelled for client in clients}
    agent.create("numbers", {**sequences.config(), **overrides})
    sequences.allow(30)
    sequences.check(30)
    assert agent.call("DELETE", "/connectors/numbers").status == 204
    eventually(lambda: agent.children() == [], WAIT_S)
    values = [json.loads(value or b"")["last"] for _, value in topics.records(f"{group}-offsets")]
    assert values == [10, 20, 30]


def test_an_own_topic_that_is_not_compacted_is_refused(
    agents: Agents, sequences: Sequences, topics: OffsetTopics, own_topic: str
) -> None:
    """Offsets would be lost some day; connector and task say so."""
    topics.create(own_topic, **{"cleanup.policy": "delete"})
    agent = agents.start(properties={**QUICK, SUPPORT: "enabled"})
    agent.create("numbers", {**sequences.config(), "offsets.storage.topic": own_topic})
    agent.wait_for_states("numbers", "FAILED")
    trace = agent.get("/connectors/numbers/status")["connector"]["trace"]
    assert "is required to have 'cleanup.policy=compact'" in trace
