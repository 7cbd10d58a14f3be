"""A Java worker and an agent in one group, on the same internal topics; either may lead."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION, RELEASE_4_4, RELEASE_KEY
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import append_lines, sink_config, source_config
from tests.support.agents.mixed_group import WAIT_S, MixedGroup, MixedWorker, java_and_agent
from tests.support.chaos.witness import WITNESS, Journal
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import worker_of
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.topics import read_topic

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

NO_CLASS = "Failed to find any class that implements Connector and which name matches {}"
COMPACTED_SOON = {
    f"{kind}.storage.{name}": value
    for kind in ("config", "offset", "status")
    for name, value in (("segment.ms", "300"), ("min.cleanable.dirty.ratio", "0.01"))
}


OF_4_4 = pytest.mark.long(only=True)


@pytest.fixture(
    scope="module",
    params=[
        ("java", CONNECT_VERSION),
        ("agent", CONNECT_VERSION),
        pytest.param(("java", RELEASE_4_4), marks=OF_4_4),
        pytest.param(("agent", RELEASE_4_4), marks=OF_4_4),
    ],
    ids="-".join,
)
def shared_group(
    request: pytest.FixtureRequest,
    kafka_runtime: KafkaRuntime,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MixedGroup]:
    """A group led by the kind that the parameter names; both workers are of the same release."""
    leader, release = request.param
    runtime = kafka_runtime if release == CONNECT_VERSION else request.getfixturevalue("kafka_4_4")
    servers = Servers(runtime, tmp_path_factory.mktemp("mixed"))
    try:
        group = MixedGroup(servers, kafka_broker, leader, COMPACTED_SOON | {RELEASE_KEY: release})
        assert group.leader.get("/")["version"] == release
        yield group
    finally:
        servers.close()


@pytest.fixture
def group(shared_group: MixedGroup) -> Iterator[MixedGroup]:
    yield shared_group
    shared_group.delete_all()


def sink(directory: Path, tasks: int) -> dict[str, str]:
    """Return a sink's config; frequent heartbeats let other consumers leave the group soon."""
    config = sink_config(directory / "out.txt", unique_name("lines"), tasks_max=str(tasks))
    return config | {
        "consumer.override.heartbeat.interval.ms": "200",
        "consumer.override.session.timeout.ms": "6000",
    }


def records_left(kafka_broker: SharedBroker, topic: str) -> list[tuple[bytes, bytes | None]]:
    """Return keys and values of a topic's only partition, as a new worker reads them."""
    found = read_topic(kafka_broker.bootstrap_servers, topic)
    return [(record.key() or b"", record.value()) for record in found]


def change_target_state(worker: MixedWorker) -> None:
    for path in ("/connectors/kept/pause", "/connectors/kept/resume"):
        assert worker.call("PUT", path).status == 202


def configure_by_hand(
    group: MixedGroup, kafka_broker: SharedBroker, name: str, connector: str
) -> None:
    """Write a config record as a worker would that knows the class."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    config = {"name": name, "connector.class": connector, "tasks.max": "1"}
    record = config_records.connector_config(name, config)
    producer.produce(f"{group.group_id}-configs", key=record.key, value=record.value)
    assert producer.flush(WAIT_S) == 0


def test_a_second_worker_reads_the_firsts_records_after_compaction(
    group: MixedGroup, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Both kinds show the same state after the leader's history has been compacted."""
    assert group.follower is None, "this test comes first"
    leader = group.leader
    source = tmp_path / "in.txt"
    append_lines(source, 1, 100)
    leader.create("source", source_config(source, unique_name("lines")))
    leader.create("kept", sink(tmp_path, 3))
    leader.create("stopped", sink(tmp_path, 2))
    leader.create("gone", sink(tmp_path, 1))
    leader.wait_for_states("gone", "RUNNING", "RUNNING")
    assert leader.call("PUT", "/connectors/stopped/stop").status == 204
    assert leader.call("DELETE", "/connectors/gone").status == 204
    topic = f"{group.group_id}-configs"

    # There are forty records of one key, and only compaction leaves fewer than ten.
    for _ in range(20):
        change_target_state(leader)

    def compacted() -> bool:
        # Each change rolls a segment, because only closed segments are compacted.
        change_target_state(leader)
        keys = [key for key, _ in records_left(kafka_broker, topic)]
        return len(keys) - len(set(keys)) < 10

    eventually(compacted, WAIT_S)
    leader.wait_for_states("kept", *["RUNNING"] * 4)
    group.join()
    assert group.agree("/connectors") == ["kept", "source", "stopped"]
    for name in ("source", "kept", "stopped"):
        group.agree(f"/connectors/{name}")
        group.agree(f"/connectors/{name}/tasks")
    group.wait_for_states("source", *["RUNNING"] * 2)
    group.wait_for_states("kept", *["RUNNING"] * 4)
    group.wait_for_states("stopped", "STOPPED")
    for worker in group.both:
        assert worker.call("PUT", "/connectors/source/stop").status == 204
        group.wait_for_states("source", "STOPPED")
        offsets = worker.get("/connectors/source/offsets")["offsets"]
        assert [found["offset"] for found in offsets] == [{"position": source.stat().st_size}]
        assert worker.call("PUT", "/connectors/source/resume").status == 202
        group.wait_for_states("source", *["RUNNING"] * 2)


def test_work_is_spread_over_both_kinds_of_worker(group: MixedGroup, tmp_path: Path) -> None:
    """The leader creates the follower's connector too, and each worker gets four of eight tasks."""
    leader, follower = group.both
    for number, worker in enumerate((follower, leader)):
        worker.create(f"spread-{number}", sink(tmp_path, 4))
        group.wait_for_states(f"spread-{number}", *["RUNNING"] * 5)
    assert group.agree("/connectors") == ["spread-0", "spread-1"]
    owners = [owner for n in (0, 1) for owner in group.owners(f"spread-{n}")[1:]]
    assert sorted(owners) == sorted([worker_of(leader)] * 4 + [worker_of(follower)] * 4)
    connectors = {group.owners(f"spread-{n}")[0] for n in (0, 1)}
    assert connectors == {worker_of(leader), worker_of(follower)}


def test_every_change_of_state_is_seen_by_both(group: MixedGroup, tmp_path: Path) -> None:
    """Both workers show each pause, resume, stop, restart and deletion, whichever is asked."""
    leader, follower = group.both
    leader.create("life", sink(tmp_path, 2))
    group.wait_for_states("life", *["RUNNING"] * 3)
    for worker in (follower, leader):
        assert worker.call("PUT", "/connectors/life/pause").status == 202
        group.wait_for_states("life", *["PAUSED"] * 3)
        assert worker.call("PUT", "/connectors/life/resume").status == 202
        group.wait_for_states("life", *["RUNNING"] * 3)
        assert worker.call("PUT", "/connectors/life/stop").status == 204
        group.wait_for_states("life", "STOPPED")
        assert worker.call("PUT", "/connectors/life/resume").status == 202
        group.wait_for_states("life", *["RUNNING"] * 3)
        for task in (0, 1):
            restarted = f"/connectors/life/tasks/{task}/restart"
            # During a rebalance both kinds answer 409.
            eventually(lambda path=restarted: worker.call("POST", path).status == 204, WAIT_S)  # noqa: B023
        group.wait_for_states("life", *["RUNNING"] * 3)
        everything = "/connectors/life/restart?includeTasks=true"
        eventually(lambda: worker.call("POST", everything).status == 202, WAIT_S)  # noqa: B023
        group.wait_for_states("life", *["RUNNING"] * 3)
    assert follower.call("DELETE", "/connectors/life").status == 204
    for worker in group.both:
        eventually(lambda worker=worker: worker.get("/connectors") == [], WAIT_S)
        eventually(
            lambda worker=worker: worker.call("GET", "/connectors/life/status").status == 404,
            WAIT_S,
        )


def test_a_connector_that_sleeps_and_wakes_up_writes_no_status(
    group: MixedGroup, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Both workers and the topic show the states that a Java worker would have written."""
    _, agent = java_and_agent(group)
    names = [f"sleeper-{number}" for number in range(2)]
    for name in names:
        group.leader.create(name, sink(tmp_path, 1))
    # The agent has one of the two connectors.
    placed = {placed_at(group, name): name for name in names}
    name = placed[worker_of(agent)]
    group.wait_for_states(name, "RUNNING", "RUNNING")

    def is_asleep() -> bool:
        works = agent.get("/agent/tasks")
        return [work["asleep"] for work in works if work["connector"] == name][:1] == [True]

    def history() -> list[str]:
        topic = f"{group.group_id}-status"
        written = [v for k, v in records_left(kafka_broker, topic) if k.decode().endswith(name)]
        return [json.loads(value or b"{}").get("state") for value in written]

    eventually(is_asleep, WAIT_S)
    assert history()[-1] == "RUNNING"
    for verb, states in (("pause", "PAUSED"), ("resume", "RUNNING")):
        assert group.leader.call("PUT", f"/connectors/{name}/{verb}").status == 202
        group.wait_for_states(name, states, states)
    eventually(is_asleep, WAIT_S)
    # Compaction may have removed earlier statuses.
    assert history()[-2:] in (["PAUSED", "RUNNING"], ["RUNNING"])


def test_a_class_that_only_the_agent_has_fails_on_the_java_worker(
    group: MixedGroup, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """The leader may assign any connector to any worker; one without the class reports FAILED.

    The leader also validates each config, so a leader without the class refuses to create it.
    """
    java, agent = java_and_agent(group)
    config = Journal(tmp_path / "journal").config(1)
    for worker in group.both:
        answer = worker.call("PUT", "/connectors/agent-only/config", config)
        if worker is agent and group.leader is agent:
            assert answer.status == 201
        else:
            assert answer.status == 400
            assert NO_CLASS.format(WITNESS) in (answer.message or "")
    eventually(lambda: agent.call("DELETE", "/connectors/agent-only").status in (204, 404), WAIT_S)
    for number in (0, 1):
        configure_by_hand(group, kafka_broker, f"agent-only-{number}", WITNESS)
    placed = {placed_at(group, f"agent-only-{n}"): f"agent-only-{n}" for n in (0, 1)}
    works, failed = placed[worker_of(agent)], placed[worker_of(java)]
    eventually(lambda: java.states(works)[0] == "RUNNING", WAIT_S)
    eventually(lambda: agent.states(failed) == ("FAILED",), WAIT_S)
    trace = group.agree(f"/connectors/{failed}/status")["connector"]["trace"]
    assert NO_CLASS.format(WITNESS) in trace


def test_an_unknown_class_fails_alike_on_both(
    group: MixedGroup, kafka_broker: SharedBroker
) -> None:
    """A class that neither worker has fails with the same state and text on both."""
    java, agent = java_and_agent(group)
    for number in (0, 1):
        configure_by_hand(group, kafka_broker, f"nobodys-{number}", "org.example.Lost")
    placed = {placed_at(group, f"nobodys-{n}"): f"nobodys-{n}" for n in (0, 1)}
    for worker in (java, agent):
        name = placed[worker_of(worker)]
        group.wait_for_states(name, "FAILED")
        trace = group.agree(f"/connectors/{name}/status")["connector"]["trace"]
        error, _, _ = trace.partition(", available connectors are")
        # The class's package differs between the two kinds.
        assert error.partition("ConnectException: ")[2] == NO_CLASS.format("org.example.Lost")


def placed_at(group: MixedGroup, connector: str) -> str:
    eventually(lambda: group.leader.states(connector), WAIT_S, f"a status of {connector}")
    return group.owners(connector)[0]


@pytest.mark.parametrize("role", ["follower", "leader"])
def test_the_work_of_a_dead_worker_goes_to_the_other(
    group: MixedGroup, tmp_path: Path, role: str
) -> None:
    """The survivor runs the tasks of the killed worker and understands its records."""
    leader, follower = group.both
    leader.create("survivor", sink(tmp_path, 4))
    group.wait_for_states("survivor", *["RUNNING"] * 5)
    victim, survivor = (follower, leader) if role == "follower" else (leader, follower)
    victim.process.kill()
    only = [worker_of(survivor)] * 5

    def taken_over() -> bool:
        status = survivor.get("/connectors/survivor/status")
        parts = [status["connector"], *status["tasks"]]
        return [part["worker_id"] for part in parts] == only and all(
            part["state"] == "RUNNING" for part in parts
        )

    eventually(taken_over, WAIT_S, lambda: survivor.get("/connectors/survivor/status"))
    assert survivor.call("PUT", "/connectors/survivor/config", sink(tmp_path, 2)).status == 200
    survivor.wait_for_states("survivor", *["RUNNING"] * 3)
    if role == "follower":
        group.follower = None
    else:
        group.leader = survivor
