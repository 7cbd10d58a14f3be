"""What a shell sees: start-up time, help texts, completion files."""

from __future__ import annotations

import contextlib
import os
import pty
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from pyconnect_cli.commands.completion import completion_file
from pyconnect_cli.completion.tree import command_tree
from pyconnect_cli.nouns import NOUNS
from tests.cli.conftest import Run
from tests.support.eventually import eventually

ROOT = Path(__file__).resolve().parents[2]
HELP_BUDGET_S = 0.080


def test_the_static_help_is_the_modules_own() -> None:
    """`pyconnect --help` imports no command and still tells what each says of itself."""
    for noun in NOUNS:
        assert import_module(noun.module).app.info.help == noun.help


def test_every_verb_has_a_help_line() -> None:
    """No verb and no option is left unexplained."""
    for noun in command_tree():
        for verb in noun.verbs:
            assert verb.help, f"{noun.name} {verb.name}"
            for option in verb.options:
                assert option.help, f"{noun.name} {verb.name} {option.flags}"


@pytest.mark.wire
def test_help_answers_within_its_budget() -> None:
    """The best of several runs stays under 80 ms, whatever else the machine does."""
    command = [sys.executable, "-m", "pyconnect_cli", "--help"]
    times = []
    for _ in range(7):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT / "cli")
        times.append(time.perf_counter() - started)
    assert min(times) < HELP_BUDGET_S, f"median {statistics.median(times):.3f} s"


@pytest.mark.parametrize(
    ("shell", "file"),
    [("bash", "pyconnect.bash"), ("zsh", "_pyconnect"), ("fish", "pyconnect.fish")],
)
def test_completion_files_are_up_to_date(shell: str, file: str) -> None:
    """They are generated: scripts/generate-completions."""
    assert (ROOT / "completions" / file).read_text("utf-8") == completion_file(shell)


def complete(line: str, *, names: Sequence[str] = ()) -> list[str]:
    """What bash offers at the end of `line`; `pyconnect __complete` prints `names`."""
    script = f"""
source {ROOT / "completions" / "pyconnect.bash"}
pyconnect() {{ printf '%s\\n' {shlex.join(names)}; }}
COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
COMP_LINE={shlex.quote(line)}
COMP_POINT=${{#COMP_LINE}}
_pyconnect
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc", "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.wire
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pyconnect conn", {"connectors"}),
        ("pyconnect connectors re", {"resume", "restart"}),
        ("pyconnect connector re", {"resume", "restart"}),
        ("pyconnect --url http://x connectors pau", {"pause"}),
        ("pyconnect --url http://x:1 connectors pau", {"pause"}),
        ("pyconnect connectors list --output=js", {"json"}),
        ("pyconnect connectors list -o ", {"table", "wide", "json", "yaml", "ndjson", "name"}),
        ("pyconnect connectors stop --wait ST", {"STOPPED"}),
        ("pyconnect help ex", {"exit-codes"}),
        ("pyconnect connectors pause or", {"orders"}),
    ],
)
def test_bash_completes(line: str, expected: set[str]) -> None:
    """Nouns, verbs, values of options and names from the cluster."""
    assert set(complete(line, names=["orders", "billing"])) == expected


@pytest.mark.wire
def test_names_of_the_cluster_are_only_data_for_bash(tmp_path: Path) -> None:
    """A name that looks like a command or a pattern is offered quoted and never expanded."""
    trap = tmp_path / "ran"
    names = [f"$(touch {trap})", "*", "two words", "plain"]
    offered = complete("pyconnect connectors pause ", names=names)
    assert [shlex.split(word) for word in offered] == [[name] for name in names]
    assert not trap.exists()


@pytest.mark.wire
def test_bash_replaces_only_what_follows_a_colon() -> None:
    """A name with a colon is offered without the part that bash keeps on the line."""
    assert complete("pyconnect connectors pause a:", names=["a:b", "c"]) == ["b"]


@pytest.mark.wire
def test_a_real_bash_completes_at_the_tab_key(tmp_path: Path) -> None:
    """Typed into an interactive bash on a terminal, the file does what it says."""
    screen = TypedShell(ROOT / "completions" / "pyconnect.bash", tmp_path)
    try:
        screen.type("pyconnect --url http://h:1 connectors pau\t")
        eventually(lambda: "connectors pause " in screen.text(), 10, screen.text)
    finally:
        screen.close()


class TypedShell:
    """An interactive bash on a terminal of its own, with a completion file loaded."""

    def __init__(self, completion: Path, home: Path) -> None:
        child, self._terminal = pty.fork()
        if child == 0:
            os.chdir(home)
            environ = {"HOME": str(home), "PS1": "$ ", "TERM": "dumb", "PATH": "/usr/bin:/bin"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environ)
        self._child = child
        self._text = ""
        os.set_blocking(self._terminal, False)
        self.type(f"source {completion}; echo loa''ded\n")
        eventually(lambda: "loaded" in self.text(), 10, self.text)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def text(self) -> str:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._terminal, 4096):
                self._text += chunk.decode()
        return self._text

    def close(self) -> None:
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        os.close(self._terminal)


@pytest.mark.parametrize(("shell", "file"), [("zsh", "_pyconnect"), ("fish", "pyconnect.fish")])
def test_the_other_shells_accept_their_file(shell: str, file: str) -> None:
    """Where the shell is installed it parses the file; the text is compared everywhere."""
    path = ROOT / "completions" / file
    assert "__complete" in path.read_text("utf-8")
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(path)], check=True, capture_output=True)


@pytest.mark.wire
def test_dynamic_names_come_from_the_cluster_and_never_fail(
    url: str, environ: dict[str, str]
) -> None:
    """Names of a living cluster; nothing and exit 0 for a dead one."""
    for address, expected in ((url, ["broken", "orders"]), ("http://127.0.0.1:9", [])):
        done = subprocess.run(
            [sys.executable, "-m", "pyconnect_cli", "__complete", "connectors", "--url", address],
            env={**environ, "XDG_CACHE_HOME": environ["XDG_STATE_HOME"]},
            cwd=ROOT / "cli",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.split(), done.stderr) == (0, expected, "")


@pytest.mark.wire
def test_a_misspelt_verb_is_answered_with_the_near_one(run: Run) -> None:
    """Exit 2 and a suggestion."""
    outcome = run("connectors", "pasue", "x")
    assert outcome.code == 2
    assert "did you mean `pyconnect connectors pause`" in outcome.err
