"""Start-up time, help texts, and corrections of mistyped commands."""

import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from string import ascii_lowercase

import pytest

from pyconnect_cli.__main__ import main
from pyconnect_cli.app import app_of, load_noun
from pyconnect_cli.completion import TypedWords
from pyconnect_cli.parsing.help_page import EXAMPLES, first_screen
from pyconnect_cli.parsing.nouns import NOUNS, meant_line, near_verbs
from tests.cli.conftest import Run, every_command
from tests.support.cases import cases
from tests.support.commands.processes import run_python
from tests.support.fakes.connect_server import FakeConnect

ROOT = Path(__file__).resolve().parents[2]
HELP_BUDGET = 5
"""The largest processor time of the help, as a multiple of that of bare Python."""


def test_the_static_help_is_the_modules_own() -> None:
    """The static help of `pyconnect --help` equals that of the modules that it does not import."""
    for noun in NOUNS:
        assert app_of(noun.module).info.help == noun.help
    from pyconnect_cli.about import SUMMARIES, TOPICS
    from pyconnect_cli.parsing.help_page import root_help

    assert set(SUMMARIES) == set(TOPICS)
    assert f"pyconnect help {'|'.join(TOPICS)}" in root_help()


def test_every_verb_and_argument_is_explained() -> None:
    """Every verb, option and argument has a help text."""
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
    """The verbs and options of every example exist, and so does its help page."""
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
    """The help breaks no option or path across lines and cuts no sentence."""
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
    """The help takes at most HELP_BUDGET times the processor time of bare Python."""
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
    """The first screen fits 80 columns and 24 lines, and has every noun."""
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
    """A line with the verb first is understood, unless its verb needs a noun that is missing."""
    line = meant_line(typed.split())
    assert (line and " ".join(line)) == meant


def test_a_verb_before_its_noun_is_answered(run: Run, connect: FakeConnect) -> None:
    """A changing verb before its noun only leads to a hint; a reading verb is carried out."""
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
    """A mistyped verb without a noun gets no proposal, because it may mean something else."""
    assert "did you mean" not in run(word).err


def test_a_verb_is_imported_without_the_others_of_its_noun() -> None:
    """`connectors get` imports no module of the noun's other verbs."""
    script = """
import sys
from pyconnect_cli.app import run
code = run(["connectors", "get", "orders"], {"PYCONNECT_URL": "http://127.0.0.1:9"})
print(int(code), [name for name in sys.modules if name.startswith("pyconnect_cli.connectors.")])
"""
    done = run_python(["-c", script], os.environ)
    assert (done.returncode, done.stdout) == (0, "7 ['pyconnect_cli.connectors.show']\n"), (
        done.stderr
    )


@cases(
    "module, slow",
    ("pyconnect_cli.settings.given_files", "pyconnect_clients.security"),
    ("pyconnect_cli.top.commands", "pyconnect_cli.overview.commands"),
)
def test_modules_that_take_long_are_imported_on_demand(module: str, slow: str) -> None:
    """An inventory is read without modules of TLS, and `top --help` without those of looks."""
    script = f"""
import sys
import {module}
print({slow!r} in sys.modules, "ssl" in sys.modules, "concurrent.futures" in sys.modules)
"""
    done = run_python(["-c", script], os.environ)
    assert (done.returncode, done.stdout) == (0, "False False False\n"), done.stderr


def test_the_words_of_the_tab_key_are_those_of_the_commands() -> None:
    """words.json is up to date with the commands."""
    script = ROOT / "scripts" / "generate-words"
    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0


@pytest.mark.wire
def test_short_commands_do_without_rich() -> None:
    """A request and the parsers of all nouns do not import rich, which takes too long."""
    script = """
import sys
from pyconnect_cli.app import app_of, run
from pyconnect_cli.parsing.nouns import NOUNS
for noun in NOUNS:
    app_of(noun.module)
code = run(["offsets", "get", "orders"], {"PYCONNECT_URL": "http://127.0.0.1:9"})
print(int(code), [name for name in sys.modules if name.partition(".")[0] == "rich"])
"""
    done = run_python(["-c", script], os.environ)
    assert (done.returncode, done.stdout) == (0, "7 []\n"), done.stderr


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
    """Words of kubectl, kcctl and Confluent's tools lead to a hint with the line to write."""
    hint = run(*words.split()).err.splitlines()[-1]
    assert hint.startswith("hint: ")
    assert f"{line}\n" in f"{hint.rstrip('`?')}\n"


@pytest.mark.wire
@cases(
    "words, hint",
    ("list --otput json", "did you mean `--output`? see: pyconnect connectors list --help"),
    ("apply orders.json", "a file follows -f: pyconnect connectors apply -f FILE"),
    ("pasue x", "did you mean `pyconnect connectors pause`?"),
    # `status` resembles `restart`, but a proposal must not lead to a change.
    (
        "status orders",
        "did you mean `pyconnect connectors get` or `pyconnect connectors describe`?",
    ),
)
def test_a_misspelt_word_is_answered_with_the_near_one(run: Run, words: str, hint: str) -> None:
    """A mistyped option or verb, or a file without -f, leads to a hint with the correct word."""
    outcome = run("connectors", *words.split(), code=2)
    assert outcome.err.splitlines()[1] == f"hint: {hint}"
    if "--otput" in words:
        assert outcome.err.startswith("error: no such option: --otput\n")


def mistyped(word: str) -> set[str]:
    """Return all words with one letter left out, doubled, replaced or exchanged with the next."""
    edits = {word[:at] + word[at + 1 :] for at in range(len(word))}
    edits |= {word[:at] + word[at] + word[at:] for at in range(len(word))}
    edits |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    for at in range(len(word)):
        edits |= {word[:at] + letter + word[at + 1 :] for letter in ascii_lowercase}
    return edits - {word, ""}


def test_mistyped_verbs_are_proposed_within_their_kind() -> None:
    """A mistyped reading verb never leads to a changing one; exchanged letters are recognised."""
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
    """Every changing verb is marked as one, because hints for mistyped verbs depend on it."""
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
    """Verbs that cron may repeat take --lock; verbs that need a person do not."""
    locked = {
        path
        for path, command in every_command()
        if any(o.name == "lock" for o in getattr(command, "shared_options", list)())
    }
    assert {"connectors restart", "connectors apply", "tasks restart", "offsets copy"} <= locked
    assert not {"connectors edit", "tasks kill", "transactions abort", "agent drain"} & locked


@pytest.mark.wire
def test_the_version_is_an_option_too(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """`pyconnect --version` prints the same as `pyconnect version`."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == run("version").out
