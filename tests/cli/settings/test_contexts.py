"""Contexts: precedence, secrets by reference, unsafe files refused."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from pyconnect_cli.errors import UsageError
from pyconnect_cli.session import Session
from tests.cli.conftest import Run
from tests.support.cases import cases

pytestmark = pytest.mark.wire


def user_file(environ: dict[str, str]) -> Path:
    return Path(environ["XDG_CONFIG_HOME"]) / "pyconnect" / "config.toml"


def test_a_contexts_whole_life(run: Run, url: str, environ: dict[str, str]) -> None:
    """The file is private; `--use` makes a context current, and a renamed one stays current."""
    run("context", "set", "prod", "--url", url, "--username", "ops", "--use", address=None, code=0)
    path = user_file(environ)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run("context", "current", address=None).out == "prod\n"
    assert run("connectors", "list", "-o", "name", address=None).out.split() == ["broken", "orders"]
    assert run("context", "delete", "prod", "--yes", address=None).code == 0
    assert run("context", "current", address=None).code == 3
    run("context", "set", "prod", "--url", url, "--username", "ops", "--use", address=None)
    run("context", "set", "other", "--url", url, address=None)
    assert run("context", "rename", "prod", "other", address=None).code == 2
    renamed = run("context", "rename", "prod", "live", address=None)
    assert (renamed.code, renamed.err) == (0, "context prod: renamed to live\n")
    assert run("context", "current", address=None).out == "live\n"
    assert run("context", "list", "-o", "name", address=None).out.split() == ["live", "other"]
    assert "ops" in run("context", "show", "live", address=None).out
    assert "prod" not in user_file(environ).read_text()


@cases("wrong", ["--timeout", "soon"], ["--url", "http://host:port"], ["--url", ""])
def test_bad_values_are_not_stored(run: Run, environ: dict[str, str], wrong: list[str]) -> None:
    """The command exits with 2 and writes no file."""
    arguments = ["--url", "http://host:8083", *wrong] if "--timeout" in wrong else wrong
    assert run("context", "set", "prod", *arguments, address=None).code == 2
    assert not user_file(environ).exists()


def test_a_flag_overrides_the_context_for_one_command(run: Run, url: str) -> None:
    """`--url` wins over the context; for an unknown context a similar name is proposed."""
    run("context", "set", "dead", "--url", "http://127.0.0.1:9", "--use", address=None)
    assert run("connectors", "list", address=None).code == 7
    assert run("connectors", "list", "--url", url, address=None).code == 0
    run("context", "set", "production", "--url", url, address=None)
    outcome = run("--context", "producton", "connectors", "list", address=None, code=3)
    assert "did you mean `production`?" in outcome.err


def test_secrets_in_public_files_are_refused(run: Run, url: str, environ: dict[str, str]) -> None:
    """The message names the command that corrects the file's mode."""
    path = user_file(environ)
    path.parent.mkdir(parents=True)
    path.write_text(f'current = "p"\n[contexts.p]\nurls = ["{url}"]\npassword = "s3cret"\n')
    path.chmod(0o644)
    outcome = run("connectors", "list", address=None, code=2)
    assert "chmod 600" in outcome.err
    assert "s3cret" not in outcome.err


def test_secrets_are_described_and_never_shown(run: Run, environ: dict[str, str]) -> None:
    """`context show` and `config view` show the origin of a secret, never its value."""
    run(
        "context", "set", "p", "--url", "http://u:pw@h:1", "--password", "s3cret", "--use",
        address=None,
    )  # fmt: skip
    shown = run("context", "show", "p", "-o", "json", address=None).out
    viewed = run("config", "view", "-o", "json", address=None).out
    assert "s3cret" not in shown + viewed
    assert "u:pw" not in shown + viewed
    assert json.loads(viewed)["password"] == {"value": "(a value)", "origin": "context p"}


def test_the_context_in_force_is_shown_without_a_name(run: Run) -> None:
    """`--context` wins over the current context; without any the exit code is 3."""
    assert run("context", "show", address=None).code == 3
    for name in ("other", "p"):
        run("context", "set", name, "--url", f"http://{name}:1", "--use", address=None)
    assert json.loads(run("context", "show", "-o", "json", address=None).out)["name"] == "p"
    chosen = run("--context", "other", "context", "show", "-o", "json", address=None)
    assert json.loads(chosen.out)["name"] == "other"


def test_importing_does_not_overwrite_unasked(run: Run, url: str, tmp_path: Path) -> None:
    """A context of the same name is replaced only with --force."""
    run("context", "set", "p", "--url", url, address=None)
    other = tmp_path / "other.toml"
    other.write_text('[contexts.p]\nurls = ["http://other:1"]\n')
    assert run("context", "import", str(other), address=None).code == 2
    assert run("context", "import", str(other), "--force", address=None).code == 0
    assert "http://other:1" in run("context", "show", "p", address=None).out


def test_a_context_holds_what_java_workers_do_not_report(
    run: Run, url: str, environ: dict[str, str], tmp_path: Path
) -> None:
    """Group, offsets topic and inventory are stored, as a path from the working directory."""
    known = ("--group", "connect", "--offsets-topic", "offsets", "--inventory", "all.toml")
    assert run("context", "set", "java", "--url", url, *known, "--use", address=None).code == 0
    shown = json.loads(run("context", "show", "java", "-o", "json", address=None).out)
    assert (shown["group"], shown["offsets_topic"]) == ("connect", "offsets")
    assert shown["inventory"] == str(tmp_path / "work" / "all.toml")
    # `upgrade` takes the stored inventory, which does not exist yet.
    outcome = run("upgrade", "--phase", "preparing", address=None)
    assert (outcome.code, f"{shown['inventory']}: cannot be read" in outcome.err) == (2, True)
    assert run("context", "set", "java", "--inventory", "", address=None).code == 0
    assert "--kafka-bootstrap" in run("upgrade", "--phase", "preparing", address=None).err


def test_the_group_of_a_context_answers_for_java_workers(url: str, environ: dict[str, str]) -> None:
    """An option wins over the context's group; without either the hint names both."""
    from pyconnect_cli.acting.workers import connect_cluster
    from pyconnect_cli.offsets.orphans import worker_topics_of
    from pyconnect_cli.transactions.find import asked_cluster

    session = Session({**environ, "PYCONNECT_URL": url})
    with pytest.raises(UsageError) as caught:
        asked_cluster(session, None)
    assert "context set NAME --group GROUP" in str(caught.value.hint)
    session.settings = replace(session.settings, group="connect")
    assert asked_cluster(session, None).group_id == "connect"
    assert asked_cluster(session, "other").group_id == "other"
    assert connect_cluster(session, ()).group_id == "connect"
    session.settings = replace(session.settings, offsets_topic="offsets")
    assert worker_topics_of(session, None) == {"offsets"}
    session.close()


def test_any_worker_of_an_inventory_is_a_way_in(url: str, environ: dict[str, str]) -> None:
    """An address that was given is asked first; the default address is not asked."""
    dead = "http://127.0.0.1:9"
    unnamed = Session(environ)
    unnamed.also_reach([dead, url])
    assert unnamed.endpoint.urls == (dead, url)
    assert unnamed.client.connector_names() == ["broken", "orders"]
    named = Session({**environ, "PYCONNECT_URL": dead})
    named.also_reach([url, dead])
    assert named.endpoint.urls == (dead, url)
    unnamed.close()
