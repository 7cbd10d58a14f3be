"""Consent to a change of several objects, after the plan was shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from pyconnect_cli.acting.batch import BatchStep, plan_lines
from pyconnect_cli.session import Session
from tests.support.fakes.connect_server import FakeConnect

pytestmark = pytest.mark.wire

# `run` of conftest.py: arguments to (exit code, stdout, stderr)
Run = Any
Answer = Callable[[bool], list[str]]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Let a user at a terminal agree or not; return the list of the questions."""

    def set_answer(agrees: bool) -> list[str]:
        asked: list[str] = []

        def confirm(question: str, **_: object) -> bool:
            asked.append(question)
            return agrees

        monkeypatch.setattr(Session, "interactive", True)
        monkeypatch.setattr(typer, "confirm", confirm)
        return asked

    return set_answer


def test_the_names_of_a_plan_are_a_column() -> None:
    """Further changes of one object stand below its first; control characters are escaped."""
    steps = [
        BatchStep(name="a", done="", act=lambda: None, changes=("x: 1 -> 2", "y: \x1b -> 3")),
        BatchStep(name="longer", done="", act=lambda: None),
    ]
    assert plan_lines(steps) == ["  a       x: 1 -> 2", "          y: \\x1b -> 3", "  longer"]


CASES = {
    "stop": (["stop", "--all"], "stop 2 connectors?", "broken  RUNNING -> STOPPED"),
    "pause": (["pause", "--all"], "pause 2 connectors?", "orders  RUNNING -> PAUSED"),
    "resume": (
        ["resume", "--all"],
        "resume 2 connectors, 2 of them unchanged?",
        "orders  unchanged",
    ),
    "restart": (
        ["restart", "--all"],
        "restart 2 connectors?",
        "broken  RUNNING, 2 tasks, 1 FAILED -> restarted",
    ),
    "patch": (
        ["patch", "--all", "--set", "team=b", "--set", "db.password=x"],
        "patch 2 connectors?",
        "orders  db.password: ******** -> ******** (changed)",
    ),
    "delete": (["delete", "--all"], "delete 2 connectors?", "orders  RUNNING, 1 task -> deleted"),
}


@pytest.mark.parametrize("verb", CASES)
def test_a_change_of_several_connectors_asks_on_a_terminal(
    run: Run, connect: FakeConnect, answer: Answer, verb: str
) -> None:
    """The plan has old and new values, the question the total; after a no nothing is changed."""
    words, question, line = CASES[verb]
    asked = answer(False)
    outcome = run("connectors", *words)
    assert (outcome.code, asked) == (9, [question])
    assert line in outcome.err
    changing = [r for r in connect.requests if not r.startswith("GET") and "validate" not in r]
    assert not changing
    answer(True)
    assert run("connectors", *words).code == 0
    asked = answer(False)
    assert run("connectors", *words, "--yes", "--allow-empty").code == 0
    assert asked == []


def test_one_connector_is_changed_without_a_question(run: Run, answer: Answer) -> None:
    """A change of one connector is not asked about, except for its deletion."""
    asked = answer(False)
    assert run("connectors", "stop", "orders").code == 0
    assert asked == []
    assert run("connectors", "delete", "orders").code == 9
    assert asked == ["delete 1 connector?"]


def test_a_script_is_not_asked(run: Run, connect: FakeConnect) -> None:
    """Without a terminal a stop needs no consent, and a deletion needs --yes."""
    outcome = run("connectors", "stop", "--all")
    assert (outcome.code, outcome.err) == (0, "")
    assert run("connectors", "delete", "--all").code == 9
    assert len(connect.connectors) == 2


def test_apply_asks_with_the_total(run: Run, answer: Answer, tmp_path: Path) -> None:
    """The question counts creations, updates and deletions; the plan has the changed values."""
    orders = {"connector.class": "org.example.FileSource", "team": "z"}
    documents = [{"name": "orders", "config": orders}, {"name": "new", "config": orders}]
    file = tmp_path / "all.json"
    file.write_text(json.dumps(documents))
    asked = answer(False)
    outcome = run("connectors", "apply", "-f", str(file), "--prune", "--all")
    assert (outcome.code, asked) == (9, ["apply: 1 create, 1 update, 1 delete?"])
    assert "- team=a" in outcome.err
    assert "+ team=z" in outcome.err
    assert run("connectors", "apply", "-f", str(file)).code == 9
    answer(True)
    assert run("connectors", "apply", "-f", str(file)).code == 0


def test_failed_tasks_are_asked_for_by_their_names(run: Run, answer: Answer) -> None:
    """One task is restarted without a question; for several the question lists their names."""
    asked = answer(False)
    assert run("tasks", "restart", "--all").code == 0
    outcome = run("tasks", "restart", "broken/0", "broken/1")
    assert (outcome.code, asked) == (9, ["restart 2 tasks?"])
    assert "broken/1" in outcome.err


def test_a_dry_run_that_would_change_nothing_says_so(run: Run, connect: FakeConnect) -> None:
    """With --exit-code a dry run without changes exits with 0, whatever is selected."""
    for connector in connect.connectors.values():
        connector.state = "STOPPED"
    outcome = run("connectors", "stop", "--all", "--dry-run", "--exit-code")
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "would stop broken: unchanged")
