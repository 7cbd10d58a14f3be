"""Transactional ids that two users of one Kafka cluster would share."""

from pyconnect_agent.core.herder.requests.configs import SharedId, shared_id
from pyconnect_clients.connect_names import (
    alter_transactional_id,
    leader_transactional_id,
    task_transactional_ids,
)
from tests.support.cases import cases

OTHERS = {"foo": 2, "bar-7": 1, "x-01": 1}
LEADER = "connect-cluster-g"


@cases(
    "connector, tasks_max, expected",
    ("new", 3, None),
    ("foo-1", 1, SharedId("g-foo-1", "foo")),
    ("foo-2", 1, None),
    ("foo-01", 1, None),
    ("bar", 8, SharedId("g-bar-7", "bar-7")),
    ("bar", 7, None),
    ("x", 5, None),
)
def test_the_id_for_offsets_of_one_may_be_that_of_anothers_task(
    connector: str, tasks_max: int, expected: SharedId | None
) -> None:
    """Numbers count as they are written; tasks that may come count like those that are."""
    assert shared_id("g", connector, tasks_max, OTHERS.get, leader=LEADER) == expected


def test_it_is_found_by_comparing_all_ids_too() -> None:
    """Two connectors share an id exactly when the comparison reports it, for all names."""

    def ids(name: str, tasks: int) -> set[str]:
        return {alter_transactional_id("g", name), *task_transactional_ids("g", name, tasks)}

    for name in ("foo", "foo-0", "foo-1", "foo-0-0", "bar-7", "bar", "bar-7-0", "x-1", "x"):
        for tasks in (1, 2, 9):
            for other, most in OTHERS.items():
                if other != name:
                    met = bool(ids(name, tasks) & ids(other, most))
                    found = shared_id("g", name, tasks, {other: most}.get, leader=LEADER)
                    assert (found is not None) is met


def test_a_connectors_id_may_be_its_leaders() -> None:
    """Kafka's, or that of `agent.leader.transactional.id`: it would take the config topic."""
    leader = leader_transactional_id("connect")
    shared = SharedId(leader, None)
    assert shared_id("connect", "cluster-connect", 1, OTHERS.get, leader=leader) == shared
    assert shared_id("connect", "cluster", 1, OTHERS.get, leader=leader) is None
    own = "connect-writes-1"
    taken = SharedId(own, None)
    assert shared_id("connect", "writes", 2, OTHERS.get, leader=own) == taken
    assert shared_id("connect", "writes", 1, OTHERS.get, leader=own) is None
    assert shared_id("connect", "cluster-connect", 1, OTHERS.get, leader=own) is None
