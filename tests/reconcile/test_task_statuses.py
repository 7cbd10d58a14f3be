"""The proof of a task's owner in workers' reports."""

from __future__ import annotations

import pytest

from pyconnect_reconcile.findings import Place
from pyconnect_reconcile.task_records import Statuses, StatusReport, read_status
from tests.reconcile.internal_records import stopped, task

Report = tuple[str, str | None, int]
"""Worker, state (None: a removal), generation."""


def reports(*told: Report) -> list[StatusReport]:
    return [
        task(0, state, offset, worker=worker, generation=generation, offset=offset)
        for offset, (worker, state, generation) in enumerate(told)
    ]


def test_a_worker_that_missed_a_rebalance_held_the_task_with_its_successor() -> None:
    """It reports an older generation after the one that took the task from it."""
    history = reports(("a", "RUNNING", 5), ("b", "RUNNING", 7), ("a", "PAUSED", 6))
    [found] = Statuses(history).double_runs()
    assert (found.kind, found.group, found.count) == ("double-run", "c", 1)
    assert [copy.offset for copy in found.copies] == [1, 2]
    assert "b reported RUNNING in generation 7, and after that a reported PAUSED" in found.message


def test_two_clusters_on_the_same_topics_take_turns() -> None:
    """Their generations are their own; one finding tells of both workers."""
    told = [("a", "RUNNING", 4), ("b", "RUNNING", 2), ("a", "PAUSED", 4), ("b", "PAUSED", 2)]
    told += [("a", "RUNNING", 4), ("b", "RUNNING", 2)]
    [found] = Statuses(reports(*told)).double_runs()
    assert found.count == 2


@pytest.mark.parametrize(
    "told",
    [
        # Handed over as it should be, and back.
        [("a", "RUNNING", 1), ("a", "UNASSIGNED", 2), ("b", "RUNNING", 3), ("a", "RUNNING", 4)],
        # A worker died; another one has its task now.
        [("a", "RUNNING", 1), ("b", "RUNNING", 2), ("b", "PAUSED", 2), ("b", "RUNNING", 3)],
        # All workers died, and a new group was created.
        [("a", "RUNNING", 5), ("b", "RUNNING", 1), ("a", "RUNNING", 2)],
        [("a", "RUNNING", 1), ("b", "RUNNING", 1)],
        # A late farewell says that it ended.
        [("a", "RUNNING", 1), ("b", "RUNNING", 3), ("a", "UNASSIGNED", 1)],
        # The other one has ended before.
        [("a", "RUNNING", 1), ("b", "RUNNING", 3), ("b", "FAILED", 3), ("a", "RUNNING", 2)],
        [("a", "RUNNING", 1), ("b", "RUNNING", 3), ("b", "UNASSIGNED", 3), ("a", "RUNNING", 2)],
    ],
)
def test_normal_operation_is_not_reported_as_double_run(told: list[Report]) -> None:
    """Orderly ends, crashes and new groups do not prove that two workers held a task."""
    assert Statuses(reports(*told)).double_runs() == []


def test_reports_in_several_partitions_have_no_order() -> None:
    """Only writers with different partitioners make them."""
    history = reports(("a", "RUNNING", 5), ("b", "RUNNING", 7))
    place = Place(topic="status", partition=1, offset=0, timestamp_ms=9, key="status-task-c-0")
    fields = {"state": "PAUSED", "worker_id": "a", "generation": 6}
    stray = read_status(place, fields)
    assert stray is not None
    assert Statuses([*history, stray]).double_runs() == []


def test_a_takeover_is_a_change_of_worker_without_a_farewell() -> None:
    """Removals by the leader and UNASSIGNED are farewells; a late one is too late."""
    told = reports(("a", "RUNNING", 1), ("b", "RUNNING", 2), ("a", "UNASSIGNED", 1))
    told += [task(0, "RUNNING", 5, worker="d", generation=3, offset=5)]
    found = [(each.before.worker, each.after.worker) for each in Statuses(told).takeovers("c")]
    assert found == [("a", "b"), ("b", "d")]
    for farewell in ("UNASSIGNED", "FAILED", None):
        quiet = reports(("a", "RUNNING", 1), ("a", farewell, 1), ("b", "RUNNING", 2))
        assert Statuses(quiet).takeovers() == []


def test_holders_of_tasks_are_known_from_the_first_report() -> None:
    """Before it nothing is known of the connector."""
    statuses = Statuses([stopped(10), task(0, "RUNNING", 20), stopped(30, state="RUNNING")])
    assert statuses.stopped_at("c", 5) is None
    assert statuses.stopped_at("c", 15) is True
    assert statuses.stopped_at("c", 20) is True
    assert statuses.stopped_at("c", 25) is False
    assert [each.worker for each in statuses.holders_at("c", 25)] == ["a:1"]
    assert statuses.holders_at("c", 15) == statuses.holders_at("d", 25) == []


def test_names_may_contain_the_separator() -> None:
    """The number follows the last hyphen; other records are no statuses."""

    def read(key: str | None) -> StatusReport | None:
        fields = {"state": "RUNNING", "worker_id": "a", "generation": 1}
        return read_status(Place(key=key), fields)

    named = read("status-task-my-own-connector-12")
    assert named is not None
    assert (named.connector, named.task) == ("my-own-connector", 12)
    for key in (None, "status-task-c", "status-task-c-x", "status-topic-t:connector-c", "other"):
        assert read(key) is None
    assert read_status(Place(key="status-task-c-0"), {"state": "RUNNING"}) is None
