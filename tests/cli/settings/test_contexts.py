"""Contexts: precedence, secrets by reference, unsafe files refused."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.wire


def user_file(environ: dict[str, str]) -> Path:
    return Path(environ["XDG_CONFIG_HOME"]) / "pyconnect" / "config.toml"


def test_a_context_is_made_used_shown_and_deleted(
    run: Run, url: str, environ: dict[str, str]
) -> None:
    """The file is private, and the chosen context is in force."""
    made = run("context", "set", "prod", "--url", url, "--username", "ops", "--use", address=None)
    assert made.code == 0, made.err
    path = user_file(environ)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run("context", "current", address=None).out == "prod\n"
    assert run("connectors", "list", "-o", "name", address=None).out.split() == [
        "broken",
        "orders",
    ]
    assert run("context", "delete", "prod", "--yes", address=None).code == 0
    assert run("context", "current", address=None).code == 3


@pytest.mark.parametrize(
    "wrong", [["--timeout", "soon"], ["--url", "http://host:port"], ["--url", ""]]
)
def test_a_context_is_not_stored_with_what_no_command_could_use(
    run: Run, environ: dict[str, str], wrong: list[str]
) -> None:
    """Exit 2 and no file."""
    arguments = ["--url", "http://host:8083", *wrong] if "--timeout" in wrong else wrong
    assert run("context", "set", "prod", *arguments, address=None).code == 2
    assert not user_file(environ).exists()


def test_a_flag_overrides_the_context_for_one_command(run: Run, url: str) -> None:
    """The context's own address is dead, the flag's works."""
    run("context", "set", "dead", "--url", "http://127.0.0.1:9", "--use", address=None)
    assert run("connectors", "list", address=None).code == 7
    assert run("connectors", "list", "--url", url, address=None).code == 0


def test_a_secret_in_a_file_that_others_read_is_refused(
    run: Run, url: str, environ: dict[str, str]
) -> None:
    """The message says which file and how to mend it."""
    path = user_file(environ)
    path.parent.mkdir(parents=True)
    path.write_text(f'current = "p"\n[contexts.p]\nurls = ["{url}"]\npassword = "s3cret"\n')
    path.chmod(0o644)
    outcome = run("connectors", "list", address=None)
    assert outcome.code == 2
    assert "chmod 600" in outcome.err
    assert "s3cret" not in outcome.err


def test_secrets_are_described_and_never_shown(run: Run, environ: dict[str, str]) -> None:
    """`context show` and `config view` tell where a secret comes from."""
    run(
        "context", "set", "p", "--url", "http://u:pw@h:1", "--password", "s3cret", "--use",
        address=None,
    )  # fmt: skip
    shown = run("context", "show", "p", "-o", "json", address=None).out
    viewed = run("config", "view", "-o", "json", address=None).out
    assert "s3cret" not in shown + viewed
    assert "u:pw" not in shown + viewed
    assert json.loads(viewed)["password"] == {"value": "(a value)", "origin": "context p"}


def test_an_unknown_context_names_the_near_ones(run: Run, url: str) -> None:
    """Exit 3 with a suggestion."""
    run("context", "set", "production", "--url", url, address=None)
    outcome = run("--context", "producton", "connectors", "list", address=None)
    assert outcome.code == 3
    assert "did you mean `production`?" in outcome.err


def test_importing_does_not_overwrite_unasked(run: Run, url: str, tmp_path: Path) -> None:
    """A context of the same name needs --force."""
    run("context", "set", "p", "--url", url, address=None)
    other = tmp_path / "other.toml"
    other.write_text('[contexts.p]\nurls = ["http://other:1"]\n')
    assert run("context", "import", str(other), address=None).code == 2
    assert run("context", "import", str(other), "--force", address=None).code == 0
    assert "http://other:1" in run("context", "show", "p", address=None).out
