"""`journal list`, `connectors history` and `rollback` on an agent with a fake herder."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.stores.journal import ChangesFile
from pyconnect_cli.connectors.history import with_secrets
from tests.support.agents.rest_client import call_url
from tests.support.cases import cases
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.fakes.fake_admin import FakeAdmin
from tests.support.fakes.fake_herder import SOURCE_CLASS, FakeHerder
from tests.support.fakes.rest_services import rest_config, serving

pytestmark = pytest.mark.wire

JSON = {"Content-Type": "application/json"}
CONFIG = {"connector.class": SOURCE_CLASS, "topic": "t", "db.password": "old"}


class World:
    """An agent whose journal is a file, and commands that ask it."""

    def __init__(self, url: str, herder: FakeHerder, directory: Path) -> None:
        self.url = url
        self.herder = herder
        self.pyconnect = Pyconnect(directory, url)

    def put(self, **changes: str) -> None:
        body = json.dumps({**CONFIG, **changes})
        assert call_url(self.url, "PUT", "/connectors/c/config", body, JSON).status < 300

    def delete(self) -> None:
        assert call_url(self.url, "DELETE", "/connectors/c").status == 204


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    herder, journal = FakeHerder(), ChangesFile(tmp_path / "journal")
    with serving(rest_config(), herder, FakeAdmin(), journal) as server:
        yield World(server.advertised_url.rstrip("/"), herder, tmp_path)


def test_history_lists_the_changes_of_a_connector(world: World) -> None:
    """`history` lists the changes of one connector, and its JSON hides secrets."""
    world.put()
    world.put(topic="u")
    call_url(world.url, "PUT", "/connectors/other/config", "{}", JSON)
    world.delete()
    ended = world.pyconnect("connectors", "history", "c")
    assert ended.code == 0, ended.err
    rows = [line.split() for line in ended.out.splitlines()]
    assert rows[0] == ["NUMBER", "TIME", "USER", "CHANGE", "STATUS"]
    expected = [("0", "created 201"), ("1", "config: topic 200"), ("3", "deleted 204")]
    assert [(row[0], " ".join(row[4:])) for row in rows[1:]] == expected
    found = json.loads(world.pyconnect("connectors", "history", "c", "-o", "json").out)
    assert found[1]["after"] == {**CONFIG, "name": "c", "topic": "u", "db.password": "[hidden]"}
    listed = json.loads(world.pyconnect("journal", "list", "-o", "json").out)
    assert [change["connector"] for change in listed] == ["c", "c", "other", "c"]
    assert world.pyconnect("journal", "list", "--user", "bob").err == "no change is recorded\n"
    newest = world.pyconnect("journal", "list", "--since", "1h", "--max", "1", "-o", "name")
    assert newest.out == "3\n"


def test_rollback_gives_the_configuration_before_the_last_change(world: World) -> None:
    """`rollback` restores a configuration with the present secret, and can be rolled back."""
    world.put()
    world.put(topic="u", extra="x")
    world.put(topic="u", extra="x", **{"db.password": "new"})
    planned = world.pyconnect("connectors", "rollback", "c", "--to", "0", "--dry-run")
    assert planned.code == 0, planned.err
    assert world.herder.configs["c"]["topic"] == "u"
    ended = world.pyconnect("connectors", "rollback", "c", "--to", "0", "--yes")
    assert ended.code == 0, ended.err
    assert world.herder.configs["c"] == {**CONFIG, "name": "c", "db.password": "new"}
    assert world.pyconnect("connectors", "rollback", "c", "--yes").code == 0
    assert world.herder.configs["c"]["extra"] == "x"


def test_rollback_refuses_a_secret_that_is_gone(world: World) -> None:
    """A deleted connector's secret needs --set, and the connector returns in its target state."""
    world.put()
    assert world.pyconnect("connectors", "stop", "c", "--yes").code == 0
    world.delete()
    world.herder.target_states.clear()
    ended = world.pyconnect("connectors", "rollback", "c", "--yes")
    assert ended.code == 9
    assert "the journal hides db.password" in ended.err
    assert "c" not in world.herder.configs
    given = ("--set", "db.password=given")
    assert world.pyconnect("connectors", "rollback", "c", "--yes", *given).code == 0
    assert world.herder.configs["c"] == {**CONFIG, "name": "c", "db.password": "given"}
    assert world.herder.target_states == {"c": TargetState.STOPPED}


@cases(
    "arguments, text",
    (["c"], "no configuration of c to go back to"),
    (["none"], "no configuration of none to go back to"),
    (["c", "--to", "7"], "change 7 of c is not in the journal"),
    (["c", "--to", "1"], "there was no connector c after change 1"),
)
def test_rollback_to_nothing_is_refused(world: World, arguments: list[str], text: str) -> None:
    """A rollback without an earlier configuration is exit 3."""
    world.put()
    if "1" in arguments:
        world.delete()
    ended = world.pyconnect("connectors", "rollback", *arguments, "--yes")
    assert (ended.code, text in ended.err) == (3, True), ended.err


def test_an_agent_without_a_journal_names_its_settings(tmp_path: Path) -> None:
    """Without a journal on the agent, the error names the two settings that make one."""
    with serving(rest_config(), FakeHerder(), FakeAdmin()) as server:
        ended = Pyconnect(tmp_path, server.advertised_url.rstrip("/"))("journal", "list")
    assert ended.code != 0
    assert "agent.journal.topic or agent.journal.file" in ended.err


def test_a_value_that_is_hidden_in_part_has_to_agree_in_the_rest() -> None:
    """A secret inside a value is restored only if the rest of the value is the same."""
    recorded = {"url": "jdbc://[hidden]@host/db", "password": "[hidden]", "topic": "t"}
    stored = {"url": "jdbc://u:p@host/db", "password": "p"}
    assert with_secrets(recorded, stored) == ({**stored, "topic": "t"}, [])
    other = {"url": "jdbc://u:p@other/db", "password": None}
    assert with_secrets(recorded, other)[1] == ["url", "password"]
