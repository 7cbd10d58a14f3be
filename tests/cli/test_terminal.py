"""The command as a process: signals, pipes, questions on a terminal, faults."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.session import Session
from tests.cli.conftest import Run
from tests.cli.offsets_world import sink_entry
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.connect_server import FakeConnect

pytestmark = pytest.mark.wire
CLI = Path(__file__).resolve().parents[2] / "cli"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(url: str, environ: dict[str, str]) -> Start:
    """Start `python -m pyconnect_cli ARGUMENTS` with the server of the test."""

    def launch(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            [sys.executable, "-m", "pyconnect_cli", *arguments],
            cwd=CLI,
            env={**environ, "PYCONNECT_URL": url},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    return launch


INTERRUPTED_AT = """
import os, signal, sys

class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, AtImport())
from pyconnect_cli.__main__ import main
main(["connectors", "list"])
"""


@cases(
    "module",
    "pyconnect_cli.app", "typer", "pyconnect_cli.settings.resolved",
    "pyconnect_cli.connectors.show", "pyconnect_cli.rest.exchange", "httpx",
)  # fmt: skip
def test_ctrl_c_shows_no_traceback(module: str, url: str, environ: dict[str, str]) -> None:
    """Ctrl-C is exit 130 with one line of output, even during the first imports."""
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, module],
        cwd=CLI,
        env={**environ, "PYCONNECT_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: interrupted\n")


@cases("signal_number", signal.SIGTERM, signal.SIGINT)
def test_a_level_set_for_a_while_is_set_back_when_the_command_is_ended(
    start: Start, connect: FakeConnect, signal_number: signal.Signals
) -> None:
    """Ctrl-C and SIGTERM during `--for` restore the logger's level, exit 130."""
    process = start("loggers", "set", "root", "DEBUG", "--for", "10m")
    eventually(lambda: connect.loggers["root"] == "DEBUG")
    process.send_signal(signal_number)
    _, err = process.communicate(timeout=400)
    assert connect.loggers["root"] == "INFO"
    assert process.returncode == 130
    assert b"Traceback" not in err


@cases("scope", "worker", "cluster")
def test_the_levels_of_children_are_set_back_and_a_logger_may_have_none(
    run: Run, connect: FakeConnect, scope: str
) -> None:
    """`--for` restores children's levels, also for a logger without a level of its own."""
    child = "org.apache.kafka.connect.runtime.rest"
    connect.loggers |= {child: "ERROR", "org.reflections": "OFF"}
    outcome = run(
        *("loggers", "set", "org.apache.kafka.connect", "DEBUG"),
        *("--for", "10ms", "--scope", scope),
    )
    assert outcome.code == 0, outcome.err
    assert connect.loggers == {
        "root": "INFO",
        "org.apache.kafka.connect": "INFO",
        child: "ERROR",
        "org.reflections": "OFF",
    }
    assert "PUT /admin/loggers/org.reflections" not in connect.requests


def test_a_level_that_cannot_be_set_back_is_named(run: Run, connect: FakeConnect) -> None:
    """A level that cannot be restored is exit 8, and the other levels are restored."""
    connect.loggers |= {"x": "ERROR", "x.a": "OFF"}
    connect.failures["PUT /admin/loggers/x.a"] = [(400, "no luck")]
    outcome = run("loggers", "set", "x", "DEBUG", "--for", "10ms", code=8)
    assert "not set back: x.a to OFF" in outcome.err
    assert connect.loggers["x"] == "ERROR"


def test_a_level_is_set_back_where_it_was_set(run: Run, connect: FakeConnect, url: str) -> None:
    """`--for` restores a level at the address that answered, even after --timeout is over."""
    outcome = run(
        *("loggers", "set", "root", "DEBUG", "--for", "10ms"),
        *("--url", "http://127.0.0.1:9", "--url", url),
        address=None,
    )
    assert outcome.code == 0, outcome.err
    assert connect.loggers["root"] == "INFO"
    run("loggers", "set", "root", "DEBUG", "--for", "4500ms", "--timeout", "4s", code=0)
    assert connect.loggers["root"] == "INFO"


def test_a_reader_that_leaves_causes_no_error(start: Start) -> None:
    """A pipe whose reader has closed it, as `head` does, is not an error."""
    read, write = os.pipe()
    os.close(read)
    process = start("connectors", "list", stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=400)
    assert (process.returncode, err) == (0, b"")


@cases("stream", "stdout", "stderr")
def test_a_change_needs_no_reader(start: Start, connect: FakeConnect, stream: str) -> None:
    """A closed pipe for stdout or stderr does not stop the changes of a batch."""
    read, write = os.pipe()
    os.close(read)
    process = start("connectors", "pause", "--all", "-v", **{stream: write})
    os.close(write)
    _, err = process.communicate(timeout=400)
    assert process.returncode == 0
    assert b"Traceback" not in (err or b"")
    assert {c.state for c in connect.connectors.values()} == {"PAUSED"}


def test_a_full_disk_does_not_stop_a_batch(start: Start, connect: FakeConnect) -> None:
    """A full disk for stdout is exit 74, but all changes are made."""
    with Path("/dev/full").open("wb") as full:
        process = start("connectors", "pause", "--all", stdout=full)
        _, err = process.communicate(timeout=400)
    assert process.returncode == 74
    assert b"standard output cannot be written: No space left on device" in err
    assert b"Traceback" not in err
    assert {c.state for c in connect.connectors.values()} == {"PAUSED"}


@cases("arguments", ["--help"], ["help", "cron"], ["connectors", "pause", "--help"])
def test_an_unwritable_help_text_shows_no_traceback(start: Start, arguments: list[str]) -> None:
    """A help text that cannot be written is exit 74 without a traceback."""
    with Path("/dev/full").open("wb") as full:
        process = start(*arguments, stdout=full)
        _, err = process.communicate(timeout=400)
    assert process.returncode == 74
    assert b"cannot be written" in err
    assert b"Traceback" not in err


def test_no_streams_are_needed(url: str, environ: dict[str, str], connect: FakeConnect) -> None:
    """A command works without stdin, stdout and stderr, as some schedulers start it."""
    done = subprocess.run(
        [
            *("/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"),
            *(sys.executable, "-m", "pyconnect_cli", "connectors", "pause", "orders"),
        ],
        cwd=CLI,
        env={**environ, "PYCONNECT_URL": url},
        check=False,
    )
    assert done.returncode == 0
    assert connect.connectors["orders"].state == "PAUSED"


def test_stdin_is_always_utf_8(start: Start, connect: FakeConnect, environ: dict[str, str]) -> None:
    """stdin is read as UTF-8 in every locale, and other bytes are exit 2."""
    environ |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    config = '{"connector.class": "X", "file": "/tmp/päß"}'
    process = start("connectors", "create", "a", "-f", "-", stdin=subprocess.PIPE)
    _, err = process.communicate(config.encode(), timeout=400)
    assert (process.returncode, err) == (0, b"")
    assert connect.connectors["a"].config["file"] == "/tmp/päß"
    process = start("connectors", "create", "b", "-f", "-", stdin=subprocess.PIPE)
    _, err = process.communicate(config.encode("latin-1"), timeout=400)
    assert process.returncode == 2
    assert b"stdin: is not UTF-8 text" in err


def test_an_argument_that_is_not_text_is_a_usage_error(start: Start, connect: FakeConnect) -> None:
    """An argument in another encoding is a usage error before the first request."""
    process = start("connectors", "create", "a", "-s", "connector.class=X", "-s", b"note=p\xe4")
    _, err = process.communicate(timeout=400)
    assert process.returncode == 2
    assert b"this text cannot be sent" in err
    assert "a" not in connect.connectors


def test_the_directory_may_be_gone(url: str, environ: dict[str, str], tmp_path: Path) -> None:
    """A command works in a directory that was removed."""
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [
            *("/bin/sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh"),
            *(sys.executable, "-m", "pyconnect_cli", "connectors", "list", "-o", "name"),
        ],
        cwd=gone,
        env={**environ, "PYCONNECT_URL": url, "PYTHONPATH": str(CLI)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, [b"broken", b"orders"]), done.stderr


def test_any_encoding_can_show_the_help(start: Start, environ: dict[str, str]) -> None:
    """Characters that the terminal's encoding lacks are escaped."""
    environ["PYTHONIOENCODING"] = "ascii"
    out, err = start("--help").communicate(timeout=400)
    assert (b"NOUN VERB" in out, err) == (True, b"")


@cases("answer, code, left", ("y", 0, False), ("n", 9, True))
def test_a_destructive_verb_asks_on_a_terminal(
    start: Start, connect: FakeConnect, answer: str, code: int, left: bool
) -> None:
    """A terminal shows the connectors to delete first, and only `y` deletes them."""
    ours, theirs = pty.openpty()
    process = start("connectors", "delete", "orders", stdin=theirs, stderr=theirs)
    os.close(theirs)
    shown = shown_until(ours, "delete 1 connector?")
    assert "orders  RUNNING, 1 task -> deleted" in shown
    assert "orders" in connect.connectors
    os.write(ours, f"{answer}\n".encode())
    process.communicate(timeout=400)
    os.close(ours)
    assert process.returncode == code
    assert ("orders" in connect.connectors) is left


def test_a_confirmed_undo_overwrites(run: Run, start: Start, connect: FakeConnect) -> None:
    """A confirmed undo overwrites later changes, because the plan has shown them."""
    broken = connect.connectors["broken"]
    broken.type, broken.state, broken.tasks = "sink", "STOPPED", []
    broken.offsets = [sink_entry("t", 0, 100)]
    assert run("offsets", "reset", "broken", "--yes").code == 0
    broken.offsets = [sink_entry("t", 0, 9)]
    ours, theirs = pty.openpty()
    process = start("offsets", "undo", stdin=theirs, stderr=theirs)
    os.close(theirs)
    shown = shown_until(ours, "undo the offsets of 1 connector?")
    assert "warning: the connector or a user has changed" in shown
    assert "t:0  9 -> 100  (was left at -)" in shown
    os.write(ours, b"y\n")
    process.communicate(timeout=400)
    os.close(ours)
    assert process.returncode == 0
    assert broken.offsets == [sink_entry("t", 0, 100)]


def shown_until(terminal: int, text: str) -> str:
    """Return the terminal's output as soon as it contains `text`."""
    os.set_blocking(terminal, False)
    shown = ""

    def is_there() -> bool:
        nonlocal shown
        try:
            shown += os.read(terminal, 4096).decode()
        except BlockingIOError:
            return False
        except OSError:
            pytest.fail(f"the command has ended: {shown}")
        return text in shown

    eventually(is_there, describe=lambda: shown)
    return shown


def test_an_internal_error_has_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal error is exit 10 with one line; only --debug shows the traceback."""

    def fail(_: ConnectClient, *_names: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(ConnectClient, "connector_views", fail)
    outcome = run("connectors", "list", code=10)
    assert "RuntimeError: boom" in outcome.err
    assert "Traceback" not in outcome.err
    assert "Traceback" in run("connectors", "list", "--debug").err
    summary = run("connectors", "pause", "--all", "--summary-json").out
    assert json.loads(summary)["exit_code"] == 10


def test_the_deadline_ends_a_request_that_hangs(run: Run, connect: FakeConnect) -> None:
    """A thread that waits for an answer does not keep the run alive after its deadline."""
    with connect.lock:
        # The server needs this lock for each answer: it accepts connections and never answers.
        outcome = run("connectors", "pause", "orders", "--deadline", "2s", "--timeout", "60s")
    assert outcome.code == 124, outcome.err


def test_a_refused_edit_is_kept(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """A refused edit is kept in a file, and the error names the file."""
    environ["EDITOR"] = "sed -i s/hunter2/other/"
    connect.failures["PUT /connectors/orders/config"] = [(400, "tasks.max is bad")]
    outcome = run("connectors", "edit", "orders", code=2)
    assert "tasks.max is bad" in outcome.err
    (line,) = (line for line in outcome.err.splitlines() if "is kept in" in line)
    kept = Path(line.rsplit(" ", 1)[-1])
    assert json.loads(kept.read_text())["db.password"] == "other"
    kept.unlink()
    assert "hunter2" not in outcome.err


@pytest.mark.wire
def test_the_editor_opens_again_after_a_text_that_is_not_valid(
    run: Run,
    connect: FakeConnect,
    environ: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The editor opens again after a text that is not JSON or that the worker refuses."""
    script = tmp_path / "editor"
    script.write_text(
        'n=$(cat "$0.n" 2>/dev/null || echo 0); echo $((n + 1)) > "$0.n"\n'
        'case $n in 0) sed -i "s/{/{{/" "$1" ;; 1) sed -i "s/{{/{\\"bad\\": \\"1\\",/" "$1" ;;\n'
        '2) sed -i "s/bad/good/" "$1" ;; esac\n'
    )
    environ["EDITOR"] = f"sh {script}"
    connect.invalid_keys = ("bad",)
    monkeypatch.setattr(Session, "interactive", True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\ny\n"))
    assert run("connectors", "edit", "orders", code=0).err.count("open the editor again?") == 2
    assert connect.connectors["orders"].config["good"] == "1"
    assert connect.connectors["orders"].config["db.password"] == "hunter2"


def test_an_editor_that_cannot_be_run_leaves_nothing_behind(
    run: Run, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the editor cannot be run, its file with the configuration is removed."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    environ["EDITOR"] = "/nonexistent/editor"
    outcome = run("connectors", "edit", "orders", code=2)
    assert "cannot be run: No such file or directory" in outcome.err
    assert list(directory.iterdir()) == []


def test_an_interrupted_batch_lists_the_untried(start: Start, connect: FakeConnect) -> None:
    """An interrupted batch finishes its current change and lists the changes not tried."""
    connect.slow["PUT /connectors/broken/pause"] = threading.Event()
    process = start("connectors", "pause", "broken", "orders")
    eventually(lambda: "PUT /connectors/broken/pause" in connect.requests)
    process.send_signal(signal.SIGINT)
    connect.slow["PUT /connectors/broken/pause"].set()
    out, err = process.communicate(timeout=400)
    assert process.returncode == 130
    assert out == b"broken: paused\n"
    assert b"not tried: orders" in err
    assert connect.connectors["orders"].state == "RUNNING"


def test_descriptions_are_printable_without_topics(run: Run, connect: FakeConnect) -> None:
    """`describe` escapes control characters, and shows the rest if topics are refused."""
    connect.connectors["broken"].trace = "Error: \x1b[2J\x9b1A gone"
    connect.connectors["broken"].config["note"] = "\x1b]0;title\x07"
    outcome = run("connectors", "describe", "broken", code=0)
    assert "\\x1b[2J" in outcome.out
    assert not {"\x1b", "\x07", "\x9b"} & set(outcome.out)
    connect.failures["GET /connectors/orders/topics"] = [(403, "Topic tracking is disabled.")]
    assert "orders" in run("connectors", "describe", "orders", code=0).out


def test_an_unknown_connector_of_a_task_is_answered_with_the_near_one(run: Run) -> None:
    """A task of an unknown connector is exit 3 with the similar name before any restart."""
    assert "did you mean `orders`?" in run("tasks", "restart", "ordres/0", code=3).err


def test_a_difference_is_data(run: Run, tmp_path: Path) -> None:
    """`diff` prints to stdout in every format."""
    file = tmp_path / "c.json"
    file.write_text('{"name": "new", "connector.class": "X"}')
    text = run("connectors", "diff", "-f", str(file))
    assert (text.code, text.out, text.err) == (1, "+ create new\n", "")
    document = json.loads(run("connectors", "diff", "-f", str(file), "-o", "json").out)
    assert [(entry["name"], entry["change"]) for entry in document] == [("new", "create")]
    assert run("connectors", "diff", "-f", str(file), "-o", "name").out == "new\n"
