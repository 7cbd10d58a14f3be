"""The division of work in task configurations."""

from __future__ import annotations

import json

from pyconnect_reconcile.findings import Place, Severity
from pyconnect_reconcile.offset_history import Circumstances, LastCommits, read_commit
from pyconnect_reconcile.task_records import TaskConfigSet, sharing
from tests.reconcile.internal_records import config_records

SOURCE = '{"filename":"b"}'


def shared(*tasks: dict[str, str], source: str = SOURCE) -> str | None:
    in_force = TaskConfigSet(config_records(*tasks)).in_force("c")
    assert in_force is not None
    found = sharing(in_force, source)
    return None if found is None else str(found)


def test_tasks_with_overlapping_lists_share_a_source() -> None:
    """The property that divides the work is named."""
    both = shared({"files": "a,b"}, {"files": "b, c"}, {"files": "d"})
    assert both == "the configurations of tasks 0, 1 name the same source (in files)"
    assert shared({"files": "a"}, {"files": "b"}) is None
    assert shared({"files": "a,bb"}, {"files": "b"}) is None


def test_a_property_of_all_tasks_does_not_identify_a_source() -> None:
    """The name of a server is in every configuration; a source of several texts needs all."""
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
    """The source partition does not matter."""
    assert shared({"x": "1"}, {"x": "1"}) == "tasks 0, 1 have the same configuration"
    assert shared({"x": "1"}) is None
    assert shared({"x": "1"}, {"x": "2"}, source="null") is None


def test_overlaps_are_noted_once() -> None:
    """Equal configurations for the connector, overlapping ones for each source partition."""
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
    """A commit without its tasks (compacted, or under way) tells nothing; the one before holds."""
    records = config_records({"f": "a"})
    place = Place(topic="config", partition=0, offset=9, timestamp_ms=50, key="commit-c")
    configs = TaskConfigSet([*records, (place, b'{"tasks":2}')])
    assert configs.count == 1
    in_force = configs.in_force("c")
    assert in_force is not None
    assert in_force.tasks == {0: {"f": "a"}}
    assert configs.in_force("c", -1) is None


def test_a_removed_connector_is_not_configured() -> None:
    """Tombstones, empty values and JSON's null remove; what is no JSON does not."""
    for value in (None, b"", b" ", b"null"):
        place = Place(topic="config", partition=0, offset=9, timestamp_ms=50, key="connector-c")
        assert TaskConfigSet([*config_records(), (place, value)]).connectors == frozenset()
        assert TaskConfigSet([*config_records(), (place, b"{}")]).connectors == {"c"}
