"""The view of a shell: start-up time, help texts, completion files."""

import contextlib
import os
import pty
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase

import pytest

from pyconnect_cli.__main__ import main
from pyconnect_cli.about import completion_script
from pyconnect_cli.app import app_of, load_noun
from pyconnect_cli.completion import TypedWords, offers
from pyconnect_cli.parsing.help_page import EXAMPLES, first_screen
from pyconnect_cli.parsing.nouns import NOUNS, meant_line, near_verbs
from tests.cli.conftest import Run, Tab, every_command
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.connect_server import FakeConnect

ROOT = Path(__file__).resolve().parents[2]
HELP_BUDGET = 5
"""How often the processor time of a Python that does nothing."""


def test_the_static_help_is_the_modules_own() -> None:
    """`pyconnect --help` imports no command; it knows the topics of `pyconnect help`."""
    for noun in NOUNS:
        assert app_of(noun.module).info.help == noun.help
    from pyconnect_cli.about import SUMMARIES, TOPICS
    from pyconnect_cli.parsing.help_page import root_help

    assert set(SUMMARIES) == set(TOPICS)
    assert f"pyconnect help {'|'.join(TOPICS)}" in root_help()


def test_every_verb_and_argument_is_explained() -> None:
    """No option and no word of a usage line is left to be guessed."""
    for path, command in every_command():
        assert command.help, path
        for option in command.params:
            assert option.param_type_name != "option" or option.help, f"{path} {option.opts}"
    for noun in NOUNS:
        command = load_noun(noun)
        for verb in getattr(command, "commands", {}).values():
            for parameter in verb.params:
                if parameter.param_type_name == "argument":
                    assert parameter.help, f"{noun.name} {verb.name} {parameter.name}"


def test_every_example_is_a_command_line_that_exists() -> None:
    """Its verbs and options exist, and so does the help page that shows it."""
    for path, examples in EXAMPLES.items():
        for example in examples:
            line = TypedWords()
            for word in shlex.split(example):
                if line.open_option is None and re.match(r"--?[a-z]", word):
                    assert line.option(word.partition("=")[0]), f"{example}: {word}"
                line.read(word)
            assert line.path.split()[0] == path.split()[0], example
    assert set(EXAMPLES) <= {path for path, _ in every_command()}


def test_help_is_whole(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences, options and paths are in one piece; braces would be a choice."""
    text = " ".join(run("connectors", "--help").out.split())
    assert "`create -f` and `apply -f` accept its -o json" in text
    assert "..." not in text
    assert text.startswith("Usage: pyconnect connectors [OPTIONS] VERB [ARGUMENTS]…")
    assert "abort [OPTIONS] TOPIC PARTITION PRODUCER-ID" in run(
        "transactions", "abort", "--help"
    ).out.replace("\n", " ")
    monkeypatch.setenv("COLUMNS", "80")
    assert "--kafka-bootstrap" in run("offsets", "lag", "--help").out
    assert "~/.local/share/bash-completion/completions/" in run("completion", "--help").out


@pytest.mark.wire
def test_help_answers_within_its_budget() -> None:
    """The best of several runs beside the best of bare Python, whatever else the machine does."""
    commands = [[sys.executable, "-c", "pass"], [sys.executable, "-m", "pyconnect_cli", "--help"]]
    times: tuple[list[float], ...] = ([], [])
    for _ in range(7):
        for command, used in zip(commands, times, strict=True):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True, cwd=ROOT / "cli")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    bare, full = map(min, times)
    assert full < HELP_BUDGET * bare, times


def test_the_first_screen_fits_a_small_terminal() -> None:
    """80 columns, 24 lines with the prompt, and every noun."""
    lines = first_screen(80).splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert {noun.name for noun in NOUNS} <= set(re.findall("[a-z]+", "\n".join(lines)))


@cases(
    "typed, meant",
    ("get connectors", "connectors list"),
    ("get connectors -o json", "connectors list -o json"),
    ("get connector/orders", "connectors get orders"),
    ("get orders", "connectors get orders"),
    ("describe connector orders", "connectors describe orders"),
    ("describe task orders/0", "tasks describe orders/0"),
    ("restart connector/orders", "connectors restart orders"),
    ("get orders/0", "tasks describe orders/0"),
    ("restart orders/0", "tasks restart orders/0"),
    ("restart task orders 0", "tasks restart orders/0"),
    ("apply orders.yaml --dry-run", "connectors apply -f orders.yaml --dry-run"),
    ("logs orders", "connectors logs orders"),
    ("rm orders", "connectors delete orders"),
    ("ls", "connectors list"),
    ("ls plugins", "plugins list"),
    ("get offsets orders", "offsets get orders"),
    ("seek orders", "offsets seek orders"),
    ("set x", None),
    ("stacks plugins", None),
    ("orders get", None),
)
def test_a_line_with_the_verb_first_has_a_meaning(typed: str, meant: str | None) -> None:
    """The words of other tools; a verb of several nouns without its noun has none."""
    line = meant_line(typed.split())
    assert (line and " ".join(line)) == meant


def test_a_verb_before_its_noun_is_answered(run: Run, connect: FakeConnect) -> None:
    """A change is not sent; a reading verb has the result of the right line."""
    ended = run("rm", "connector/orders", code=2)
    assert ended.err == (
        "error: `pyconnect rm connector/orders` is not a command: the noun comes first\n"
        "hint: write: pyconnect connectors delete orders\n"
    )
    assert not connect.requests
    assert run("get", "connectors") == run("connectors", "list")
    assert run("describe", "connector", "orders") == run("connectors", "describe", "orders")


@cases("word", "restrt", "set", "resum", "undo", "api-resources", "patch", "scale")
def test_a_wrong_verb_never_proposes_a_noun(run: Run, word: str) -> None:
    """`restart` is near `status`, and means something else; `api-resources` is no `restore`."""
    assert "did you mean" not in run(word).err


def test_a_verb_is_imported_without_the_others_of_its_noun() -> None:
    """`connectors get` needs no module that changes connectors."""
    script = """
import sys
from pyconnect_cli.app import run
code = run(["connectors", "get", "orders"], {"PYCONNECT_URL": "http://127.0.0.1:9"})
print(int(code), [name for name in sys.modules if name.startswith("pyconnect_cli.connectors.")])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT / "cli"
    )
    assert done.stdout == "7 ['pyconnect_cli.connectors.show']\n", done.stderr


def test_the_words_of_the_tab_key_are_those_of_the_commands() -> None:
    """words.json is what scripts/generate-words writes."""
    script = ROOT / "scripts" / "generate-words"
    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0


@pytest.mark.wire
def test_short_commands_do_without_rich() -> None:
    """It takes longer to import than they may: the parser, every noun and a request load none."""
    script = """
import sys
from pyconnect_cli.app import app_of, run
from pyconnect_cli.parsing.nouns import NOUNS
for noun in NOUNS:
    app_of(noun.module)
code = run(["offsets", "get", "orders"], {"PYCONNECT_URL": "http://127.0.0.1:9"})
print(int(code), [name for name in sys.modules if name.partition(".")[0] == "rich"])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT / "cli"
    )
    assert done.stdout == "7 []\n", done.stderr


@cases("shell, file", ("bash", "pyconnect.bash"), ("zsh", "_pyconnect"), ("fish", "pyconnect.fish"))
def test_the_command_prints_the_script_of_completions(shell: str, file: str) -> None:
    """The folder completions/ has the same text, which an installed shell parses."""
    path = ROOT / "completions" / file
    assert path.read_text("utf-8") == completion_script(shell)
    assert "__complete" in completion_script(shell)
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(path)], check=True, capture_output=True)


def complete_words(*words: str) -> list[str]:
    """The offers of `__complete` for these words, without their help."""
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
    """Without a cluster: nouns, verbs, options and their values."""
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
    """Nouns, verbs, values of options and names from the cluster."""
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
    """`tasks kill` takes a task; the name of a connector would be refused."""
    line = TypedWords()
    line.read(noun)
    line.read(verb)
    assert line.names == kind


@pytest.mark.wire
def test_names_of_the_cluster_are_only_data_for_bash(tmp_path: Path) -> None:
    """A name is offered quoted and never expanded, without the part that bash keeps on the line."""
    trap = tmp_path / "ran"
    names = [f"$(touch {trap})", "*", "two words", "plain"]
    offered = complete("pyconnect connectors pause ", names=names)
    assert [shlex.split(word) for word in offered] == [[name] for name in names]
    assert not trap.exists()
    assert complete("pyconnect connectors pause a:", names=["a:b", "c"]) == ["b"]


@pytest.mark.wire
def test_a_real_bash_completes_at_the_tab_key(tmp_path: Path) -> None:
    """Typed into an interactive bash on a terminal, the file does what it says."""
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
    """Fish itself is asked what it would offer."""
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
    """Verbs, values, names and topics, typed into an interactive zsh."""
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
    """Names are kept for a while; another kind is requested again; a dead cluster has none."""
    # A machine that is busy may answer too late; then there are none, and the next Tab asks again.
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
    """Shells pass on what stands behind --context, the beginning of a name included."""
    file = Path(environ["XDG_CONFIG_HOME"]) / "pyconnect" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('current = "gone"\n[contexts.prod]\nurls = ["http://h:1"]\n')
    assert tab("contexts", "--context", "pr") == ["prod"]


@pytest.mark.wire
def test_older_names_are_better_than_none(
    tab: Tab, url: str, connect: FakeConnect, tmp_path: Path
) -> None:
    """A cluster that does not answer in time leaves what was kept, however old."""
    eventually(lambda: tab("connectors", "--url", url) == ["broken", "orders"], 120)
    (kept,) = (tmp_path / "cache").rglob("*.json")
    os.utime(kept, (0, 0))
    with connect.lock:
        assert tab("connectors", "--url", url) == ["broken", "orders"]
        assert tab("loggers", "--url", url) == []


@cases(
    "words, line",
    ("log orders", "connectors logs"),
    ("conn ls", "connectors"),
    ("start orders", "connectors resume"),
    ("connectors start orders", "connectors resume"),
    ("config use-context prod", "context use"),
    ("connectors offset orders", "offsets get NAME"),
    ("connectors help", "connectors --help"),
    ("help connectors", "connectors --help"),
    ("dlq ls orders", "connectors dlq"),
    ("sandbox start", "sandbox up"),
    ("restart task orders 0", "tasks restart orders/0"),
    ("apply orders.json", "connectors apply -f orders.json"),
    ("connectors validate orders.json", "-f orders.json"),
    ("status orders", "connectors describe NAME"),
    ("reset orders", "`reset` is a verb of offsets and topics: the noun comes first"),
)
def test_words_of_other_tools_are_answered_with_the_line(run: Run, words: str, line: str) -> None:
    """kubectl's, kcctl's, Confluent's, and their order."""
    hint = run(*words.split()).err.splitlines()[-1]
    assert hint.startswith("hint: ")
    assert f"{line}\n" in f"{hint.rstrip('`?')}\n"


@pytest.mark.wire
@cases(
    "words, hint",
    ("list --otput json", "did you mean `--output`? see: pyconnect connectors list --help"),
    ("apply orders.json", "a file follows -f: pyconnect connectors apply -f FILE"),
    ("pasue x", "did you mean `pyconnect connectors pause`?"),
    # It resembles `restart`; a proposal must not lead to a change.
    (
        "status orders",
        "did you mean `pyconnect connectors get` or `pyconnect connectors describe`?",
    ),
)
def test_a_misspelt_word_is_answered_with_the_near_one(run: Run, words: str, hint: str) -> None:
    """Options, files without their option, verbs."""
    outcome = run("connectors", *words.split(), code=2)
    assert outcome.err.splitlines()[1] == f"hint: {hint}"
    if "--otput" in words:
        assert outcome.err.startswith("error: no such option: --otput\n")


def mistyped(word: str) -> set[str]:
    """All that is one key away: a letter left out, doubled, replaced or exchanged with the next."""
    edits = {word[:at] + word[at + 1 :] for at in range(len(word))}
    edits |= {word[:at] + word[at] + word[at:] for at in range(len(word))}
    edits |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    for at in range(len(word)):
        edits |= {word[:at] + letter + word[at + 1 :] for letter in ascii_lowercase}
    return edits - {word, ""}


def test_mistyped_verbs_are_proposed_within_their_kind() -> None:
    """A reading verb never becomes a changing one; an exchange of neighbours is found."""
    for path, command in every_command():
        verbs = getattr(command, "commands", {})
        changing = [name for name, verb in verbs.items() if getattr(verb, "changes", False)]
        reading = [name for name in verbs if name not in changing]
        for verb in reading:
            for word in mistyped(verb) - set(verbs):
                proposed = near_verbs(word, reading, changing)
                assert not set(proposed) & set(changing), f"{path} {word}: {proposed}"
        for verb in changing:
            word = verb[:2] + verb[3] + verb[2] + verb[4:] if len(verb) > 3 else f"{verb}{verb[-1]}"
            assert verb in near_verbs(word, reading, changing), f"{path} {word}"


def test_every_verb_that_changes_something_says_so() -> None:
    """A hint for a mistyped verb depends on it; a new verb has to be named here."""
    changing = {
        path
        for path, command in every_command()
        if getattr(command, "changes", False) and not command.hidden
    }
    assert {path.rpartition(" ")[2] for path in changing} == {
        "abandon", "abort", "alter", "apply", "copy", "create", "delete", "down", "drain", "edit",
        "import", "kill", "patch", "pause", "promote", "purge", "rename", "repair", "replay",
        "reset", "restart", "restore", "resume", "rollback", "run", "seek", "set", "stop",
        "terminate", "trust", "undo", "undrain", "untrust", "up", "use", "demo", "new",
    }  # fmt: skip


def test_only_verbs_for_cron_take_a_lock() -> None:
    """An editor, a kill or an abort needs a person; what cron repeats can be locked."""
    locked = {
        path
        for path, command in every_command()
        if any(o.name == "lock" for o in getattr(command, "shared_options", list)())
    }
    assert {"connectors restart", "connectors apply", "tasks restart", "offsets copy"} <= locked
    assert not {"connectors edit", "tasks kill", "transactions abort", "agent drain"} & locked


@pytest.mark.wire
def test_the_version_is_an_option_too(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """As of every program."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == run("version").out
