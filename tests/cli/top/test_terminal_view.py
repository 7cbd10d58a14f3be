"""`pyconnect top` in a real terminal (tmux): what it shows, and that it leaves no trace."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve

pytestmark = pytest.mark.wire
CLI = Path(__file__).resolve().parents[3] / "cli"


class Terminal:
    """A terminal of tmux, on a server of its own."""

    def __init__(self, directory: Path) -> None:
        tmux = shutil.which("tmux")
        if tmux is None:
            pytest.fail("tmux is not installed: apt-get install tmux, or brew install tmux")
        socket = directory / f"tmux-{uuid.uuid4().hex[:8]}"
        self._command = [tmux, "-S", str(socket), "-f", "/dev/null"]

    def start(self, command: str, width: int, height: int = 24) -> None:
        """Run a command in a shell of the terminal."""
        size = ("-x", str(width), "-y", str(height))
        self._tmux("new-session", "-d", *size, "env PS1='$ ' sh")
        self.keys(command, "Enter")

    def keys(self, *keys: str) -> None:
        """Press keys, by their tmux names, or type a text."""
        self._tmux("send-keys", *keys)

    def resize(self, width: int) -> None:
        self._tmux("resize-window", "-x", str(width))

    @property
    def screen(self) -> list[str]:
        return self._tmux("capture-pane", "-p").splitlines()

    def shows(self, text: str) -> None:
        eventually(
            lambda: any(text in line for line in self.screen),
            describe=lambda: f"{text!r}; the screen:\n" + "\n".join(self.screen),
        )

    def close(self) -> None:
        subprocess.run([*self._command, "kill-server"], check=False, capture_output=True)

    def _tmux(self, *arguments: str) -> str:
        return subprocess.run(
            [*self._command, *arguments], check=True, capture_output=True, text=True
        ).stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def test_the_editor_gets_the_terminal_and_gives_it_back(
    terminal: Terminal, url: str, environ: dict[str, str], connect: FakeConnect
) -> None:
    """`e` edits the connector under the cursor; the view continues with the new state."""
    environ["EDITOR"] = "sed -i s/FileSink/OtherSink/"
    terminal.start(top_command(url, environ), 100)
    terminal.shows("1/2, 1 FAILED")
    terminal.keys("e")
    terminal.shows("pyconnect connectors edit broken: done")
    config = connect.connectors["broken"].config
    assert config["connector.class"] == "org.example.OtherSink"
    terminal.shows("connectors (2)")
    terminal.keys(":", "q", "Enter")
    terminal.shows("exit=0")


def top_command(url: str | None, environ: dict[str, str]) -> str:
    variables = {**environ, "PYTHONPATH": str(CLI), **({"PYCONNECT_URL": url} if url else {})}
    given = (f"{name}={value}" for name, value in variables.items())
    words = [
        "env",
        *["-u", "COLUMNS", "-u", "LINES"],
        *given,
        sys.executable,
        "-m",
        "pyconnect_cli",
    ]
    return shlex.join([*words, "top"]) + "; echo exit=$?"


@cases("width", 80, 120)
def test_a_cluster_is_watched_and_operated(
    terminal: Terminal, url: str, environ: dict[str, str], connect: FakeConnect, width: int
) -> None:
    """States, causes, tasks and plans are shown; y makes the change, and q returns to the shell."""
    terminal.start(top_command(url, environ), width)
    terminal.shows("broken")
    terminal.shows("1/2, 1 FAILED")
    terminal.shows("IllegalState")
    terminal.keys("/", "orders", "Enter")
    terminal.shows("connectors (1 of 2) /orders")
    terminal.keys("p")
    terminal.shows("would pause orders")
    assert connect.connectors["orders"].state == "RUNNING"
    terminal.keys("y")
    eventually(lambda: connect.connectors["orders"].state == "PAUSED")
    terminal.keys("Escape")
    terminal.shows("connectors (2)")
    terminal.keys("Enter")
    terminal.shows("tasks of")
    terminal.keys("d")
    terminal.shows("pyconnect tasks describe")
    # A key right after escape would become alt with that key.
    terminal.keys("Escape")
    terminal.shows("tasks of")
    terminal.keys(":", "q", "Enter")
    terminal.shows("exit=0")
    assert not any("tasks of" in line for line in terminal.screen)


def test_the_cluster_of_another_context_is_watched(
    terminal: Terminal, run: Run, url: str, environ: dict[str, str]
) -> None:
    """`:ctx` and enter, or `:ctx NAME`, change the cluster."""
    elsewhere = FakeConnect(connectors={"far": FakeConnector(config={"name": "far"})})
    with serve(elsewhere) as other_url:
        for name, address in (("here", url), ("there", other_url)):
            assert run("context", "set", name, "--url", address, address=None).code == 0
        assert run("context", "use", "here", address=None).code == 0
        terminal.start(top_command(None, environ), 100)
        terminal.shows("broken")
        terminal.keys(":", "ctx", "Enter")
        terminal.shows("contexts (2)")
        terminal.keys("G", "Enter")
        terminal.shows("far")
        assert not any("broken" in line for line in terminal.screen)
        terminal.keys(":", "ctx here", "Enter")
        terminal.shows("broken")
        terminal.keys(":", "q", "Enter")
        terminal.shows("exit=0")


def test_another_width_is_filled(terminal: Terminal, url: str, environ: dict[str, str]) -> None:
    """A wider terminal shows further columns; ctrl-c leaves the view."""
    terminal.start(top_command(url, environ), 60)
    terminal.shows("broken")
    assert not any("WORKER" in line for line in terminal.screen)
    terminal.resize(140)
    terminal.shows("WORKER")
    terminal.keys("C-c")
    terminal.shows("exit=0")


def test_a_signal_gives_the_terminal_back(
    terminal: Terminal, url: str, environ: dict[str, str], tmp_path: Path
) -> None:
    """The exit code is 130, as for every command."""
    file = tmp_path / "pid"
    command = top_command(url, environ)
    noted = f"echo $$ > {shlex.quote(str(file))}; exec {command.rpartition(';')[0]}"
    terminal.start(f"sh -c {shlex.quote(noted)}; echo exit=$?", 80)
    terminal.shows("broken")
    os.kill(int(file.read_text("utf-8")), signal.SIGTERM)
    terminal.shows("exit=130")
    assert any("error: interrupted" in line for line in terminal.screen)
    assert not any("connectors (2)" in line for line in terminal.screen)


def test_the_view_needs_a_terminal_and_its_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without terminal or extra the exit code is 9 before the cluster is asked, with a hint."""
    outcome = run("top", code=9)
    assert "needs a terminal" in outcome.err
    assert "pyconnect status" in outcome.err
    monkeypatch.setattr("pyconnect_cli.top.commands.find_spec", lambda _: None)
    outcome = run("top", code=9)
    assert "install the extra [top]: " in outcome.err
    assert "pyconnect status" in outcome.err


def test_no_other_command_imports_the_library(url: str, environ: dict[str, str]) -> None:
    """Importing textual takes half a second; even `top --help` does not import it."""
    script = """
import sys
from pyconnect_cli.app import app_of, run
from pyconnect_cli.parsing.nouns import NOUNS
for noun in NOUNS:
    app_of(noun.module)
run(["top", "--help"])
run(["status"])
print([name for name in sys.modules if name.partition(".")[0] in {"textual", "rich"}])
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True, capture_output=True, text=True, cwd=CLI, env={**environ, "PYCONNECT_URL": url},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
