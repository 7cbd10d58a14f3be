"""Completion by the Tab key: the offered words and names, and the scripts of the shells."""

import contextlib
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyconnect_cli.about import completion_script
from pyconnect_cli.completion import TypedWords, offers
from tests.cli.conftest import Tab
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.connect_server import FakeConnect

ROOT = Path(__file__).resolve().parents[2]


@cases("shell, file", ("bash", "pyconnect.bash"), ("zsh", "_pyconnect"), ("fish", "pyconnect.fish"))
def test_the_command_prints_the_script_of_completions(shell: str, file: str) -> None:
    """The printed script equals the file in completions/, and the shell can parse it."""
    path = ROOT / "completions" / file
    assert path.read_text("utf-8") == completion_script(shell)
    assert "__complete" in completion_script(shell)
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(path)], check=True, capture_output=True)


def complete_words(*words: str) -> list[str]:
    """Return the offers of `__complete` for these words, without their help."""
    return [offer.word for offer in offers(words) if offer.word.startswith(words[-1])]


@cases(
    "words, expected",
    (["conn"], ["connectors"]),
    (["connectors", "re"], ["resume", "restart"]),
    (["connector", "re"], ["resume", "restart"]),
    (["--url", "http://x", "connectors", "pau"], ["pause"]),
    (["connectors", "list", "--output=js"], ["--output=json"]),
    (["connectors", "stop", "--wait", "ST"], ["STOPPED"]),
    (["connectors", "list", "--no-co"], ["--no-color"]),
    (["connectors", "list", "--config", ""], [":files"]),
    (["connectors", "nosuch", "--wai"], []),
    (["offsets", "orphans", "pu"], ["purge"]),
    (["sandbox", "up", "--po"], ["--port"]),
    (["help", "ex"], ["exit-codes"]),
    (["health", ""], []),
)
def test_the_offers_are_words_options_and_values(words: list[str], expected: list[str]) -> None:
    """Nouns, verbs, options and their values are offered without a cluster."""
    assert complete_words(*words) == expected


def complete(line: str, *, names: Sequence[str] = ()) -> list[str]:
    """Return the completions of bash at the end of `line`, with `names` of connectors."""
    script = f"""
source {ROOT / "completions" / "pyconnect.bash"}
pyconnect() {{
    if [[ $* == *" pause "* ]]; then printf '%s\\n' {shlex.join(names)}
    else {sys.executable} -m pyconnect_cli "$@"; fi
}}
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
@cases(
    "line, expected",
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
)
def test_bash_completes(line: str, expected: set[str]) -> None:
    """The script for bash offers nouns, verbs, values and names from the cluster."""
    assert set(complete(line, names=["orders", "billing"])) == expected


@cases(
    "noun, verb, kind",
    ("tasks", "kill", "tasks"), ("tasks", "stacks", "tasks"), ("tasks", "restart", "tasks"),
    ("tasks", "list", "connectors"), ("connectors", "pause", "connectors"),
    ("offsets", "copy", "connectors"), ("offsets", "undo", ""), ("context", "use", "contexts"),
    ("context", "import", ""), ("loggers", "set", "loggers"), ("plugins", "describe", "plugins"),
    ("reconcile", "source-topic", "connectors"),
)  # fmt: skip
def test_completion_offers_names_of_the_arguments_kind(noun: str, verb: str, kind: str) -> None:
    """A verb offers names of its argument's kind, because it would refuse others."""
    line = TypedWords()
    line.read(noun)
    line.read(verb)
    assert line.names == kind


@pytest.mark.wire
def test_names_of_the_cluster_are_only_data_for_bash(tmp_path: Path) -> None:
    """bash never expands a name from the cluster, and gets it quoted."""
    trap = tmp_path / "ran"
    names = [f"$(touch {trap})", "*", "two words", "plain"]
    offered = complete("pyconnect connectors pause ", names=names)
    assert [shlex.split(word) for word in offered] == [[name] for name in names]
    assert not trap.exists()
    assert complete("pyconnect connectors pause a:", names=["a:b", "c"]) == ["b"]


@pytest.mark.wire
def test_a_real_bash_completes_at_the_tab_key(tmp_path: Path) -> None:
    """An interactive bash completes a verb at the Tab key."""
    screen = TypedShell(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    try:
        screen.type(f"source {ROOT / 'completions' / 'pyconnect.bash'}\n")
        screen.type(f'pyconnect() {{ {sys.executable} -m pyconnect_cli "$@"; }}\n')
        screen.type("pyconnect --url http://h:1 connectors pau\t")
        eventually(lambda: "connectors pause " in screen.text(), 10, screen.text)
    finally:
        screen.close()


class TypedShell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        child, self._terminal = pty.fork()
        if child == 0:
            os.chdir(home)
            environ = {"HOME": str(home), "PS1": "$ ", "TERM": "dumb", "PATH": "/usr/bin:/bin"}
            os.execvpe(command[0], list(command), environ)
        self._child = child
        self._text = ""
        os.set_blocking(self._terminal, False)
        self.type("echo loa''ded\n")
        eventually(lambda: "loaded" in self.text(), 20, self.text)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def text(self) -> str:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._terminal, 4096):
                self._text += chunk.decode()
        return self._text

    def plain_text(self) -> str:
        """Return the printed text without the sequences that style it."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x08\r]", "", self.text())

    def close(self) -> None:
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        os.close(self._terminal)


@pytest.mark.wire
@cases(
    "line, expected",
    ("pyconnect conn", ["connectors"]),
    ("pyconnect --url http://h:1 connectors pau", ["pause"]),
    ("pyconnect connectors list --output js", ["json"]),
    ("pyconnect connectors list --output=js", ["--output=json"]),
    ("pyconnect connectors stop --wai", ["--wait"]),
)
def test_fish_completes(line: str, expected: list[str]) -> None:
    """fish offers nouns, verbs, options and values."""
    script = f"""
source {ROOT / "completions" / "pyconnect.fish"}
function pyconnect; {sys.executable} -m pyconnect_cli $argv; end
complete -C {shlex.quote(line)}"""
    done = subprocess.run(["fish", "-c", script], check=True, capture_output=True, text=True)
    assert [offered.split("\t")[0] for offered in done.stdout.splitlines()] == expected


@pytest.mark.wire
@cases(
    "keys, expected",
    ("pyconnect --url http://h:1 connectors pau\t", "connectors pause "),
    ("pyconnect connectors stop --wait ST\t", "--wait STOPPED "),
    ("pyconnect connectors pause two\t", "pause two\\ words"),
    ("pyconnect acls check --connector two\t", "--connector two\\ words"),
    ("pyconnect help ex\t", "help exit-codes "),
)
def test_a_real_zsh_completes_at_the_tab_key(tmp_path: Path, keys: str, expected: str) -> None:
    """An interactive zsh completes verbs, values, names and topics of help at the Tab key."""
    (tmp_path / "_pyconnect").write_text(completion_script("zsh"), "utf-8")
    (tmp_path / ".zshrc").write_text(
        f"PROMPT='$ '; fpath=({tmp_path} $fpath); autoload -U compinit\n"
        f"compinit -u -d {tmp_path / 'dump'}\n"
        'pyconnect() { if [[ "$*" == *(pause|--connector)" "* ]]; then print "two words\t"\n'
        f'else {sys.executable} -m pyconnect_cli "$@"; fi }}\n'
    )
    shell = TypedShell(["zsh", "-i"], tmp_path)
    try:
        shell.type(keys)
        eventually(lambda: expected in shell.plain_text(), 20, shell.plain_text)
    finally:
        shell.close()


@pytest.mark.wire
def test_a_tab_is_cached(tab: Tab, url: str, connect: FakeConnect) -> None:
    """Names are cached for each kind, and a cluster that does not answer has none."""
    # A busy machine may answer too late; then there are none, and the next Tab asks again.
    eventually(lambda: tab("connectors", "--url", url) == ["broken", "orders"], 120)
    connect.requests.clear()
    assert tab("connectors", "--url", url) == ["broken", "orders"]
    assert tab("connectors", "--url", "http://127.0.0.1:9") == []
    assert connect.requests == []
    tasks = ["broken/0", "broken/1", "orders/0"]
    eventually(lambda: tab("tasks", f"--url={url}") == tasks, 120)
    eventually(lambda: tab("plugins", "--url", url) == ["org.example.FileSource"], 120)
    eventually(lambda: tab("loggers", "--url", url) == ["root"], 120)


@pytest.mark.wire
def test_contexts_are_offered(tab: Tab, environ: dict[str, str]) -> None:
    """--context offers contexts, although the shell passes the beginning of the name, too."""
    file = Path(environ["XDG_CONFIG_HOME"]) / "pyconnect" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('current = "gone"\n[contexts.prod]\nurls = ["http://h:1"]\n')
    assert tab("contexts", "--context", "pr") == ["prod"]


@pytest.mark.wire
def test_older_names_are_better_than_none(
    tab: Tab, url: str, connect: FakeConnect, tmp_path: Path
) -> None:
    """If the cluster does not answer in time, cached names of any age are offered."""
    eventually(lambda: tab("connectors", "--url", url) == ["broken", "orders"], 120)
    (kept,) = (tmp_path / "cache").rglob("*.json")
    os.utime(kept, (0, 0))
    with connect.lock:
        assert tab("connectors", "--url", url) == ["broken", "orders"]
        assert tab("loggers", "--url", url) == []
