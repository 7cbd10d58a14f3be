"""Errors that name the cause in the terms of this program."""

import io
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
import pytest

from pyconnect_api.errors import ConfigException
from pyconnect_cli.errors import UsageError
from pyconnect_cli.reconcile.tables import database_side
from pyconnect_cli.rest.endpoint import Allowance
from pyconnect_cli.rest.exchange import describe_transport_error
from pyconnect_cli.session import Session
from pyconnect_connectors.sql.database import open_engine
from pyconnect_connectors.sql.settings import Connection
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect


@cases(
    "text, reason",
    (
        "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)",  # noqa: E501
        "certificate verify failed: self-signed certificate",
    ),
    (
        "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: Hostname mismatch, certificate is not valid for 'x: y'. (_ssl.c:1006)",  # noqa: E501
        "certificate verify failed: Hostname mismatch, certificate is not valid for 'x: y'.",
    ),
)
def test_the_reason_of_tls_is_whole(text: str, reason: str) -> None:
    """The reason of a TLS error has no bracket or line number of Python's ssl module."""
    shown = describe_transport_error(httpx.ConnectError(text), Allowance(1, "--timeout"))
    assert shown == f"its certificate is not trusted ({reason}); see --ca-file"


def test_refused_credentials_are_not_asked_for_again(run: Run, connect: FakeConnect) -> None:
    """Refused credentials lead to another hint than missing credentials."""
    connect.authorization = "Basic x"
    given = run("connectors", "list", "--username", "u", "--password", "p")
    assert "hint: the given credentials are not accepted" in given.err
    assert "give credentials" not in given.err
    assert "hint: give credentials" in run("connectors", "list").err
    assert run("connectors", "list", "--token", "t").code == 4


@cases("url", "sqlite://user:secret@/data/a.db", "sqlite://host/a.db")
def test_a_sqlite_url_with_a_password_is_called_so(url: str) -> None:
    """A SQLite URL with a user or host is refused as such, without its password."""
    settings = Connection(
        url=url, user=None, password=None, zone=ZoneInfo("UTC"), max_retries=0, backoff_ms=1
    )
    with pytest.raises(ConfigException, match="SQLite file, which has no host, user") as refused:
        open_engine(settings, writes=False)
    assert "secret" not in str(refused.value)
    with pytest.raises(UsageError, match="SQLite file with a host, user or password") as audited:
        database_side({"connection.url": url})
    assert "secret" not in audited.value.message


def test_an_answer_that_is_neither_yes_nor_no_is_asked_for_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, connect: FakeConnect
) -> None:
    """An answer other than y or n leads to an error in the usual form and a new question."""
    monkeypatch.setattr(Session, "interactive", True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("perhaps\ny\n"))
    ended = run("connectors", "delete", "orders", code=0)
    assert "error: answer y or n" in ended.err
    assert "Error:" not in ended.out + ended.err
    assert "orders" not in connect.connectors


@cases(
    "source, error, place",
    ("class Broken(\n", "SyntaxError", "broken.py"),
    ("import nothing_of_this_name\n", "ModuleNotFoundError", "nothing_of_this_name"),
)
def test_a_plugin_that_cannot_be_imported_shows_its_own_error_alone(
    run: Run, tmp_path: Path, source: str, error: str, place: str
) -> None:
    """The error of a plugin that cannot be imported names no file of ours and no other extra."""
    directory = tmp_path / "plugins" / "one"
    directory.mkdir(parents=True)
    (directory / "broken.py").write_text(source)
    path = ("--plugin-path", str(directory.parent))
    ended = run("plugins", "test", "Broken", *path, address=None, code=1)
    assert error in ended.err
    assert place in ended.err
    for ours in ("install the extra", "self_check.py", "loading.py", "scan.py", "catalog.py"):
        assert ours not in ended.err


def test_an_error_inside_a_plugin_names_the_authors_line(run: Run, tmp_path: Path) -> None:
    """An error inside a plugin names the plugin's line, not the line of the agent."""
    directory = tmp_path / "plugins" / "one"
    directory.mkdir(parents=True)
    (directory / "late.py").write_text(
        "from pyconnect_api import *\n"
        "class Late(Transformation):\n"
        "    def __init__(self):\n"
        "        raise KeyError('x')\n"
        "    def config(self):\n"
        "        return ConfigDef()\n"
        "    def apply(self, record):\n"
        "        return record\n"
    )
    path = ("--plugin-path", str(directory.parent))
    assert "(late.py:4)" in run("plugins", "test", "Late", *path, address=None, code=1).err
