"""A cluster whose members would lead under different transactional ids."""

import pytest

from pyconnect_agent.core.errors import ServiceUnavailableError
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.state import WritePrivilege
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from tests.simulation.cluster_worker import APACHES_LEADER_ID, Worker
from tests.simulation.cluster_world import Cluster, settled_cluster
from tests.simulation.herder_world import TASKS
from tests.support.cases import cases

pytestmark = pytest.mark.simulation

CREATE = ask.PutConnectorConfig(connector="new", config={TASKS: "2"})
LEADERS = (
    CREATE,
    ask.PatchConnectorConfig(connector="c", patch={TASKS: "3"}),
    ask.DeleteConnector(connector="c"),
    ask.StopConnector(connector="c"),
    ask.RestartConnectorAndTasks(connector="c", only_failed=False, include_tasks=True),
    ask.FenceZombies(connector="c"),
    ask.ChangeOffsets(connector="c", offsets=None),
)
ANYBODYS = (
    ask.GetConnectorInfo(connector="c"),
    ask.SetTargetState(connector="c", target_state=TargetState.PAUSED),
    ask.SetTargetState(connector="c", target_state=TargetState.STARTED),
    ask.RestartConnector(connector="c"),
    ask.RestartTask(task_id=ConnectorTaskId("c", 0)),
)


def start_again(cluster: Cluster, worker: Worker, leader_id: str) -> None:
    worker.crash()
    worker.leader_id = leader_id
    worker.boot()
    cluster.settle()


def disputed_cluster() -> Cluster:
    """Return two workers that run a connector; the follower has restarted with an id of its own."""
    cluster = settled_cluster(
        2, [ask.PutConnectorConfig(connector="c", config={TASKS: "2", "text": "x"})]
    )
    start_again(cluster, cluster.follower(), "own")
    return cluster


@pytest.mark.parametrize("request_", LEADERS, ids=lambda request: type(request).__name__)
def test_while_ids_differ_the_leader_refuses_requests_that_write(request_: ask.Request) -> None:
    """The error names the key and the other members with their ids, and nothing is written."""
    cluster = disputed_cluster()
    follower, written = cluster.follower(), len(cluster.log)
    for worker in cluster.workers:
        error = cluster.settled(worker, request_).error
        assert isinstance(error, ServiceUnavailableError)
        for part in (f"{follower.url} (own)", APACHES_LEADER_ID, "agent.leader.transactional.id"):
            assert part in error.message
    assert len(cluster.log) == written
    assert cluster.leader().state.privilege is WritePrivilege.NONE
    cluster.check_rest()


@pytest.mark.parametrize("request_", ANYBODYS, ids=lambda request: type(request).__name__)
def test_requests_without_a_leaders_write_continue(request_: ask.Request) -> None:
    """Connectors keep running, and may be read, paused and restarted."""
    cluster = disputed_cluster()
    for worker in cluster.workers:
        assert cluster.settled(worker, request_).error is None
    cluster.check_rest()


def test_the_leader_writes_again_once_all_agree() -> None:
    """The rebalance in which all agree lets the leader claim the topic without a request."""
    cluster = disputed_cluster()
    start_again(cluster, cluster.follower(), APACHES_LEADER_ID)
    assert cluster.leader().state.privilege is WritePrivilege.HELD
    for worker in cluster.workers:
        assert not isinstance(cluster.settled(worker, CREATE).error, ServiceUnavailableError)
    assert cluster.leader().state.snapshot.contains("new")
    cluster.check_rest()


def test_a_group_that_agrees_on_an_own_id_writes() -> None:
    """Any id serves, as long as all members have it."""
    cluster = disputed_cluster()
    for worker in cluster.workers:
        worker.crash()
        worker.leader_id = "own"
    for worker in cluster.workers:
        worker.boot()
    cluster.settle()
    assert cluster.settled(cluster.workers[0], CREATE).error is None
    cluster.check_rest()


@cases(
    "change",
    ask.PatchConnectorConfig(connector="c", patch={TASKS: "2"}),
    ask.PutConnectorConfig(connector="c", config={TASKS: "2"}),
)
def test_a_change_that_has_begun_is_not_written_into_a_dispute(change: ask.Request) -> None:
    """A config whose validation ends during a dispute is refused and not written."""
    cluster = settled_cluster(2, [ask.PutConnectorConfig(connector="c", config={TASKS: "1"})])
    leader, other = cluster.leader(), cluster.follower()
    other.crash()
    cluster.settle()
    patching = cluster.ask(leader, change)
    leader.deliver()
    [validation] = leader.answers
    leader.answers.remove(validation)
    other.leader_id = "own"
    other.boot()
    while not leader.state.disputed:
        assert cluster.take_step()
    assert patching.reply is None
    leader.answers.append(validation)
    cluster.settle()
    assert isinstance(patching.error, ServiceUnavailableError)
    cluster.check_rest()
