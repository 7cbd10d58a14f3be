"""Three healthy agents as one cluster: each of them serves every request."""

from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.support.agents.agent import Agent
from tests.support.agents.rest_client import WAIT_S
from tests.support.chaos.witness import Journal
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of, worker_of
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def shared_cluster(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with cluster_of(3, kafka_broker.bootstrap_servers, directory) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    yield shared_cluster
    shared_cluster.delete_all()


def load(cluster: Cluster) -> tuple[Counter[str], Counter[str]]:
    """Return the numbers of connectors and of tasks of each worker."""
    owners = cluster.owners()
    listed = cluster.agents[0].get("/connectors")
    connectors = Counter(owners[name] for name in listed)
    tasks = Counter(owner for item, owner in owners.items() if item not in listed)
    return connectors, tasks


def refused(agent: Agent, method: str, path: str) -> tuple[int, str | None]:
    answer = agent.call(method, path)
    failed = answer.status >= 400 and answer.body
    return answer.status, answer.message if failed else None


def test_a_connector_created_through_a_follower_runs_on_all_workers(
    cluster: Cluster, journal: Journal
) -> None:
    """The leader writes the config, every worker lists it, and each gets its share of the tasks."""
    follower = cluster.followers()[0]
    answer = follower.create("spread", journal.config(6))
    assert answer.headers["location"] == f"{follower.url}/connectors/spread"
    cluster.wait_until_running({"spread": 6})
    _, tasks = load(cluster)
    assert set(tasks.values()) == {2}
    for agent in cluster.agents:
        assert agent.get("/connectors") == ["spread"]
    again = follower.call("POST", "/connectors", {"name": "spread", "config": journal.config(1)})
    assert (again.status, again.message) == (409, "Connector spread already exists")


def test_any_worker_pauses_resumes_stops_and_deletes(cluster: Cluster, journal: Journal) -> None:
    """Each request goes to another worker, and all workers show the same state in the end."""
    first, second, third = cluster.agents
    first.create("life", journal.config(3))
    cluster.wait_until_running({"life": 3})
    assert second.call("PUT", "/connectors/life/pause").status == 202
    for agent in cluster.agents:
        agent.wait_for_states("life", *["PAUSED"] * 4)
    assert third.call("PUT", "/connectors/life/resume").status == 202
    cluster.wait_until_running({"life": 3})
    assert first.call("PUT", "/connectors/life/stop").status == 204
    for agent in cluster.agents:
        agent.wait_for_states("life", "STOPPED")
    assert second.call("PUT", "/connectors/life/resume").status == 202
    cluster.wait_until_running({"life": 3})
    changed = third.call("PUT", "/connectors/life/config", journal.config(1))
    assert changed.status == 200
    cluster.wait_until_running({"life": 1})
    assert second.call("DELETE", "/connectors/life").status == 204
    for agent in cluster.agents:
        for path in ("/connectors/life", "/connectors/life/status"):
            eventually(lambda agent=agent, path=path: agent.call("GET", path).status == 404, WAIT_S)
    assert journal.entries("overlap") == []


def test_a_task_restart_travels_from_follower_to_leader_to_owner(
    cluster: Cluster, journal: Journal
) -> None:
    """A restart is forwarded twice at most, and the task starts again on the same worker."""
    cluster.agents[0].create("restarted", journal.config(3))
    cluster.wait_until_running({"restarted": 3})
    asker, owner = cluster.followers()
    before = cluster.owners()
    task = next(n for n in range(3) if before[f"restarted-{n}"] == worker_of(owner))
    count = journal.starts()
    assert asker.call("POST", f"/connectors/restarted/tasks/{task}/restart").status == 204
    eventually(lambda: journal.starts() > count, WAIT_S)
    cluster.wait_until_running({"restarted": 3})
    assert [entry.task for entry in journal.started_since(count)] == [f"restarted-{task}"]
    assert cluster.owners() == before
    # A request that was forwarded twice goes no further.
    assert refused(asker, "POST", f"/connectors/restarted/tasks/{task}/restart?forward=false") == (
        409,
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    )


def test_a_restart_of_everything_through_a_follower_restarts_on_all_owners(
    cluster: Cluster, journal: Journal
) -> None:
    """The config topic has the restart (KIP-745), and each worker restarts its own parts."""
    cluster.agents[0].create("all", journal.config(3))
    cluster.wait_until_running({"all": 3})
    before, count = cluster.owners(), journal.starts()
    answer = cluster.followers()[1].call("POST", "/connectors/all/restart?includeTasks=true")
    assert answer.status == 202
    states = [part["state"] for part in [answer.json()["connector"], *answer.json()["tasks"]]]
    assert states == ["RESTARTING"] * 4
    eventually(lambda: len(journal.started_since(count)) == 3, WAIT_S)
    cluster.wait_until_running({"all": 3})
    assert cluster.owners() == before


def test_a_restart_is_refused_while_a_rebalance_is_expected(
    cluster: Cluster, journal: Journal
) -> None:
    """A restart gets a 409 until stopped tasks have ended and the group has met."""
    cluster.agents[0].create("slow", journal.config(3, stop_seconds="4"))
    cluster.wait_until_running({"slow": 3})
    owner = cluster.named(cluster.owners()["slow-0"])
    owner.call("PUT", "/connectors/slow/config", journal.config(4, stop_seconds="4"))
    eventually(lambda: "slow-0" in {entry.task for entry in journal.entries("stopping")}, WAIT_S)
    found = refused(owner, "POST", "/connectors/slow/tasks/0/restart")
    text = "Cannot complete request momentarily due to stale configuration (typically caused by a"
    assert found == (409, f"{text} concurrent config change)")
    cluster.wait_until_running({"slow": 4})


def test_a_corrupted_record_is_skipped_with_its_offset_and_key(
    cluster: Cluster, kafka_broker: SharedBroker, journal: Journal
) -> None:
    """All workers skip the record alike, so they agree on offsets and the next change works."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    delivered = []
    producer.produce(
        f"{cluster.group_id}-configs",
        key=b"connector-broken",
        value=b"{not json",
        on_delivery=lambda error, message: delivered.append((error, message.offset())),
    )
    producer.flush(WAIT_S)
    [(error, offset)] = delivered
    assert error is None
    for agent in cluster.agents:
        eventually(
            lambda agent=agent: any(
                "ERROR" in line and "key=connector-broken" in line and f"offset={offset}" in line
                for line in agent.log().splitlines()
            ),
            WAIT_S,
        )
    cluster.followers()[0].create("after", journal.config(3))
    cluster.wait_until_running({"after": 3})
    assert cluster.agents[0].get("/connectors") == ["after"]


def test_an_added_agent_takes_only_its_share(cluster: Cluster, journal: Journal) -> None:
    """The fourth agent gets its share of ten connectors with two tasks; nothing else moves.

    Twenty tasks on four workers give each five tasks, and two or three connectors.
    """
    names = [f"many-{number}" for number in range(10)]
    for name in names:
        cluster.agents[0].create(name, journal.config(2))
    cluster.wait_until_running(dict.fromkeys(names, 2), 60)
    before, count = settled_owners(cluster), journal.starts()
    added = cluster.add()
    try:
        eventually(lambda: load(cluster)[1][worker_of(added)] == 5)
        cluster.wait_until_running(dict.fromkeys(names, 2))
        after = settled_owners(cluster)
        moved = {item for item in after if after[item] != before[item]}
        assert {after[item] for item in moved} == {worker_of(added)}
        connectors, tasks = load(cluster)
        assert sorted(tasks.values()) == [5, 5, 5, 5]
        assert sorted(connectors.values()) == [2, 2, 3, 3]
        assert len(journal.started_since(count)) == 5
        assert journal.entries("overlap") == []
    finally:
        cluster.agents.remove(added)
        added.process.stop()


def settled_owners(cluster: Cluster) -> dict[str, str]:
    """Return the owners once the loads are even: successive revocations wait for each other."""
    size = len(cluster.agents)

    def even() -> dict[str, str] | None:
        loads = load(cluster)
        spread = all(
            len(counts) == size and max(counts.values()) - min(counts.values()) <= 1
            for counts in loads
        )
        return cluster.owners() if spread else None

    return eventually(even, describe=lambda: load(cluster))
