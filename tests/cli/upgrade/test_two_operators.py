"""Two operators at once: the second one's plan is for a cluster that the first has changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pyconnect_cli.acting.journal import entries_of
from pyconnect_cli.errors import Conflict
from pyconnect_cli.session import Session
from pyconnect_cli.upgrade import commands, perform
from pyconnect_cli.upgrade.perform import Journal, journal_directory
from pyconnect_cli.upgrade.plan.run import Entry, Finished, Leg, Run
from pyconnect_clients.connect_names import Phase
from tests.cli.upgrade.plan.upgrade_world import STARTED

OURS = replace(STARTED, run_id="ours", inventory=(), failed=())
THEIRS = replace(
    OURS,
    run_id="theirs",
    target=Phase.ENABLED,
    legs=(Leg(start=Phase.PREPARING, target=Phase.ENABLED),),
)
# The parts of an observer that are used before the first step.
ADMIN = SimpleNamespace(describe_cluster=lambda: {"cluster_id": "k"})
OBSERVER = cast("Any", SimpleNamespace(group_id="g", protocol=SimpleNamespace(admin=ADMIN)))


@pytest.fixture
def session(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Session:
    @contextmanager
    def free(*_: object) -> Iterator[None]:
        yield

    monkeypatch.setattr(perform, "cluster_lock", free)
    monkeypatch.setattr(Session, "confirm", lambda *_: None)
    return Session({**environ, "PYCONNECT_KAFKA_BOOTSTRAP": "127.0.0.1:1"})


@pytest.fixture
def journal(environ: dict[str, str]) -> Journal:
    journal = Journal(journal_directory(environ), "k", "g")
    with journal.lock():
        journal.append(THEIRS)
    return journal


def test_a_run_begun_meanwhile_is_not_abandoned(session: Session, journal: Journal) -> None:
    """A plan does not replace a run that began after it was shown."""
    with pytest.raises(Conflict, match="run theirs to enabled was begun meanwhile"):
        commands._carry_out(session, OBSERVER, cast("Any", None), OURS)
    run = journal.run()
    assert run is not None
    assert (run.started, run.finished) == (THEIRS, False)


def test_a_run_that_another_operator_has_ended_is_not_ended_again(
    session: Session, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that another operator has ended after the question is not ended again."""
    monkeypatch.setattr(commands, "_unfinished", lambda *_: Run(started=THEIRS))
    with journal.lock():
        journal.append(Finished())
    lines = len(entries_of(journal.path, Entry))
    with pytest.raises(Conflict, match="run theirs is not the unfinished run any more"):
        commands._end_run(session, OBSERVER)
    assert len(entries_of(journal.path, Entry)) == lines
