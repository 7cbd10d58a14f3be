"""Offsets of connectors on agents, altered and reset (KIP-875), in topics of their own too."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from pyconnect_agent.tasks.offset_change import ENTRIES_AT_ONCE
from tests.support.agents.agent import Agents, append_lines, emptied, source_config
from tests.support.agents.changed_offsets import (
    ALTERED,
    LINES,
    PARTITIONS,
    QUICK,
    RESET,
    SEGMENT_MS,
    SUPPORT,
    WAIT_S,
    Groups,
    Numbers,
    Sink,
    Worker,
)
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import chosen
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import OffsetTopic

pytestmark = pytest.mark.kafka

BAD_BODIES: tuple[tuple[object, int], ...] = (
    ("", 500),
    ("null", 500),
    ("{", 500),
    ("[]", 500),
    ('{"offsets":[{"partition":{1:2}}]}', 500),
    ({}, 400),
    ({"offsets": []}, 400),
    ({"offsets": {}}, 500),
    ({"offsets": [None]}, 500),
    ({"offsets": [{"partition": "0", "offset": {"last": 1}}]}, 500),
    ({"offsets": [{"partition": {"number": "0"}, "offset": {"last": [1]}}]}, 500),
    ({"offsets": [{"partition": {"number": "0"}, "offset": {"last": 2**64}}]}, 500),
    ({"offsets": [{"partition": {"number": {"a": 1}}, "offset": {"last": 1}}]}, 500),
    ({"offsets": [{"partition": {"number": "0"}, "offset": 1, "more": 1}]}, 500),
    ('{"offsets":[{"partition":{},"offset":{},"partition":{}}]}', 500),
)
PLACES = ("worker's topic", "own topic")


@pytest.fixture(scope="module")
def worker_at(module_agents: Agents, kafka_broker: SharedBroker) -> Callable[[str], Worker]:
    """Return the worker that the tests of one phase of exactly-once support share."""
    return cache(lambda support: Worker(module_agents, kafka_broker.bootstrap_servers, support))


@pytest.fixture(params=chosen(["enabled"], long=[pytest.param("disabled", marks=pytest.mark.long)]))
def worker(worker_at: Callable[[str], Worker], request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker at a phase; its connectors are deleted after the test."""
    worker = worker_at(request.param)
    yield worker
    emptied(worker.agent)


@pytest.fixture
def own_topic(kafka_broker: SharedBroker) -> OffsetTopic:
    return OffsetTopic(kafka_broker.bootstrap_servers, unique_name("own-offsets"))


@pytest.fixture(params=PLACES)
def numbers(
    worker: Worker, sequences: Sequences, own_topic: OffsetTopic, request: pytest.FixtureRequest
) -> Numbers:
    return Numbers(worker, sequences, own_topic if request.param == "own topic" else worker.offsets)


def test_a_stopped_source_is_altered_reset_and_resumed(numbers: Numbers) -> None:
    """An altered offset is read back at once, and a resumed connector continues from it."""
    numbers.create()
    numbers.run(10)
    refused = numbers.alter(1, 1)
    assert (refused.status, numbers.stored()) == (400, [10, 10])
    assert numbers.reset().status == 400
    numbers.stop()
    answer = numbers.alter(5, 7)
    assert (answer.status, answer.json()) == (200, {"message": ALTERED})
    assert numbers.positions() == [5, 7] == numbers.stored()
    assert numbers.alter(5, None).status == 200
    assert numbers.positions() == [5] == numbers.stored()
    numbers.resume()
    numbers.run(12)
    seen = numbers.sequences.seen()
    assert seen["0"] == [*range(1, 11), *range(6, 13)]
    assert seen["1"] == [*range(1, 11), *range(1, 13)]
    numbers.stop()
    for _ in range(2):
        answer = numbers.reset()
        assert (answer.status, answer.json()) == (200, {"message": RESET})
        assert numbers.positions() == [] == numbers.stored()
    numbers.resume()
    numbers.run(13)
    assert numbers.sequences.seen()["1"][-13:] == [*range(1, 14)]


def test_more_offsets_than_are_written_at_once_are_one_change(numbers: Numbers) -> None:
    """All offsets are stored afterwards, and none after a reset."""
    numbers.create(initial_state="STOPPED")
    numbers.agent.wait_for_states(numbers.name, "STOPPED")
    positions = list(range(1, ENTRIES_AT_ONCE + 2))
    answer = numbers.alter(*positions)
    assert answer.status == 200, answer.text
    assert numbers.positions() == positions == numbers.stored()
    answer = numbers.reset()
    assert answer.status == 200, answer.text
    assert numbers.positions() == [] == numbers.stored()


def test_a_reset_tombstones_keys_of_any_form(numbers: Numbers, worker: Worker) -> None:
    """The reset also deletes raw keys in the order and spacing of a Java worker, in both topics."""
    numbers.create()
    numbers.run(10)
    numbers.stop()
    odd = b'["%s", {"number" : "0"}]' % numbers.name.encode()
    unreadable = b'["%s",{"number":"7"}]' % numbers.name.encode()
    for topic in {numbers.topic, worker.offsets}:
        topic.write(odd, b'{"last":3}')
        topic.write(unreadable, b"7")
    assert numbers.reset().status == 200
    for topic in (numbers.topic, worker.offsets):
        last = {key: value for key, value in topic.records() if numbers.name.encode() in key}
        assert set(last.values()) == {None}
        assert {odd, unreadable} <= last.keys()


@pytest.mark.parametrize("numbers", PLACES[:1], indirect=True)
def test_a_source_created_stopped_begins_where_it_was_altered_to(numbers: Numbers) -> None:
    """The source's offsets can be altered before it has ever run."""
    numbers.sequences.allow(10)
    numbers.create(initial_state="STOPPED")
    numbers.agent.wait_for_states(numbers.name, "STOPPED")
    assert numbers.alter(5, 9).status == 200
    numbers.resume()
    numbers.run(10)
    assert numbers.sequences.seen() == {"0": [*range(6, 11)], "1": [10]}


@pytest.mark.parametrize("numbers", PLACES[:1], indirect=True)
def test_a_refused_change_leaves_the_topic_unchanged(numbers: Numbers) -> None:
    """A change refused by REST, by Kafka Connect or by the connector leaves the topic as it is."""
    numbers.create(initial_state="STOPPED")
    numbers.agent.wait_for_states(numbers.name, "STOPPED")
    assert numbers.alter(5, 5).status == 200
    before = sorted(numbers.topic.records(), key=repr)
    for body, status in BAD_BODIES:
        answer = numbers.send_text(body) if isinstance(body, str) else numbers.send(body)
        assert (answer.status, body) == (status, body)
    config = f"/connectors/{numbers.name}/config"
    for hook in ("refuse", "unsupported", "break"):
        assert numbers.agent.call("PATCH", config, {"hook": hook}).status == 200
        for answer in (numbers.alter(1, None), numbers.reset()):
            assert answer.status == 500
    assert sorted(numbers.topic.records(), key=repr) == before
    assert numbers.agent.call("PATCH", config, {"hook": "false"}).status == 200
    twice = [{"partition": {"number": "9"}, "offset": {"last": last}} for last in (-3, 10**12)]
    answer = numbers.send({"offsets": twice})
    assert (answer.status, "framework-managed" in answer.text) == (200, True)
    assert numbers.stored() == [5, 5, 10**12]


@pytest.fixture
def there(other_broker: SharedBroker) -> str:
    """Bootstrap servers of another cluster."""
    return other_broker.bootstrap_servers


def overrides(bootstrap_servers: str, *clients: str) -> dict[str, str]:
    return {f"{client}.override.bootstrap.servers": bootstrap_servers for client in clients}


@pytest.mark.parametrize("worker", ["disabled", "enabled"], indirect=True)
def test_a_sources_offsets_are_changed_in_both_clusters(
    worker: Worker, there: str, tmp_path: Path
) -> None:
    """Offsets change in the connector's topic there, which counts, and in the worker's topic."""
    own = OffsetTopic(there, unique_name("own-offsets"))
    clients = overrides(there, "producer", "consumer", "admin")
    numbers = Numbers(worker, Sequences(there, tmp_path), own, **clients)
    numbers.create()
    numbers.run(10)
    numbers.stop()
    answer = numbers.alter(5, 7)
    assert (answer.status, answer.json()) == (200, {"message": ALTERED})
    assert numbers.positions() == [5, 7] == numbers.stored()
    assert numbers.stored(worker.offsets) == [5, 7]
    numbers.resume()
    numbers.run(12)
    assert numbers.sequences.seen()["1"] == [*range(1, 11), *range(8, 13)]
    numbers.stop()
    for _ in range(2):
        answer = numbers.reset()
        assert (answer.status, answer.json()) == (200, {"message": RESET})
        assert numbers.positions() == [] == numbers.stored()
        assert numbers.stored(worker.offsets) == []
    numbers.resume()
    numbers.run(13)
    assert numbers.sequences.seen()["1"][-13:] == [*range(1, 14)]


@pytest.mark.parametrize("worker", ["disabled"], indirect=True)
@pytest.mark.parametrize("own_group", [False, True], ids=["connect-group", "own-group"])
def test_a_sinks_group_is_changed_where_its_admin_client_reaches(
    worker: Worker, there: str, kafka_broker: SharedBroker, tmp_path: Path, own_group: bool
) -> None:
    """The group exists only in the other cluster."""
    settings = overrides(there, "consumer", "admin")
    if own_group:
        settings["consumer.override.group.id"] = unique_name("own-group")
    sink = Sink(worker.agent, Groups(there), tmp_path, **settings)
    path = f"/connectors/{sink.name}"
    shown = worker.agent.get(f"{path}/offsets")["offsets"]
    assert [entry["offset"] for entry in shown] == [{"kafka_offset": LINES}] * PARTITIONS
    assert sink.alter(None, 5, 5).status == 200
    assert sink.committed() == {1: 5, 2: 5}
    assert worker.agent.call("PUT", f"{path}/resume").status == 202
    sink.wait_until_read(30 + 10 + 5 + 5)
    sink.stop()
    for _ in range(2):
        assert sink.reset().status == 200
        assert (sink.committed(), worker.agent.get(f"{path}/offsets")) == ({}, {"offsets": []})
        assert sink.group not in sink.groups.names()
    assert worker.agent.call("PUT", f"{path}/resume").status == 202
    sink.wait_until_read(50 + 30)
    eventually(lambda: sink.group in sink.groups.names(), WAIT_S)
    groups_there, groups_here = sink.groups.names(), Groups(kafka_broker.bootstrap_servers).names()
    assert (f"connect-{sink.name}" in groups_there) is not own_group
    assert not {sink.group, f"connect-{sink.name}"} & groups_here


def key_of(connector: str, number: int = 0) -> bytes:
    return json.dumps([connector, {"number": str(number)}], separators=(",", ":")).encode()


@pytest.mark.parametrize("worker", ["disabled", "enabled"], indirect=True)
def test_offsets_are_in_the_own_topic_and_copied_to_the_workers(
    worker: Worker, sequences: Sequences, own_topic: OffsetTopic
) -> None:
    """The topic has the worker's settings, and a restarted task continues from it."""
    agent, name = worker.agent, sequences.name
    config = {
        **sequences.config(),
        "exactly.once.support": "requested",
        "offsets.storage.topic": own_topic.name,
    }
    agent.create(name, config)
    agent.wait_for_states(name, "RUNNING", "RUNNING")
    sequences.allow(30)
    sequences.check(30)
    last = {key_of(name): {"last": 30}}
    eventually(lambda: own_topic.live() == last, WAIT_S, own_topic.live)
    eventually(lambda: worker.offsets.live(name) == last, WAIT_S)
    settings = own_topic.settings()
    assert (settings["cleanup.policy"], settings["segment.ms"]) == ("compact", SEGMENT_MS)
    assert own_topic.partitions() == 3
    assert agent.call("POST", f"/connectors/{name}/tasks/0/restart").status == 204
    sequences.allow(50)
    sequences.check(50)


@pytest.mark.parametrize("worker", ["disabled"], indirect=True)
def test_rest_shows_the_own_topics_offsets_before_the_workers(
    worker: Worker, own_topic: OffsetTopic, tmp_path: Path
) -> None:
    """A partition that is only in the worker's topic is shown; a newer own value wins."""
    lines, name = tmp_path / "lines", unique_name("file")
    append_lines(lines, 1, 5)
    config = source_config(lines, unique_name("lines"), offsets_storage_topic=own_topic.name)
    worker.agent.create(name, config)
    key = json.dumps([name, {"filename": str(lines)}], separators=(",", ":")).encode()
    size = lines.stat().st_size
    eventually(lambda: worker.offsets.live(name) == {key: {"position": size}}, WAIT_S)
    assert own_topic.live() == {key: {"position": size}}
    worker.offsets.write(key, b'{"position":3}')
    worker.offsets.write(f'["{name}",{{"filename":"other"}}]'.encode(), b'{"position":9}')
    shown = worker.agent.get(f"/connectors/{name}/offsets")["offsets"]
    found = {entry["partition"]["filename"]: entry["offset"]["position"] for entry in shown}
    assert found == {str(lines): size, "other": 9}


@pytest.mark.parametrize(
    ("worker", "place"),
    [("disabled", "own topic"), ("enabled", "own topic"), ("enabled", "worker's topic")],
    indirect=["worker"],
)
def test_a_key_of_another_form_is_kept_and_doubles_are_tombstoned(
    worker: Worker, sequences: Sequences, own_topic: OffsetTopic, place: str
) -> None:
    """A reader that compares bytes would see two offsets of one partition."""
    topic, name = worker.offsets, sequences.name
    config = {**sequences.config(), "exactly.once.support": "requested"}
    if place == "own topic":
        topic = own_topic
        config["offsets.storage.topic"] = topic.name
        topic.create()
    older = f'["{name}" ,{{"number":"0"}}]'.encode()
    newer = f'["{name}", {{"number": "0"}}]'.encode()
    for number, key in enumerate((older, newer), 7):
        topic.write(key, b'{"last":%d}' % number, timestamp_ms=number)
    worker.agent.create(name, config)
    sequences.allow(20)
    sequences.wait_for(20)
    expected = {newer: {"last": 20}}
    eventually(lambda: topic.live(name) == expected, WAIT_S, topic.live)
    assert sequences.seen()["0"] == list(range(9, 21))


@pytest.mark.long(only=True)
def test_other_clients_of_a_connector_reach_another_cluster(
    agents: Agents, kafka_broker: SharedBroker, there: str, tmp_path: Path
) -> None:
    """Records and offsets share transactions there; the default topic has the worker's name.

    The worker copies offsets to its own cluster, where a worker without exactly-once finds them.
    """
    remote, group = Sequences(there, tmp_path), unique_name("far")
    agent = agents.start(group_id=group, properties={**QUICK, SUPPORT: "enabled"})
    overridden = overrides(there, "producer", "consumer", "admin")
    config = {**remote.config(), "exactly.once.support": "requested", **overridden}
    agent.create("numbers", config)
    remote.allow(40)
    remote.check(40)
    last = {key_of("numbers"): {"last": 40}}
    topic = OffsetTopic(there, f"{group}-offsets")
    eventually(lambda: topic.live() == last, WAIT_S)
    values = [json.loads(value or b"")["last"] for _, value in topic.records()]
    assert values == sorted(values)
    assert all(value % 10 == 0 for value in values)
    here = OffsetTopic(kafka_broker.bootstrap_servers, topic.name)
    eventually(lambda: here.live() == last, WAIT_S)
    agent.process.stop()
    agent = agents.start(group_id=group, properties={**QUICK, SUPPORT: "disabled"})
    agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    remote.allow(60)
    remote.check(60)


@pytest.mark.parametrize("worker", ["enabled"], indirect=True)
def test_another_spelling_of_the_brokers_is_the_same_topic(
    worker: Worker, sequences: Sequences, kafka_broker: SharedBroker
) -> None:
    """An offset copied into its own topic would outlive an aborted transaction."""
    agent, name = worker.agent, sequences.name
    spelled = kafka_broker.bootstrap_servers.replace("127.0.0.1", "localhost")
    assert spelled != kafka_broker.bootstrap_servers
    overridden = overrides(spelled, "producer", "consumer", "admin")
    agent.create(name, {**sequences.config(), **overridden})
    sequences.allow(30)
    sequences.check(30)
    assert agent.call("DELETE", f"/connectors/{name}").status == 204
    eventually(lambda: name not in str(agent.get("/agent/tasks")), WAIT_S)
    stored = [value for key, value in worker.offsets.records() if json.loads(key)[0] == name]
    assert [json.loads(value or b"")["last"] for value in stored] == [10, 20, 30]


@pytest.mark.parametrize("worker", ["enabled"], indirect=True)
def test_an_own_topic_that_is_not_compacted_is_refused(
    worker: Worker, sequences: Sequences, own_topic: OffsetTopic
) -> None:
    """Offsets would be lost some day, so connector and task fail with the reason."""
    own_topic.create(**{"cleanup.policy": "delete"})
    agent, name = worker.agent, sequences.name
    agent.create(name, {**sequences.config(), "offsets.storage.topic": own_topic.name})
    agent.wait_for_states(name, "FAILED")
    trace = agent.get(f"/connectors/{name}/status")["connector"]["trace"]
    assert "is required to have 'cleanup.policy=compact'" in trace
