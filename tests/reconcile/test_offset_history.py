"""Histories of source offsets: regressions, resets, changes by hand, two writers."""

import json

from pyconnect_reconcile.findings import Severity
from pyconnect_reconcile.offset_history import (
    Circumstances,
    LastCommits,
    OffsetCommit,
    findings_of,
    histories,
    read_commit,
)
from pyconnect_reconcile.task_records import Statuses, TaskConfigSet
from tests.reconcile.internal_records import config_records, stopped, task

STEP_MS = 1000


def commits(
    *values: object, topic: str = "offsets", partition: int = 0, key: bytes | None = None
) -> list[OffsetCommit]:
    """Return commits of connector c at consecutive offsets, a second apart."""
    made = []
    for offset, value in enumerate(values):
        raw = key or json.dumps(["c", {"file": "a"}]).encode()
        content = None if value is None else json.dumps(value).encode()
        commit = read_commit((topic, partition, offset, offset * STEP_MS), raw, content)
        assert commit is not None
        made.append(commit)
    return made


def kinds(*values: object, known: Circumstances | None = None) -> list[str]:
    [history] = histories(commits(*values))
    return [finding.kind for finding in findings_of(history, known)]


def positions(*numbers: int) -> list[object]:
    return [{"position": number} for number in numbers]


def test_offsets_that_only_grow_are_sound() -> None:
    """Growing or equal numbers are no finding, and other members do not count."""
    assert kinds({"position": 1, "name": "b"}, {"position": 2, "name": "a"}, {"position": 2}) == []


def test_an_offset_that_went_back_is_a_regression() -> None:
    """A smaller number is a regression unless another number grew, as when a file is rotated."""
    assert kinds({"position": 9}, {"position": 4}) == ["regression"]
    assert kinds({"position": 9, "index": 1}, {"position": 0, "index": 2}) == []


def test_a_reset_explains_going_back() -> None:
    """Any offset may follow a tombstone."""
    assert kinds({"position": 9}, None, {"position": 0}) == ["reset"]


def test_two_rising_runs_that_resume_each_other_are_two_writers() -> None:
    """Two runs that alternate are one finding with the records around each step back."""
    [history] = histories(commits(*positions(10, 3, 20, 4, 30)))
    [found] = findings_of(history)
    assert (found.kind, found.count, found.severity) == ("two-writers", 2, Severity.ERROR)
    assert [copy.offset for copy in found.copies] == [0, 1, 2, 3]


def test_a_source_that_starts_over_is_not_a_second_writer() -> None:
    """Runs that follow each other without a resumption are regressions, not two writers."""
    assert kinds(*positions(10, 20, 5, 15, 3, 12)) == ["regression", "regression"]
    assert kinds(*positions(10, 20, 5, 30, 40)) == ["regression"]


def test_keys_and_partitions_have_no_common_order() -> None:
    """Offsets under two spellings of a source partition are not compared by their order."""
    one, other = b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]'
    found = commits({"p": 9}, key=one, partition=0) + commits({"p": 4}, key=other, partition=1)
    assert [findings_of(history) for history in histories(found)] == [[], []]


def test_changes_during_a_stop_are_manual_changes() -> None:
    """Offsets that a stopped connector gets are a change by hand, which may go back."""
    known = Circumstances(Statuses([task(0, "UNASSIGNED", 500), stopped(1500)]))
    [history] = histories(commits({"p": 9}, {"p": 9}, {"p": 4}, None))
    altered, reset = findings_of(history, known)
    assert (altered.kind, altered.severity) == ("altered", Severity.NOTE)
    assert [copy.offset for copy in altered.copies] == [2]
    assert "a reset over REST" in reset.message
    [history] = histories(commits(None))
    [early] = findings_of(history, Circumstances(Statuses([stopped(0, state="RUNNING")])))
    assert "by the connector itself" in early.message


def test_a_connector_whose_task_still_runs_is_not_stopped() -> None:
    """A late commit of a running task is not a change by hand."""
    known = Circumstances(Statuses([task(0, "RUNNING", 500), stopped(800)]))
    assert kinds({"p": 9}, {"p": 4}, known=known) == ["regression"]


def test_a_regression_names_its_possible_writers() -> None:
    """A regression names the replaced worker, holders of tasks, and equal configurations."""
    statuses = [
        task(0, "RUNNING", 100, worker="a:1", generation=1, offset=0),
        task(0, "RUNNING", 200, worker="b:1", generation=2, offset=1),
    ]
    configs = TaskConfigSet(config_records({"file": "a"}, {"file": "a"}, {"file": "b"}))
    [history] = histories(commits({"p": 9}, {"p": 4}))
    [finding] = findings_of(history, Circumstances(Statuses(statuses), configs))
    assert (
        "Task 0 was taken over by b:1 at 1970-01-01 00:00:00Z, and a:1 had not reported its end"
        in finding.message
    )
    assert "Tasks 0, 1 have the same configuration" in finding.message
    assert "Tasks held at that time, as reported: task 0 by b:1" in finding.message


def test_offsets_of_unknown_connectors_are_orphans() -> None:
    """Offsets of an unknown connector are an orphan unless a tombstone removed them."""
    [orphan] = LastCommits(commits({"p": 1})).orphans(frozenset({"other"}))
    assert (orphan.kind, orphan.group, orphan.severity) == ("orphan", "c", Severity.NOTE)
    assert LastCommits(commits({"p": 1}, None)).orphans(frozenset()) == []
    assert LastCommits(commits({"p": 1})).orphans(frozenset({"c"})) == []


def test_a_worker_s_copy_ahead_of_the_connector_s_topic_is_wrong() -> None:
    """A copy that is ahead, or that a reset missed, is an error; one that is behind is a note."""

    def severities(own: list[OffsetCommit], copy: list[OffsetCommit]) -> list[Severity]:
        found = LastCommits(own + copy).disagreements("offsets", {"c": "own"})
        return [finding.severity for finding in found]

    five = commits({"p": 5}, topic="own")
    assert severities(five, commits({"p": 5})) == []
    assert severities(five, commits({"p": 4})) == [Severity.NOTE]
    assert severities(five, commits({"p": 6})) == [Severity.ERROR]
    assert severities(five, commits({"p": 4}, None)) == [Severity.NOTE]
    forgotten = commits({"p": 5}, None, topic="own")
    assert severities(forgotten, commits({"p": 5})) == [Severity.ERROR]
    assert severities(forgotten, commits({"p": 5}, None)) == []


def test_one_source_partition_has_one_offset() -> None:
    """One key in two partitions is an error, because it is undefined which offset a task reads."""
    twice = commits({"p": 5}) + commits({"p": 7}, partition=1)
    [split] = LastCommits(twice).splits()
    assert (split.kind, split.severity) == ("split-offset", Severity.ERROR)
    assert {(copy.partition, copy.offset) for copy in split.copies} == {(0, 0), (1, 0)}
    spelled = commits({"p": 5}, key=b'["c",{"a":1,"b":2}]')
    [split] = LastCommits(spelled + commits({"p": 6}, key=b'["c",{"b":2,"a":1}]')).splits()
    assert split.severity is Severity.NOTE
    assert LastCommits(commits({"p": 5}, None) + commits({"p": 7}, partition=1)).splits() == []


def test_records_of_another_kind_are_not_commits() -> None:
    """Records of other programs in the topic are not commits."""
    for key, value in [(None, b"{}"), (b"x", b"{}"), (b"[1,2,3]", None), (b'["c",{}]', b"5")]:
        assert read_commit(("t", 0, 0, 0), key, value) is None
