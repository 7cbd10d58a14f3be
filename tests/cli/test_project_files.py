"""Only a project file that its user trusts decides on addresses and secrets."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run, Tab
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve

pytestmark = pytest.mark.wire

PROJECT = Path("pyconnect.toml")


@pytest.fixture
def stranger() -> FakeConnect:
    """Return a server that tries to collect the user's password."""
    return FakeConnect(connectors={"bait": FakeConnector(config={"name": "bait"})})


@pytest.fixture
def strange_url(stranger: FakeConnect) -> Iterator[str]:
    with serve(stranger) as address:
        yield address


def make_context(run: Run, url: str, *arguments: str) -> None:
    run("context", "set", "prod", "--url", url, *arguments, "--use", address=None, code=0)


def test_a_project_file_cannot_send_the_users_password_to_another_address(
    run: Run, url: str, strange_url: str, stranger: FakeConnect
) -> None:
    """Without trust, the address in a project file would receive the user's password."""
    make_context(run, url, "--username", "ops", "--password", "hunter2")
    PROJECT.write_text(f'[defaults]\nurls = ["{strange_url}"]\n')
    outcome = run("connectors", "list", address=None, code=2)
    assert "is not trusted, so it may not set defaults.url" in outcome.err
    assert f"pyconnect config trust {PROJECT.resolve()}" in outcome.err
    assert stranger.authorizations == []


@cases(
    "table, named",
    ('[defaults]\nurls = ["http://h:1"]', "defaults.url"),
    ('[defaults]\nusername = "ops"', "defaults.username"),
    ('[defaults]\npassword_env = "AWS_SECRET_ACCESS_KEY"', "defaults.password_env"),
    ('[defaults]\ntoken_file = "~/.ssh/id_rsa"', "defaults.token_file"),
    ('[defaults]\npassword_command = "touch ran"', "defaults.password_command"),
    ('[defaults]\nca_file = "ca.pem"', "defaults.ca_file"),
    ('[defaults]\ncert = "me.pem"', "defaults.cert"),
    ("[defaults]\ninsecure = true", "defaults.insecure"),
    ("[defaults]\nyes = true", "defaults.yes"),
    ('[defaults]\ntimeout = "1s"', "defaults.timeout"),
    ('[defaults]\nkafka = { bootstrap = "h:1" }', "defaults.kafka_bootstrap"),
    ('[defaults]\nkafka = { properties = "p" }', "defaults.kafka_properties"),
    ('[contexts.p]\nurls = ["http://h:1"]', "contexts.p"),
    ('current = "p"\n[contexts.p]\npassword_command = "touch ran"', "contexts.p"),
)
def test_an_untrusted_file_may_not_decide(run: Run, table: str, named: str) -> None:
    """An untrusted file may set only keys of presentation; others are refused by name."""
    PROJECT.write_text(table + "\n")
    assert f"may not set {named}" in run("connectors", "list", code=2).err
    assert not Path("ran").exists()


def test_an_untrusted_file_may_choose_a_context_and_a_format(run: Run, url: str) -> None:
    """An untrusted file may choose one of the user's contexts and an output format."""
    run("context", "set", "prod", "--url", url, address=None)
    PROJECT.write_text('current = "prod"\n[defaults]\noutput = "name"\nno_headers = true\n')
    outcome = run("connectors", "list", address=None)
    assert (outcome.code, outcome.out.split()) == (0, ["broken", "orders"])


def test_a_trusted_file_may_not_change(run: Run, url: str, environ: dict[str, str]) -> None:
    """A trusted file that was changed, or whose trust was withdrawn, is refused."""
    PROJECT.write_text(f'current = "p"\n[contexts.p]\nurls = ["{url}"]\npassword_env = "NAMED"\n')
    environ["NAMED"] = "s3cret"
    trusted = run("config", "trust", address=None, code=0)
    assert f"contexts.p.url = {url}" in trusted.err
    assert "contexts.p.password_env = NAMED" in trusted.err
    (record,) = (Path(environ["XDG_STATE_HOME"]) / "pyconnect" / "trusted").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert run("connectors", "list", address=None).code == 0

    PROJECT.write_text(PROJECT.read_text().replace("NAMED", "OTHER"))
    assert "has changed since it was trusted" in run("connectors", "list", address=None, code=2).err

    assert run("config", "trust", str(PROJECT.resolve().parent), address=None).code == 0
    environ["OTHER"] = "s3cret"
    assert run("connectors", "list", address=None).code == 0
    assert run("config", "untrust", address=None).code == 0
    assert run("connectors", "list", address=None).code == 2


def test_trust_belongs_to_one_place(run: Run, url: str) -> None:
    """Trust is given to a file at its path: the same content elsewhere is not trusted."""
    text = f'[contexts.p]\nurls = ["{url}"]\n'
    PROJECT.write_text(text)
    other = Path("other")
    other.mkdir()
    (other / PROJECT).write_text(text)
    assert run("config", "trust", "other", address=None).code == 0
    assert run("connectors", "list", address=None).code == 2
    PROJECT.unlink()
    Path("other.toml").write_text("[defaults]\n")
    assert run("config", "trust", "other.toml", address=None).code == 2
    assert run("config", "trust", address=None).code == 3
    PROJECT.write_text(f'current = "p"\n[contexts.p]\nurls = ["{url}"]\n')
    arguments = ("connectors", "list", "--config", str(PROJECT))
    assert run(*arguments, address=None).code == 0


def test_trusting_shows_no_secret_and_no_control_sequence(run: Run) -> None:
    """`config trust` shows the keys of a file without secrets and control characters."""
    PROJECT.write_text('[contexts.p]\nurls = ["http://u:hunter2@h:1"]\npassword = "s3cret"\n')
    PROJECT.chmod(0o600)
    outcome = run("config", "trust", address=None, code=0)
    assert "contexts.p.password = (a value)" in outcome.err
    assert "hunter2" not in outcome.err
    assert "s3cret" not in outcome.err
    PROJECT.write_text('[contexts."\\u001b[2J"]\nurls = ["http://h:1"]\n')
    refused = run("config", "trust", address=None, code=2)
    assert "\x1b" not in refused.err
    PROJECT.write_text('current = "\\u001b[2J"\n')
    refused = run("connectors", "list", address=None, code=2)
    assert "\x1b" not in refused.err


def test_the_tab_key_asks_no_address_of_an_untrusted_file(
    run: Run, tab: Tab, url: str, strange_url: str, stranger: FakeConnect
) -> None:
    """Completion does not send a request to an address from an untrusted file."""
    make_context(run, url)
    PROJECT.write_text(f'current = "p"\n[contexts.p]\nurls = ["{strange_url}"]\n')
    assert tab("connectors") == []
    assert tab("contexts") == []
    assert stranger.requests == []


@cases("option", "--password-command", "--token-command")
def test_the_tab_key_runs_no_command_for_a_secret(
    run: Run, tab: Tab, connect: FakeConnect, url: str, option: str
) -> None:
    """Completion sends no request if the credentials come from a command."""
    make_context(run, url, option, "touch ran")
    assert tab("connectors") == []
    assert connect.requests == []
    assert not Path("ran").exists()


@cases("option", "--password", "--token")
def test_the_tab_key_offers_what_the_last_command_saw(
    run: Run, tab: Tab, connect: FakeConnect, url: str, option: str
) -> None:
    """Completion offers the names that the last command saw if a cluster needs credentials."""
    make_context(run, url, option, "hunter2")
    assert tab("connectors") == []
    assert run("connectors", "list", address=None).code == 0
    connect.requests.clear()
    assert tab("connectors") == ["broken", "orders"]
    assert tab("tasks") == ["broken/0", "broken/1", "orders/0"]
    assert connect.requests == []
