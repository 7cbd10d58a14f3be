"""Evidence about tasks in the status and config topics."""

import json

import pytest

from pyconnect_reconcile.findings import Place, Severity
from pyconnect_reconcile.offset_history import Circumstances, LastCommits, read_commit
from pyconnect_reconcile.task_records import (
    Statuses,
    StatusReport,
    TaskConfigSet,
    read_status,
    sharing,
)
from tests.reconcile.internal_records import config_records, stopped, task

Report = tuple[str, str | None, int]
"""Worker, state (None: a removal), generation."""


def reports(*told: Report) -> list[StatusReport]:
    return [
        task(0, state, offset, worker=worker, generation=generation, offset=offset)
        for offset, (worker, state, generation) in enumerate(told)
    ]


def test_a_worker_that_missed_a_rebalance_held_the_task_with_its_successor() -> None:
    """A worker reports an older generation after its successor did: both held the task."""
    history = reports(("a", "RUNNING", 5), ("b", "RUNNING", 7), ("a", "PAUSED", 6))
    [found] = Statuses(history).double_runs()
    assert (found.kind, found.group, found.count) == ("double-run", "c", 1)
    assert [copy.offset for copy in found.copies] == [1, 2]
    assert "b reported RUNNING in generation 7, and after that a reported PAUSED" in found.message


def test_two_clusters_on_the_same_topics_take_turns() -> None:
    """Workers of two clusters alternate in their own generations, which is one finding."""
    told = [("a", "RUNNING", 4), ("b", "RUNNING", 2), ("a", "PAUSED", 4), ("b", "PAUSED", 2)]
    told += [("a", "RUNNING", 4), ("b", "RUNNING", 2)]
    [found] = Statuses(reports(*told)).double_runs()
    assert found.count == 2


@pytest.mark.parametrize(
    "told",
    [
        # An orderly handover, and one back.
        [("a", "RUNNING", 1), ("a", "UNASSIGNED", 2), ("b", "RUNNING", 3), ("a", "RUNNING", 4)],
        # A worker died, and another one has its task now.
        [("a", "RUNNING", 1), ("b", "RUNNING", 2), ("b", "PAUSED", 2), ("b", "RUNNING", 3)],
        # All workers died, and a new group was created.
        [("a", "RUNNING", 5), ("b", "RUNNING", 1), ("a", "RUNNING", 2)],
        [("a", "RUNNING", 1), ("b", "RUNNING", 1)],
        # A late UNASSIGNED shows that the task had ended.
        [("a", "RUNNING", 1), ("b", "RUNNING", 3), ("a", "UNASSIGNED", 1)],
        # The other worker's task had ended before.
        [("a", "RUNNING", 1), ("b", "RUNNING", 3), ("b", "FAILED", 3), ("a", "RUNNING", 2)],
        [("a", "RUNNING", 1), ("b", "RUNNING", 3), ("b", "UNASSIGNED", 3), ("a", "RUNNING", 2)],
    ],
)
def test_normal_operation_is_not_reported_as_double_run(told: list[Report]) -> None:
    """Orderly ends, crashes and new groups do not prove that two workers held a task."""
    assert Statuses(reports(*told)).double_runs() == []


def test_reports_in_several_partitions_have_no_order() -> None:
    """Reports in several partitions prove no double run, because they have no order."""
    history = reports(("a", "RUNNING", 5), ("b", "RUNNING", 7))
    place = Place(topic="status", partition=1, offset=0, timestamp_ms=9, key="status-task-c-0")
    fields = {"state": "PAUSED", "worker_id": "a", "generation": 6}
    stray = read_status(place, fields)
    assert stray is not None
    assert Statuses([*history, stray]).double_runs() == []


def test_a_takeover_is_a_change_of_worker_without_a_farewell() -> None:
    """A takeover is a change of worker without UNASSIGNED or a removal before it."""
    told = reports(("a", "RUNNING", 1), ("b", "RUNNING", 2), ("a", "UNASSIGNED", 1))
    told += [task(0, "RUNNING", 5, worker="d", generation=3, offset=5)]
    found = [(each.before.worker, each.after.worker) for each in Statuses(told).takeovers("c")]
    assert found == [("a", "b"), ("b", "d")]
    for farewell in ("UNASSIGNED", "FAILED", None):
        quiet = reports(("a", "RUNNING", 1), ("a", farewell, 1), ("b", "RUNNING", 2))
        assert Statuses(quiet).takeovers() == []


def test_holders_of_tasks_are_known_from_the_first_report() -> None:
    """It is not known before the first report whether a connector is stopped."""
    statuses = Statuses([stopped(10), task(0, "RUNNING", 20), stopped(30, state="RUNNING")])
    assert statuses.stopped_at("c", 5) is None
    assert statuses.stopped_at("c", 15) is True
    assert statuses.stopped_at("c", 20) is True
    assert statuses.stopped_at("c", 25) is False
    assert [each.worker for each in statuses.holders_at("c", 25)] == ["a:1"]
    assert statuses.holders_at("c", 15) == statuses.holders_at("d", 25) == []


def test_names_may_contain_the_separator() -> None:
    """The task's number follows the last hyphen of the key, and other keys are not statuses."""

    def read(key: str | None) -> StatusReport | None:
        fields = {"state": "RUNNING", "worker_id": "a", "generation": 1}
        return read_status(Place(key=key), fields)

    named = read("status-task-my-own-connector-12")
    assert named is not None
    assert (named.connector, named.task) == ("my-own-connector", 12)
    for key in (None, "status-task-c", "status-task-c-x", "status-topic-t:connector-c", "other"):
        assert read(key) is None
    assert read_status(Place(key="status-task-c-0"), {"state": "RUNNING"}) is None


SOURCE = '{"filename":"b"}'


def shared(*tasks: dict[str, str], source: str = SOURCE) -> str | None:
    in_force = TaskConfigSet(config_records(*tasks)).in_force("c")
    assert in_force is not None
    found = sharing(in_force, source)
    return None if found is None else str(found)


def test_tasks_with_overlapping_lists_share_a_source() -> None:
    """Two tasks share a source if lists in their configurations name it, in a named property."""
    both = shared({"files": "a,b"}, {"files": "b, c"}, {"files": "d"})
    assert both == "the configurations of tasks 0, 1 name the same source (in files)"
    assert shared({"files": "a"}, {"files": "b"}) is None
    assert shared({"files": "a,bb"}, {"files": "b"}) is None


def test_a_property_of_all_tasks_does_not_identify_a_source() -> None:
    """A text that all tasks have, such as a server, does not prove a shared source."""
    source = '{"server":"s","table":"t"}'
    tasks = [{"server": "s", "tables": "t,u"}, {"server": "s", "tables": "v"}]
    assert shared(*tasks, source=source) is None
    assert shared(*tasks, source='{"server":"s"}') is None
    tasks[1]["tables"] = "v,t"
    assert (
        shared(*tasks, source=source)
        == "the configurations of tasks 0, 1 name the same source (in tables)"
    )


def test_tasks_with_equal_configurations_share_a_source() -> None:
    """Tasks with equal configurations share every source partition."""
    assert shared({"x": "1"}, {"x": "1"}) == "tasks 0, 1 have the same configuration"
    assert shared({"x": "1"}) is None
    assert shared({"x": "1"}, {"x": "2"}, source="null") is None


def test_overlaps_are_noted_once() -> None:
    """Equal configurations are one note per connector; overlaps are one per source partition."""
    key = json.dumps(["c", {"filename": "b"}]).encode()
    other = json.dumps(["c", {"filename": "a"}]).encode()
    commits = [read_commit(("o", 0, n, n), k, b'{"p":1}') for n, k in enumerate((key, other))]
    last = LastCommits([commit for commit in commits if commit is not None])
    equal = Circumstances(configs=TaskConfigSet(config_records({"f": "a"}, {"f": "a"})))
    [note] = last.overlaps(equal)
    assert (note.kind, note.severity, note.count) == ("overlapping-tasks", Severity.NOTE, 2)
    assert "reads every source partition" in note.message
    lists = Circumstances(configs=TaskConfigSet(config_records({"f": "a,b"}, {"f": "b,c"})))
    [note] = last.overlaps(lists)
    assert '{"filename":"b"}' in note.message
    assert [copy.key for copy in note.copies] == ["commit-c"]


def test_only_a_whole_committed_set_is_in_force() -> None:
    """A commit without all its task configurations is ignored: the set before stays in force."""
    records = config_records({"f": "a"})
    place = Place(topic="config", partition=0, offset=9, timestamp_ms=50, key="commit-c")
    configs = TaskConfigSet([*records, (place, b'{"tasks":2}')])
    assert configs.count == 1
    in_force = configs.in_force("c")
    assert in_force is not None
    assert in_force.tasks == {0: {"f": "a"}}
    assert configs.in_force("c", -1) is None


def test_a_removed_connector_is_not_configured() -> None:
    """Tombstones, empty values and JSON's null remove a connector; other values do not."""
    for value in (None, b"", b" ", b"null"):
        place = Place(topic="config", partition=0, offset=9, timestamp_ms=50, key="connector-c")
        assert TaskConfigSet([*config_records(), (place, value)]).connectors == frozenset()
        assert TaskConfigSet([*config_records(), (place, b"{}")]).connectors == {"c"}
