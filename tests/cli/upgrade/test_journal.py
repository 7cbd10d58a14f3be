"""The journal returns the entries that were written, also after a kill within a line."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pyconnect_cli.acting.journal import entries_of
from pyconnect_cli.errors import Conflict, PreconditionFailed, UsageError
from pyconnect_cli.upgrade.perform import Journal, last_runs, unfinished_group
from pyconnect_cli.upgrade.plan.run import (
    Entry,
    Finished,
    Halted,
    LegFinished,
    Resumed,
    StepChanged,
    StepStarted,
    StepVerified,
    replay,
)
from pyconnect_clients.connect_names import Phase
from tests.cli.upgrade.plan.upgrade_world import STARTED
from tests.support.cases import cases

ENTRIES: tuple[Entry, ...] = (
    STARTED,
    Resumed(tool_version="2"),
    StepStarted(url="http://w", phase=Phase.PREPARING, instance="m"),
    StepChanged(url="http://w"),
    Halted(reason="why", hint="what", operator=True),
    StepVerified(url="http://w", phase=Phase.PREPARING, evidence="e"),
    LegFinished(target=Phase.PREPARING, evidence="e"),
    Finished(),
)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "upgrades", "k", "group/one")


def test_a_line_cut_off_by_a_kill_is_left_out(journal: Journal) -> None:
    """A line that a kill cut off is ignored, and the next entry begins a new line."""
    with journal.lock():
        journal.append(STARTED)
        whole = journal.path.read_bytes()
        journal.append(ENTRIES[2])
        added = journal.path.read_bytes()[len(whole) :]
        for cut in range(len(added)):
            journal.path.write_bytes(whole + added[:cut])
            journal.append(Finished())
            entries = entries_of(journal.path, Entry)
            # Without its line end the entry is whole: it counts.
            between = [ENTRIES[2]] if cut == len(added) - 1 else []
            assert entries == [STARTED, *between, Finished()], cut


def test_one_run_at_a_time_on_a_host(journal: Journal) -> None:
    """A second run on the host is exit 6 at once, until the first one ends."""
    other = Journal(journal.path.parent, "k", "group/one")
    with journal.lock(), pytest.raises(Conflict), other.lock():
        pass
    with other.lock():
        pass


def test_every_entry_is_read_as_it_was_written(journal: Journal) -> None:
    """All entries are read as they were written, and only their owner may read the file."""
    assert journal.run() is None
    with journal.lock():
        for entry in ENTRIES:
            journal.append(entry)
        assert tuple(entries_of(journal.path, Entry)) == ENTRIES
        assert journal.run() == replay(ENTRIES)
        assert journal.path.stat().st_mode & 0o077 == 0
        assert journal.path.name == "k-group%2fone.jsonl"


@cases(
    "line",
    '{"entry": "Vanished", "at": "now"}',
    '{"entry": "Finished", "at": "now", "later": true}',
    '{"entry": "StepChanged", "at": "now", "url": "http://never-started"}',
    '{"entry": "StepStarted", "at": "now", "url": "u", "phase": "beyond", "instance": null}',
)
def test_an_unreadable_journal_is_named_and_hides_no_other(journal: Journal, line: str) -> None:
    """An unknown entry makes a journal unreadable; other journals are still read."""
    other = Journal(journal.path.parent, "k", "other")
    for each in (journal, other):
        with each.lock():
            each.append(STARTED)
    journal.path.write_text(journal.path.read_text() + line + "\n")
    with pytest.raises(UsageError, match=str(journal.path)) as refused:
        journal.run()
    assert "move the file away" in str(refused.value.hint)
    found, broken = last_runs(journal.path.parent)
    assert [run.started.run_id for run in found] == ["r"]
    assert [reason.partition(":")[0] for reason in broken] == [str(journal.path)]


def test_texts_keep_unicode_line_separators(journal: Journal) -> None:
    """Line separators of Unicode in an error do not split an entry."""
    halted = Halted(reason="one\u2028two\x85three\nfour", hint="h")
    with journal.lock():
        for entry in (STARTED, halted):
            journal.append(entry)
    run = journal.run()
    assert run is not None
    assert run.halted == halted


def test_the_last_run_of_each_journal_is_found(journal: Journal) -> None:
    """The last run of every journal is found; without a directory there are none."""
    assert last_runs(journal.path.parent) == ([], [])
    for each in (journal, Journal(journal.path.parent, "k", "other")):
        with each.lock():
            each.append(STARTED)
            each.append(Finished())
            each.append(replace(STARTED, run_id="newest"))
    found, broken = last_runs(journal.path.parent)
    assert broken == []
    assert [(run.started.run_id, run.finished) for run in found] == [("newest", False)] * 2


def test_the_group_of_an_unfinished_run_is_that_of_the_same_kafka_cluster(tmp_path: Path) -> None:
    """An unfinished run on another Kafka cluster is ignored, although the address is the same."""
    directory = tmp_path / "upgrades"
    journal = Journal(directory, "k", "g")
    with journal.lock():
        journal.append(STARTED)
        assert unfinished_group(directory, "k", ["http://x", "http://w"]) == "g"
        assert unfinished_group(directory, "k", ["http://x"]) is None
        assert unfinished_group(directory, "another", ["http://w"]) is None
        journal.append(Finished())
    assert unfinished_group(directory, "k", ["http://w"]) is None


def test_an_entry_that_the_disk_took_only_in_part_is_not_written(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry that a full disk takes only in part is an error and does not count."""
    with journal.lock():
        journal.append(STARTED)
        whole = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, content: whole(descriptor, content[:9]))
        with pytest.raises(PreconditionFailed, match="No space left"):
            journal.append(Finished())
        monkeypatch.undo()
    run = journal.run()
    assert run is not None
    assert not run.finished
