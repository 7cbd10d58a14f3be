"""A cluster that loses a member, its leader, its broker or its network, or whose clock jumps.

Further tests have concurrent requests, and a leader that dies with a forwarded request.
"""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pyconnect_sandbox.broker import KafkaBroker
from pyconnect_sandbox.server import LOOPBACK, free_port
from tests.support.agents.agent import (
    Agent,
    append_lines,
    sink_config,
    source_config,
    wait_until_equal,
)
from tests.support.agents.altered_agents import ShiftedAgent, WedgeableAgent, wedge_now
from tests.support.agents.rest_client import Answer
from tests.support.chaos.witness import Journal
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import (
    DELAY_MS,
    SESSION_MS,
    Cluster,
    cluster_of,
    status_faults,
    statuses_in,
    worker_of,
)
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.proxy import Proxy

pytestmark = pytest.mark.kafka

MARGIN_S = 2
WAIT_S = 150
DAY_S = 86_400
TASKS = 6


@pytest.fixture(scope="module")
def broker(module_servers: Servers) -> KafkaBroker:
    """A broker for this module alone, because its tests restart it."""
    return module_servers.broker()


@pytest.fixture(scope="module")
def shared_cluster(
    broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with cluster_of(2, broker.bootstrap_servers, directory) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """Three agents; those missing after the last test are replaced."""
    while len(shared_cluster.agents) < 3:
        shared_cluster.add()
    yield shared_cluster
    shared_cluster.delete_all()


def running(cluster: Cluster, journal: Journal) -> float:
    """Start all tasks, spread evenly; return the seconds that it took."""
    began_s = time.monotonic()
    cluster.agents[0].create("w", journal.config(TASKS))
    cluster.wait_until_running({"w": TASKS})
    took_s = time.monotonic() - began_s
    eventually(lambda: sorted(Counter(tasks_of(cluster).values()).values()) == [2, 2, 2])
    return took_s


def tasks_of(cluster: Cluster) -> dict[str, str]:
    """Return the owner of each task."""
    return {item: owner for item, owner in cluster.owners().items() if item != "w"}


def tasks_at(cluster: Cluster, agent: Agent) -> set[str]:
    return {task for task, owner in tasks_of(cluster).items() if owner == worker_of(agent)}


def living(journal: Journal) -> Counter[str]:
    """Return the number of processes that run each task now."""
    alive = [entry for entry in journal.entries("start") if psutil.pid_exists(entry.pid)]
    ended = {(entry.task, entry.pid) for entry in journal.entries("stop")}
    return Counter(entry.task for entry in alive if (entry.task, entry.pid) not in ended)


def each_task_once(journal: Journal) -> bool:
    return living(journal) == Counter({f"w-{number}": 1 for number in range(TASKS)})


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def missing(sink: Path, source: Path) -> list[str]:
    return sorted(set(lines(source)) - set(lines(sink)))[:10]


def wait_for_takeover(
    journal: Journal, count: int, lost: set[str], since_s: float, start_s: float
) -> None:
    """Wait until all `lost` tasks have started elsewhere, and check the time since `since_s`.

    `start_s` is the time that a start of all tasks took: a busy machine may now take twice as long.
    """
    eventually(
        lambda: lost <= {entry.task for entry in journal.started_since(count)},
        describe=lambda: f"{lost} to start, but {journal.started_since(count)}",
    )
    last_s = max(e.at_s for e in journal.started_since(count) if e.task in lost)
    assert last_s - since_s <= (SESSION_MS + DELAY_MS) / 1000 + max(MARGIN_S, 2 * start_s)


@pytest.mark.long(only=True)
def test_the_tasks_of_a_killed_member_move_in_time(cluster: Cluster, journal: Journal) -> None:
    """The tasks run elsewhere after session timeout, scheduled delay and two seconds."""
    start_s = running(cluster, journal)
    victim = cluster.followers()[0]
    lost, count, since_s = tasks_at(cluster, victim), journal.starts(), time.monotonic()
    cluster.kill(victim)
    wait_for_takeover(journal, count, lost, since_s, start_s)
    cluster.wait_until_running({"w": TASKS})
    assert {entry.task for entry in journal.started_since(count)} == lost
    assert journal.entries("overlap") == []
    assert each_task_once(journal)


def test_the_tasks_of_a_killed_leader_move_in_time(cluster: Cluster, journal: Journal) -> None:
    """The next leader assigns a killed leader's tasks at once and serves every request."""
    start_s = running(cluster, journal)
    victim = cluster.leader()
    lost, count, since_s = tasks_at(cluster, victim), journal.starts(), time.monotonic()
    cluster.kill(victim)
    wait_for_takeover(journal, count, lost, since_s, start_s)
    cluster.wait_until_running({"w": TASKS})
    assert journal.entries("overlap") == []
    follower = cluster.followers()[0]
    follower.create("after", journal.config(1))
    cluster.wait_until_running({"w": TASKS, "after": 1})


def test_a_leader_that_froze_past_its_session_comes_back_as_a_follower(
    cluster: Cluster, journal: Journal
) -> None:
    """A leader that was frozen past its session gives up moved tasks, so that each runs once."""
    running(cluster, journal)
    frozen = cluster.leader()
    frozen_tasks, count = tasks_at(cluster, frozen), journal.starts()
    frozen.process.suspend()
    try:
        eventually(lambda: frozen_tasks <= {entry.task for entry in journal.started_since(count)})
    finally:
        frozen.process.resume()
    cluster.wait_until_running({"w": TASKS})
    eventually(lambda: each_task_once(journal), describe=lambda: living(journal))
    eventually(lambda: sorted(Counter(tasks_of(cluster).values()).values()) == [2, 2, 2])
    assert cluster.leader() is not frozen
    assert frozen.call("PUT", "/connectors/w/config", journal.config(3)).status == 200
    cluster.wait_until_running({"w": 3})


@pytest.mark.long(only=True)
def test_a_broker_restart_loses_nothing(
    cluster: Cluster, journal: Journal, broker: KafkaBroker, tmp_path: Path
) -> None:
    """Lines written before, during and after the restart arrive, and the group forms again."""
    running(cluster, journal)
    source, sink, topic = tmp_path / "in.txt", tmp_path / "out.txt", unique_name("lines")
    append_lines(source, 1, 500)
    cluster.agents[0].create("source", source_config(source, topic))
    cluster.agents[1].create("sink", sink_config(sink, topic))
    wait_until_equal(sink, source)
    broker.stop()
    append_lines(source, 501, 1_000)
    broker.start()
    cluster.wait_until_running({"w": TASKS, "source": 1, "sink": 1}, 60)
    append_lines(source, 1_001, 1_500)
    # With at-least-once delivery, unacknowledged lines may come twice.
    eventually(lambda: set(lines(sink)) == set(lines(source)), 60, lambda: missing(sink, source))
    eventually(lambda: each_task_once(journal), describe=lambda: living(journal))


def test_workers_that_cannot_reach_each_other_serve_local_requests(
    broker: KafkaBroker, tmp_path: Path, journal: Journal
) -> None:
    """Workers that cannot reach each other serve local requests, and send task configs later."""
    port = free_port()
    with Proxy(port) as proxy, cluster_of(0, broker.bootstrap_servers, tmp_path) as pair:
        leader = pair.add(
            properties={
                "listeners": f"http://{LOOPBACK}:{port}",
                "rest.advertised.host.name": LOOPBACK,
                "rest.advertised.port": str(proxy.port),
            }
        )
        follower = pair.add()
        follower.create("before", journal.config(1))
        follower.wait_for_states("before", "RUNNING", "RUNNING")
        proxy.cut()
        refused = follower.call("PUT", "/connectors/cut/config", journal.config(1))
        assert refused.status == 500
        assert "IO Error trying to forward REST request" in (refused.message or "")
        assert follower.get("/connectors") == ["before"]
        assert follower.call("PUT", "/connectors/before/pause").status == 202
        leader.wait_for_states("before", "PAUSED", "PAUSED")
        for name in ("one", "two"):
            leader.create(name, journal.config(1))
        # Each worker has one of the connectors, and the follower cannot send its task configs.
        eventually(lambda: sorted((leader.states("one"), leader.states("two"))) == HALF_DONE)
        proxy.mend()
        for name in ("one", "two"):
            follower.wait_for_states(name, "RUNNING", "RUNNING")


HALF_DONE = [("RUNNING",), ("RUNNING", "RUNNING")]


def test_a_wedged_herder_leaves_the_group_and_comes_back(
    cluster: Cluster, journal: Journal
) -> None:
    """The group thread stops its heartbeats when the herder no longer runs."""
    removed = cluster.followers()[0]
    cluster.agents.remove(removed)
    removed.process.stop()
    wedged = cluster.add(kind=WedgeableAgent, properties={"rebalance.timeout.ms": "4000"})
    running(cluster, journal)
    lost, count = tasks_at(cluster, wedged), journal.starts()
    wedge_now(wedged)
    eventually(lambda: lost <= {entry.task for entry in journal.started_since(count)})
    cluster.wait_until_running({"w": TASKS})
    eventually(lambda: each_task_once(journal), describe=lambda: living(journal))
    eventually(lambda: sorted(Counter(tasks_of(cluster).values()).values()) == [2, 2, 2])
    cluster.agents.remove(wedged)
    wedged.process.stop()


def test_a_worker_of_the_same_group_with_other_topics_is_reported(
    cluster: Cluster, journal: Journal
) -> None:
    """The leader warns of a worker with other topics and names both; the others go on."""
    running(cluster, journal)
    other = {
        f"{kind}.storage.topic": f"{cluster.group_id}-other-{kind}"
        for kind in ("config", "offset", "status")
    }
    leader = cluster.leader()
    stranger = cluster.outsider(properties=other, wait=False)
    text = "different config topics"
    warning, *_ = eventually(lambda: [line for line in stranger.log().splitlines() if text in line])
    assert f"config_topic={cluster.group_id}-other-config" in warning
    assert f"other_workers={leader.url}" in warning
    stranger.process.kill()
    cluster.wait_until_running({"w": TASKS})
    eventually(lambda: each_task_once(journal), describe=lambda: living(journal))


@pytest.mark.parametrize("jump_s", [-DAY_S, DAY_S])
def test_a_set_wall_clock_moves_no_deadline(
    kafka_broker: SharedBroker, tmp_path: Path, journal: Journal, jump_s: float
) -> None:
    """After a jump of the clock, requests, restarts and moves of tasks take as long as before."""
    restarts = {"agent.restart.policy": "on-failure", "agent.restart.backoff.ms": "1000"}
    servers, kind = kafka_broker.bootstrap_servers, ShiftedAgent
    with cluster_of(2, servers, tmp_path, restarts, kind=kind) as cluster:
        check_deadlines(cluster, journal, jump_s)


def check_deadlines(cluster: Cluster, journal: Journal, jump_s: float) -> None:
    leader = cluster.leader()
    [follower] = cluster.followers()
    leader.create("before", journal.config(4))
    cluster.wait_until_running({"before": 4})
    starts = journal.starts()
    for agent in cluster.agents:
        assert isinstance(agent.process, ShiftedAgent)
        agent.process.set_clock(jump_s)
    # The follower signs forwarded requests with the group's session key.
    follower.create("after", journal.config(2))
    cluster.wait_until_running({"before": 4, "after": 2})
    for task in follower.get("/agent/tasks"):
        if task["connector"] == "after":
            assert abs(task["since_ms"] / 1000 - jump_s - time.time()) < DAY_S / 2
    assert {entry.task for entry in journal.started_since(starts)} == {"after-0", "after-1"}
    eventually(lambda: status_faults(cluster.agents) == [], 30)
    killed = leader.children()[0]
    killed.kill()
    eventually(lambda: not killed.is_running(), 30)
    cluster.wait_until_running({"before": 4, "after": 2}, 30)
    cluster.kill(follower)
    began_s = time.monotonic()
    cluster.wait_until_running({"before": 4, "after": 2}, 60)
    assert time.monotonic() - began_s < 60
    assert journal.entries("overlap") == []
    eventually(lambda: status_faults(cluster.agents) == [], 30)


def test_two_operators_leave_one_configuration_that_runs(
    cluster: Cluster, journal: Journal, broker: KafkaBroker
) -> None:
    """Two clients that change one connector at once leave one config that runs."""
    answers: list[int] = []

    def operate(number: int) -> None:
        agent = cluster.agents[number]
        for turn in range(8):
            config = journal.config(1 + (number + turn) % 3, operator=str(number))
            for method, path, body in (
                ("PUT", "/connectors/w/config", config),
                ("PUT", "/connectors/w/pause", None),
                ("POST", "/connectors/w/restart?includeTasks=true", None),
                ("PUT", "/connectors/w/resume", None),
                *((("DELETE", "/connectors/w", None),) if turn % 4 == 3 else ()),
            ):
                answers.append(agent.call(method, path, body).status)

    operators = [threading.Thread(target=operate, args=(number,)) for number in range(2)]
    for operator in operators:
        operator.start()
    for operator in operators:
        operator.join(WAIT_S)
    assert set(answers) <= {200, 201, 202, 204, 404, 409}
    # The last change of the target state may have been an earlier pause.
    first = cluster.agents[0]
    eventually(
        lambda: first.call("PUT", "/connectors/w/config", journal.config(2)).status in (200, 201),
        WAIT_S,
    )
    first.do("PUT", "/connectors/w/resume")
    cluster.wait_until_running({"w": 2})

    def faults() -> list[str]:
        written = statuses_in(broker.bootstrap_servers, f"{cluster.group_id}-status")
        return status_faults(cluster.agents, written)

    eventually(lambda: faults() == [], WAIT_S, faults)
    assert journal.entries("overlap") == []


def test_a_leader_that_dies_with_a_forwarded_request_is_answered_for(
    cluster: Cluster, journal: Journal
) -> None:
    """A client gets an error at once when the leader dies with its forwarded request."""
    leader, follower = cluster.leader(), cluster.followers()[0]
    os.kill(leader.process.pid, signal.SIGSTOP)
    answers: list[Answer] = []
    asking = threading.Thread(
        target=lambda: answers.append(
            follower.call("PUT", "/connectors/w/config", journal.config(2))
        )
    )
    asking.start()
    asking.join(1)
    assert answers == [], "the leader cannot answer"
    killed_s = time.monotonic()
    cluster.kill(leader)
    asking.join(WAIT_S)
    assert answers[0].status == 500
    assert "IO Error trying to forward REST request" in (answers[0].message or "")
    assert time.monotonic() - killed_s < 5
    eventually(
        lambda: (
            follower.call("PUT", "/connectors/w/config", journal.config(2)).status in (200, 201)
        ),
        WAIT_S,
    )
    cluster.wait_until_running({"w": 2})
    assert journal.entries("overlap") == []
