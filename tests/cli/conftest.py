"""A command line in a home of its own, against a Connect server in memory."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve


class Outcome(NamedTuple):
    """Output and exit code of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]
Tab = Callable[..., list[str]]
CLI = Path(__file__).resolve().parents[2] / "cli"

NAME_WORDS = {
    "connectors": ("connectors", "get", ""),
    "tasks": ("tasks", "describe", ""),
    "plugins": ("plugins", "describe", ""),
    "loggers": ("loggers", "set", ""),
    "contexts": ("--context", ""),
}
"""Words after which the Tab key offers names of a kind."""


def every_command() -> Iterator[tuple[str, Any]]:
    """Yield each noun and verb with its path after `pyconnect`."""
    from pyconnect_cli.app import load_noun
    from pyconnect_cli.parsing.nouns import NOUNS

    def below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield path, command
        for name, verb in getattr(command, "commands", {}).items():
            yield from below(f"{path} {name}", verb)

    for noun in NOUNS:
        yield from below(noun.name, load_noun(noun))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return the variables of the tests, without the developer's own configuration."""
    return {
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_DIRS": str(tmp_path / "system"),
        "PATH": "/usr/bin:/bin",
    }


@pytest.fixture
def connect() -> FakeConnect:
    """Return a server with two connectors, one of which has a failed task."""
    orders = {
        "name": "orders",
        "connector.class": "org.example.FileSource",
        "team": "a",
        "db.password": "hunter2",
    }
    broken = {"name": "broken", "connector.class": "org.example.FileSink", "team": "b"}
    trace = "java.lang.IllegalStateException: disk full\n\tat org.example.Sink.put"
    return FakeConnect(
        connectors={
            "orders": FakeConnector(config=orders),
            "broken": FakeConnector(config=broken, tasks=["RUNNING", "FAILED"], trace=trace),
        }
    )


@pytest.fixture
def url(connect: FakeConnect) -> Iterator[str]:
    with serve(connect) as address:
        yield address


@pytest.fixture
def run(
    url: str,
    environ: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Run `pyconnect ARGUMENTS` against the server, in an empty directory; it ends with `code`."""
    from pyconnect_cli.app import run as run_command

    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    # Some runners set it, and tables would be cut to its width.
    monkeypatch.delenv("COLUMNS", raising=False)

    def invoke(*arguments: str, address: str | None = url, code: int | None = None) -> Outcome:
        variables = dict(environ)
        if address:
            variables["PYCONNECT_URL"] = address
        outcome = Outcome(int(run_command(list(arguments), variables)), *capsys.readouterr())
        assert code in (None, outcome.code), outcome
        return outcome

    return invoke


@pytest.fixture
def tab(environ: dict[str, str]) -> Tab:
    """Press the Tab key in the current directory, behind options, where names of a kind belong."""

    def names(kind: str, *options: str) -> list[str]:
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pyconnect_cli", "__complete", *options, *NAME_WORDS[kind]],
            env={**environ, "PYTHONPATH": str(CLI)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        # The promise is 300 ms; the rest is for a busy machine.
        assert time.monotonic() - started < 5
        return [offer.partition("\t")[0] for offer in done.stdout.splitlines()]

    return names
