"""Histories of source offsets: regressions, resets, two writers, orphans."""

from __future__ import annotations

import json

from pyconnect_reconcile.findings import Severity
from pyconnect_reconcile.offset_history import (
    Commit,
    disagreements,
    findings_of,
    histories,
    orphans,
    read_commit,
)


def commits(*values: object, topic: str = "offsets", connector: str = "c") -> list[Commit]:
    made = []
    for offset, value in enumerate(values):
        key = json.dumps([connector, {"file": "a"}]).encode()
        content = None if value is None else json.dumps(value).encode()
        commit = read_commit((topic, 0, offset, offset), key, content)
        assert commit is not None
        made.append(commit)
    return made


def kinds(*values: object) -> list[str]:
    [history] = histories(commits(*values)).values()
    return [finding.kind for finding in findings_of(history)]


def test_offsets_that_only_grow_are_sound() -> None:
    """Members that are no numbers say nothing."""
    assert kinds({"position": 1, "name": "b"}, {"position": 2, "name": "a"}, {"position": 2}) == []


def test_an_offset_that_went_back_is_a_regression() -> None:
    """A file rotated forward (another member grew) is none."""
    assert kinds({"position": 9}, {"position": 4}) == ["regression"]
    assert kinds({"position": 9, "index": 1}, {"position": 0, "index": 2}) == []


def test_a_reset_explains_going_back() -> None:
    """After a tombstone anything may follow."""
    assert kinds({"position": 9}, None, {"position": 0}) == ["reset"]


def test_going_back_and_forth_is_two_writers() -> None:
    """Two tasks at one source partition overwrite each other."""
    found = kinds({"p": 10}, {"p": 3}, {"p": 20}, {"p": 4}, {"p": 30})
    assert found == ["regression", "regression", "two-writers"]


def test_offsets_of_unknown_connectors_are_orphans() -> None:
    """Forgotten ones are not."""
    [orphan] = orphans(commits({"p": 1}), frozenset({"other"}))
    assert (orphan.kind, orphan.group, orphan.severity) == ("orphan", "c", Severity.NOTE)
    assert orphans(commits({"p": 1}, None), frozenset()) == []
    assert orphans(commits({"p": 1}), frozenset({"c"})) == []


def test_a_worker_s_copy_ahead_of_the_connector_s_topic_is_wrong() -> None:
    """Behind it may be: the copy is written after the commit."""
    own = {"c": "own"}
    behind = commits({"p": 5}, topic="own") + commits({"p": 4}, topic="offsets")
    assert [each.severity for each in disagreements(behind, "offsets", own)] == [Severity.NOTE]
    ahead = commits({"p": 5}, topic="own") + commits({"p": 6}, topic="offsets")
    assert [each.severity for each in disagreements(ahead, "offsets", own)] == [Severity.ERROR]


def test_records_of_another_kind_are_no_commits() -> None:
    """The topic may hold what others wrote."""
    for key, value in [(None, b"{}"), (b"x", b"{}"), (b"[1,2,3]", None), (b'["c",{}]', b"5")]:
        assert read_commit(("t", 0, 0, 0), key, value) is None
