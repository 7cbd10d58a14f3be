"""Exactly-once sources of several workers (KIP-618): zombies, and fencing between workers.

Further tests have leaders that are replaced or that die in a change of offsets (KIP-875), and
downgrades, worker by worker or at once.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics import LogRecord, config_records
from pyconnect_sandbox.server import LOOPBACK
from tests.support.agents.agent import Agent
from tests.support.agents.rest_client import Answer
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.plugins.bad_plugins import BLOCKING_CONVERTER, HELD, HOLD
from tests.support.plugins.offset_hooks import HOOK_SOURCE
from tests.support.seeds import chosen
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.proxy import Proxy
from tests.support.servers.topics import OffsetTopic

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
TASKS = "/connectors/numbers/tasks"
NEVER = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}
NO_WRITE = (
    "Failed to write to config topic; this may be due to a transient error and the request can be"
    " safely retried"
)
PARTITIONS = 20_000


@pytest.fixture(scope="module")
def shared_cluster(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Two workers with exactly-once enabled, which every test leaves alive."""
    directory = tmp_path_factory.mktemp("leaders")
    with cluster_of(2, kafka_broker.bootstrap_servers, directory, ENABLED) as shared:
        yield shared


@pytest.fixture
def shared(shared_cluster: Cluster) -> Iterator[Cluster]:
    yield shared_cluster
    shared_cluster.delete_all()
    for agent in shared_cluster.agents:
        eventually(lambda agent=agent: agent.children() == [], WAIT_S)


@pytest.fixture
def cluster(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster for this test alone, with one worker with exactly-once enabled."""
    with cluster_of(1, kafka_broker.bootstrap_servers, tmp_path, ENABLED) as cluster:
        yield cluster


def family(agent: Agent) -> list[psutil.Process]:
    """Return the worker process and all processes below it."""
    supervisor = agent.supervisor()
    return [supervisor, *supervisor.children(recursive=True)]


@pytest.mark.parametrize("settings", [NEVER, pytest.param({}, marks=pytest.mark.long(only=True))])
def test_zombie_task_after_its_worker_was_frozen(
    shared: Cluster, sequences: Sequences, settings: dict[str, str]
) -> None:
    """A frozen worker and its task do not disturb the records of the task that replaces theirs."""
    shared.agents[0].create(sequences.name, {**sequences.config(), **settings})
    shared.wait_until_running({sequences.name: 1})
    sequences.allow(40)
    sequences.wait_for(40, committed=not settings)
    owner = shared.named(shared.owners()[f"{sequences.name}-0"])
    other = next(agent for agent in shared.agents if agent is not owner)
    frozen = family(owner)
    for process in frozen:
        process.send_signal(signal.SIGSTOP)
    sequences.allow(80)
    try:
        eventually(
            lambda: (
                other.get(f"/connectors/{sequences.name}/status")["tasks"][0]["worker_id"]
                != owner.url.removeprefix("http://").rstrip("/")
                and other.states(sequences.name)[1:] == ("RUNNING",)
            ),
            WAIT_S,
            lambda: other.states(sequences.name),
        )
        eventually(lambda: sequences.seen(committed=False)["0"].count(80) == 1, WAIT_S)
    finally:
        for process in frozen:
            if process.is_running():
                process.send_signal(signal.SIGCONT)
    shared.wait_until_running({sequences.name: 1}, WAIT_S)
    sequences.allow(120)
    eventually(lambda: 120 in sequences.seen(committed=False)["0"], WAIT_S)
    assert shared.agents[0].call("DELETE", f"/connectors/{sequences.name}").status == 204
    sequences.check(120)


def test_tasks_of_followers_are_fenced_by_the_leader(shared: Cluster, sequences: Sequences) -> None:
    """The leader fences tasks on both workers when task sets change."""
    agent = shared.agents[0]
    agent.create(sequences.name, sequences.config(4))
    shared.wait_until_running({sequences.name: 4})
    assert len(set(shared.owners().values())) == 2
    sequences.allow(50)
    sequences.check(50, 4)
    agent.do("PUT", f"/connectors/{sequences.name}/config", sequences.config(3))
    shared.wait_until_running({sequences.name: 3}, WAIT_S)
    sequences.allow(90)
    sequences.check(90, 3)
    assert sequences.seen()["3"] == list(range(1, 51))


def test_the_owner_dies_in_a_transaction(cluster: Cluster, sequences: Sequences) -> None:
    """After kill -9 of worker and task, another worker aborts the transaction and repeats it."""
    cluster.add()
    cluster.agents[0].create("numbers", {**sequences.config(), **NEVER})
    cluster.wait_until_running({"numbers": 1})
    sequences.allow(40)
    sequences.wait_for(40, committed=False)
    owner = cluster.named(cluster.owners()["numbers-0"])
    cluster.kill(owner)
    cluster.wait_until_running({"numbers": 1}, WAIT_S)
    eventually(lambda: sequences.seen(committed=False)["0"].count(40) == 2, WAIT_S)
    assert sequences.seen() == {}
    assert cluster.agents[0].call("PUT", "/connectors/numbers/pause").status == 202
    sequences.check(40)


def test_the_leader_dies_while_it_fences(
    cluster: Cluster, sequences: Sequences, kafka_broker: SharedBroker
) -> None:
    """The next leader fences for tasks that wait for the dead leader; none stays FAILED."""
    cluster.add()
    port = int(kafka_broker.bootstrap_servers.rpartition(":")[2])
    with Proxy(port) as proxy:
        servers = f"{LOOPBACK}:{proxy.port}"
        clients = ("producer", "consumer", "admin")
        overrides = {f"{client}.override.bootstrap.servers": servers for client in clients}
        leader = cluster.leader()
        other = next(agent for agent in cluster.agents if agent is not leader)
        other.create("numbers", {**sequences.config(4), **overrides})
        cluster.wait_until_running({"numbers": 4}, WAIT_S)
        sequences.allow(30)
        sequences.wait_for(30, 4)
        configs = {task["id"]["task"]: task["config"] for task in other.get(TASKS)}
        proxy.cut()
        # A new task set, as a connector on any worker makes it: the older set is fenced.
        records = [
            config_records.task_config(ConnectorTaskId("numbers", number), {**config, "new": "yes"})
            for number, config in configs.items()
        ]
        write(kafka_broker, f"{cluster.group_id}-configs", records)
        write(
            kafka_broker,
            f"{cluster.group_id}-configs",
            [config_records.tasks_commit("numbers", len(configs))],
        )
        eventually(lambda: "fencing producers of older tasks" in leader.log(), WAIT_S)
        cluster.kill(leader)
        proxy.mend()
        cluster.wait_until_running({"numbers": 4}, WAIT_S)
        sequences.allow(60)
        sequences.check(60, 4)


def write(broker: SharedBroker, topic: str, records: Sequence[LogRecord]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for record in records:
        producer.produce(topic, record.value, record.key, partition=0)
    assert producer.flush(30) == 0


def leads(agent: Agent) -> bool:
    return agent.call("DELETE", "/connectors/nobody?forward=false").status == 404


def task_pid(agent: Agent) -> int | None:
    """Return the pid of the task that runs on the agent; None without a task."""
    tasks = [task for task in agent.get("/agent/tasks") if task["task"] is not None]
    return int(tasks[0]["pid"]) if tasks else None


def test_zombie_leader(shared: Cluster, sequences: Sequences) -> None:
    """A resumed leader with an old request writes nothing as leader, because another one leads.

    It forwards the request, which then counts everywhere, or refuses it.
    """
    zombie = shared.leader()
    [other] = shared.followers()
    zombie.create(sequences.name, sequences.config(2))
    shared.wait_until_running({sequences.name: 2})
    sequences.allow(30)
    sequences.check(30, 2)
    zombie.process.suspend()
    try:
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(
                zombie.call, "PUT", f"/connectors/{sequences.name}/config", sequences.config(1)
            )
            eventually(lambda: leads(other), WAIT_S)
            answer = other.call("PUT", f"/connectors/{sequences.name}/config", sequences.config(3))
            assert answer.status == 200, answer.text
            sequences.allow(60)
            sequences.wait_for(60, 3)
            zombie.process.resume()
            status = late.result().status
    finally:
        zombie.process.resume()
    tasks = 1 if status == 200 else 3
    assert status in (200, 409, 500)
    shared.wait_until_running({sequences.name: tasks}, WAIT_S)
    for agent in shared.agents:
        eventually(
            lambda agent=agent: len(agent.get(f"/connectors/{sequences.name}/tasks")) == tasks,
            WAIT_S,
        )
    assert not leads(zombie)
    sequences.allow(90)
    sequences.check(90, tasks)


def test_two_leaders(shared: Cluster, sequences: Sequences) -> None:
    """Another producer with the leader's id fences the leader.

    One request fails, and the next one is written.
    """
    leader = shared.leader()
    sequences.producer(f"connect-cluster-{shared.group_id}")
    config = sequences.config(2)
    [follower] = shared.followers()
    failed = follower.call("PUT", f"/connectors/{sequences.name}/config", config)
    assert (failed.status, failed.message) == (500, NO_WRITE)
    assert leader.get("/connectors") == []
    written = follower.call("PUT", f"/connectors/{sequences.name}/config", config)
    assert written.status == 201, written.text
    shared.wait_until_running({sequences.name: 2})
    sequences.allow(30)
    sequences.check(30, 2)


def test_fencing_while_a_task_initialises(shared: Cluster, sequences: Sequences) -> None:
    """A worker freezes while its task has no producer; a later task set runs elsewhere.

    When both are resumed, the task may still fence its successor, but it writes nothing.
    """
    hold = sequences.directory / HOLD
    hold.touch()
    config = {
        **sequences.config(1),
        "value.converter": BLOCKING_CONVERTER,
        "value.converter.directory": str(sequences.directory),
    }
    shared.agents[0].create(sequences.name, config)
    eventually((sequences.directory / HELD).exists, WAIT_S)
    owner = next(agent for agent in shared.agents if task_pid(agent) is not None)
    [other] = [agent for agent in shared.agents if agent is not owner]
    late = task_pid(owner)
    assert late is not None
    owner.process.suspend()
    try:
        eventually(lambda: leads(other), WAIT_S)
        changed = other.call("PUT", f"/connectors/{sequences.name}/config", sequences.config(2))
        assert changed.status == 200, changed.text
        sequences.allow(30)
        sequences.wait_for(30, 2)
        hold.unlink()
        # The task resumes first, so that no worker stops it before it has its producer.
        os.kill(late, signal.SIGCONT)
    finally:
        owner.process.resume()

    def settled() -> bool:
        other.call(
            "POST", f"/connectors/{sequences.name}/restart?includeTasks=true&onlyFailed=true"
        )
        return other.states(sequences.name) == ("RUNNING",) * 3

    eventually(settled, WAIT_S, lambda: other.states(sequences.name))
    shared.wait_until_running({sequences.name: 2}, WAIT_S)
    sequences.allow(60)
    sequences.check(60, 2)


def add(cluster: Cluster, phase: str) -> Agent:
    return cluster.add(properties={"exactly.once.source.support": phase})


def replace_all(cluster: Cluster, phase: str) -> None:
    """Replace the workers one at a time in order, the leader last."""
    leader = cluster.leader()
    for agent in sorted(cluster.agents, key=lambda agent: agent is leader):
        cluster.agents.remove(agent)
        agent.process.stop()
        add(cluster, phase)
        cluster.wait_until_running({"numbers": 2}, WAIT_S)


@pytest.mark.long(only=True)
def test_soft_downgrade(cluster: Cluster, sequences: Sequences) -> None:
    """A downgrade through `preparing` to `disabled` and back has no gap and no duplicate.

    Readers never see records of open transactions, and `required` is refused again.
    """
    add(cluster, "enabled")
    cluster.agents[0].create("numbers", sequences.config(2))
    cluster.wait_until_running({"numbers": 2}, WAIT_S)
    limit = 30
    sequences.allow(limit)
    sequences.check(limit, 2)
    for phase in chosen(("preparing", "disabled"), long=("preparing", "enabled")):
        replace_all(cluster, phase)
        limit += 30
        sequences.allow(limit)
        sequences.check(limit, 2)
        assert sequences.seen() == sequences.seen(committed=False)
        changed = sequences.config(2, batch=str(limit))
        answer = cluster.agents[0].call("PUT", "/connectors/numbers/config", changed)
        if phase == "enabled":
            assert answer.status == 200, answer.text
        else:
            assert answer.status == 400
            assert "does not have exactly-once source support enabled" in answer.text
    cluster.wait_until_running({"numbers": 2}, WAIT_S)
    sequences.allow(limit + 30)
    sequences.check(limit + 30, 2)


def test_hard_downgrade(cluster: Cluster, sequences: Sequences) -> None:
    """The successors of killed workers run without exactly-once.

    Offsets of aborted transactions are not valid, so nothing is skipped. Readers of committed
    records see each number once; other readers see the aborted ones too.
    """
    cluster.agents[0].create(
        "numbers",
        {**sequences.config(), **NEVER, "producer.override.transaction.timeout.ms": "5000"},
    )
    cluster.wait_until_running({"numbers": 1}, WAIT_S)
    sequences.allow(40)
    sequences.wait_for(40, committed=False)
    cluster.kill(cluster.agents[0])
    assert sequences.seen() == {}
    successor = add(cluster, "disabled")
    cluster.wait_until_running({"numbers": 1}, WAIT_S)
    eventually(lambda: sequences.seen(committed=False)["0"].count(40) == 2, WAIT_S)
    # Plain records behind an open transaction are readable after its end.
    sequences.check(40)
    assert successor.call("PUT", "/connectors/numbers/stop").status == 204
    successor.wait_for_states("numbers", "STOPPED")
    assert successor.call("PUT", "/connectors/numbers/resume").status == 202
    sequences.allow(60)
    sequences.check(60)


def alter(agent: Agent, position: int) -> Answer:
    """Alter the offsets of every partition to `position`."""
    entries = [
        {"partition": {"number": str(number)}, "offset": {"last": position}}
        for number in range(PARTITIONS)
    ]
    return agent.call("PATCH", "/connectors/numbers/offsets", {"offsets": entries})


def positions(agent: Agent) -> list[int]:
    """Return the position of each partition."""
    return [
        entry["offset"]["last"] for entry in agent.get("/connectors/numbers/offsets")["offsets"]
    ]


def altered(cluster: Cluster, position: int) -> bool:
    return alter(cluster.agents[0], position).status == 200


def test_a_leader_that_dies_in_a_change_leaves_all_of_it_or_nothing(
    cluster: Cluster, sequences: Sequences, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A leader that dies in a change of offsets leaves all of it or nothing."""
    # Two workers die in this test.
    for _ in range(2):
        cluster.add()
    topic = OffsetTopic(kafka_broker.bootstrap_servers, f"{cluster.group_id}-offsets")
    told = tmp_path / "told"
    config = {
        **sequences.config(),
        "connector.class": HOOK_SOURCE,
        "hook": "true",
        "told": str(told),
        # A worker that waited for the broker to end the dead leader's transaction would fail.
        "producer.override.transaction.timeout.ms": "600000",
    }
    cluster.agents[0].create("numbers", config, initial_state="STOPPED")
    cluster.agents[0].wait_for_states("numbers", "STOPPED")
    eventually(lambda: altered(cluster, 1), WAIT_S)
    for old, in_transaction in ((1, False), (11, True)):
        new = old + 5
        told.unlink()
        leader, before = cluster.leader(), topic.end()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(alter, leader, new)
            if in_transaction:
                eventually(lambda before=before: topic.end() > before, WAIT_S)
            else:
                eventually(told.exists, WAIT_S)
            cluster.kill(leader)
            answered = asked.exception() is None and asked.result().status == 200
        stored = {value["last"] for value in topic.live().values()}
        assert stored == {new} or (stored == {old} and not answered)
        next_leader = cluster.leader()
        eventually(lambda new=new: altered(cluster, new + 5), WAIT_S)
        assert positions(next_leader) == [new + 5] * PARTITIONS
    sequences.allow(25)
    assert cluster.agents[0].call("PUT", "/connectors/numbers/resume").status == 202
    sequences.wait_for(25)
    assert sequences.seen()["0"] == [*range(22, 26)]
