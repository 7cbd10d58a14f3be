"""Verbs that the view runs: on its cluster, with its credentials, without a terminal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_cli.session import Session
from pyconnect_cli.top.commands import ClusterSource, run_verb
from pyconnect_cli.top.state import State
from pyconnect_cli.top.table import table
from tests.cli.overview.test_fleet import frozen
from tests.support.fakes.connect_server import FakeConnect

pytestmark = pytest.mark.wire


@pytest.fixture
def session(url: str, environ: dict[str, str]) -> Iterator[Session]:
    made = Session({**environ, "PYCONNECT_URL": url})
    yield made
    made.close()


def test_a_verbs_output_and_errors_are_lines(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """No output reaches the terminal, which belongs to the view."""
    ended = run_verb(session, ("connectors", "describe", "orders"), width=80)
    assert ended.code == 0
    assert any("org.example.FileSource" in line for line in ended.lines)
    assert "hunter2" not in "".join(ended.lines)
    assert capsys.readouterr() == ("", "")
    ended = run_verb(session, ("connectors", "describe", "ordres"), width=80)
    assert ended.code == 3
    assert "orders" in ended.lines[-1]
    assert run_verb(session, ("connectors", "describe"), width=80).code == 2


def test_a_plan_changes_nothing_and_an_agreed_verb_asks_nothing(
    session: Session, connect: FakeConnect
) -> None:
    """--dry-run changes nothing; `agreed` answers the question, because stdin has no user."""
    planned = run_verb(session, ("connectors", "delete", "--dry-run", "orders"), width=80)
    assert planned.code == 0
    assert planned.lines[0].startswith("would delete orders")
    assert "orders" in connect.connectors
    ended = run_verb(session, ("connectors", "delete", "orders"), width=80, agreed=True)
    assert ended.code == 0
    assert "orders" not in connect.connectors


def test_secrets_are_fetched_once(
    url: str, environ: dict[str, str], connect: FakeConnect, tmp_path: Path
) -> None:
    """The password's command runs once for all verbs, and every request has the password."""
    file = tmp_path / "asked"
    session = Session({**environ, "PYCONNECT_URL": url})
    session.given = {"username": "u", "password_command": f"sh -c 'echo x >> {file}; echo p'"}
    source = ClusterSource(session)
    source.look(lag=False)
    source.run(("connectors", "describe", "orders"), width=80)
    assert file.read_text("utf-8") == "x\n"
    assert None not in connect.authorizations
    session.close()


def test_connectors_of_a_frozen_worker_are_marked_in_the_first_look(
    url: str, environ: dict[str, str], connect: FakeConnect
) -> None:
    """Only statuses name the frozen worker, which accepts connections and never answers."""
    with frozen() as hanging:
        connect.worker_id = hanging.removeprefix("http://")
        session = Session({**environ, "PYCONNECT_URL": url, "PYCONNECT_REQUEST_TIMEOUT": "1s"})
        source = ClusterSource(session)
        state = State().looked(source.look(lag=False))
        source.close()
    shown = table(state, width=100, now_ms=0)
    places = [head.key for head in shown.heads]
    states = {line.cells[places.index("STATE")].text for line in shown.lines}
    assert states == {"RUNNING (no answer)"}
