"""Requests that meet each other, or the death of the leader that they were forwarded to."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.agents.rest_client import Answer
from tests.support.chaos.witness import Journal
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of, status_faults, statuses_in
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(800)]

WAIT_S = 150
ROUNDS = 8


@pytest.fixture(scope="module")
def cluster(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """The last test kills the leader."""
    directory = tmp_path_factory.mktemp("operators")
    with cluster_of(2, kafka_broker.bootstrap_servers, directory) as cluster:
        yield cluster


def test_two_operators_leave_one_configuration_that_runs(
    cluster: Cluster, journal: Journal, kafka_broker: SharedBroker
) -> None:
    """Each changes, pauses, restarts and deletes the same connector through another worker."""
    answers: list[int] = []

    def operate(number: int) -> None:
        agent = cluster.agents[number]
        for turn in range(ROUNDS):
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
    # An earlier pause may have been the last change of the target state.
    first = cluster.agents[0]
    eventually(
        lambda: first.call("PUT", "/connectors/w/config", journal.config(2)).status in (200, 201),
        WAIT_S,
    )
    first.do("PUT", "/connectors/w/resume")
    cluster.wait_until_running({"w": 2})

    def faults() -> list[str]:
        written = statuses_in(kafka_broker.bootstrap_servers, f"{cluster.group_id}-status")
        return status_faults(cluster.agents, written)

    eventually(lambda: faults() == [], WAIT_S, faults)
    assert journal.entries("overlap") == []
    cluster.delete_all()


def test_a_leader_that_dies_with_a_forwarded_request_is_answered_for(
    cluster: Cluster, journal: Journal
) -> None:
    """The client hears of it at once; the next leader carries out the repeated request."""
    leader, (follower,) = cluster.leader(), cluster.followers()
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
