"""The contract of unattended runs: lock, silence, summary, textfile, deadline."""

import fcntl
import json
import threading
from pathlib import Path

import pytest

from pyconnect_cli.app import load_noun
from pyconnect_cli.parsing.nouns import NOUNS
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect

pytestmark = pytest.mark.wire


def test_quiet_is_silent_on_success(run: Run) -> None:
    """A successful run with -q prints nothing, so that cron sends no mail."""
    outcome = run("connectors", "pause", "orders", "-q")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_a_lock_of_a_login_holds_in_cron(run: Run, environ: dict[str, str], tmp_path: Path) -> None:
    """A lock is exit 6 for other runs, with and without XDG_RUNTIME_DIR, until its holder ends."""
    directory = Path(environ["XDG_STATE_HOME"]) / "pyconnect"
    directory.mkdir(parents=True)
    environ["XDG_RUNTIME_DIR"] = str(tmp_path / "runtime")
    with (directory / "nightly.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        held = run("connectors", "pause", "orders", "--lock", "nightly", code=6)
    assert "another run holds the lock `nightly`" in held.err
    assert run("connectors", "pause", "orders", "--lock", "nightly").code == 0
    assert not (tmp_path / "runtime").exists()


def test_others_must_find_a_lock(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """A lock whose place depends on the current directory is refused."""
    environ["XDG_STATE_HOME"] = "~/state"
    outcome = run("connectors", "pause", "orders", "--lock", "nightly", code=9)
    assert "not an absolute path" in outcome.err
    assert connect.connectors["orders"].state == "RUNNING"
    assert run("connectors", "pause", "orders", "--lock", "../x").code == 2


def test_the_summary_is_one_line_of_json(run: Run, connect: FakeConnect) -> None:
    """--summary-json prints one line with counts, exit code and the result of each object."""
    connect.failures["PUT /connectors/broken/pause"] = [(500, "no luck")]
    outcome = run("connectors", "pause", "--all", "--summary-json", code=8)
    summary = json.loads(outcome.out)
    assert (summary["succeeded"], summary["failed"], summary["exit_code"]) == (1, 1, 8)
    assert {r["name"]: r["ok"] for r in summary["results"]} == {"orders": True, "broken": False}


def test_the_textfile_is_replaced_whole(run: Run, url: str, tmp_path: Path) -> None:
    """A run replaces its textfile as a whole, also when it fails."""
    textfile = tmp_path / "collected" / "run.prom"
    textfile.parent.mkdir()
    textfile.write_text("old\n")
    assert run("connectors", "pause", "nobody", "--textfile", str(textfile)).code == 3
    text = textfile.read_text()
    labels = f'noun="connectors",verb="pause",context="{url}",selection="nobody"'
    assert f"pyconnect_run_exit_code{{{labels}}} 3" in text
    assert "old" not in text
    assert list(textfile.parent.iterdir()) == [textfile]


@cases(
    "arguments, labels",
    (
        ("--failed", "--type", "sink", "-l", "team=b"),
        'context="CLUSTER",selection="--selector team=b --type sink --failed"',
    ),
    (("-e", 'b".*\\w'), 'context="CLUSTER",selection="--regex \'b\\".*\\\\w\'"'),
    (
        ("-l", "db.password=hunter2"),
        'context="CLUSTER",selection="--selector \'db.password=********\'"',
    ),
    (("--all", "--context", "prod"), 'context="prod",selection="--all"'),
)
def test_metrics_of_two_jobs_with_the_same_verb_differ(
    run: Run, url: str, tmp_path: Path, arguments: tuple[str, ...], labels: str
) -> None:
    """The labels of metrics have context and selection, with quotes escaped and secrets masked."""
    run("context", "set", "prod", "--url", url, address=None)
    textfile = tmp_path / "run.prom"
    run("connectors", "restart", *arguments, "--allow-empty", "--textfile", str(textfile))
    expected = f'noun="connectors",verb="restart",{labels.replace("CLUSTER", url)}'
    assert f"pyconnect_run_exit_code{{{expected}}} " in textfile.read_text()


def test_a_jobs_files_and_nested_verbs_are_in_its_labels(run: Run, tmp_path: Path) -> None:
    """The labels of metrics have the files, topics and nested verbs of a job."""
    textfile = tmp_path / "run.prom"
    run("connectors", "apply", "-f", "none.json", "--textfile", str(textfile))
    assert 'verb="apply"' in textfile.read_text()
    assert 'selection="--file none.json"' in textfile.read_text()
    run("offsets", "orphans", "purge", "gone", "--textfile", str(textfile))
    assert 'noun="offsets",verb="orphans purge"' in textfile.read_text()
    textfile = tmp_path / "run.prom"
    run("transactions", "find-hanging", "--topic", "a", "--topic", "b", "--textfile", str(textfile))
    assert 'selection="--topic a --topic b"' in textfile.read_text()
    run("acls", "check", "--connector", "orders", "--textfile", str(textfile))
    assert 'selection="--connector orders"' in textfile.read_text()


def test_the_deadline_ends_a_run_that_hangs(run: Run) -> None:
    """--deadline ends a run with exit 124 before a longer --timeout."""
    outcome = run(
        "connectors", "pause", "orders", "--wait", "STOPPED", "--timeout", "60s",
        "--deadline", "3s",
    )  # fmt: skip
    assert outcome.code == 124
    # The wait ends a moment before the deadline, or the deadline ends it.
    assert "deadline of 3s" in outcome.err or "orders is PAUSED" in outcome.err


CHECKS: dict[tuple[str, ...], list[str]] = {
    ("health",): [],
    ("status",): ["worker-1:8083", "broken"],
    ("connectors", "export", "--dir", "out"): [],
    ("offsets", "export", "--all", "--dir", "out"): [],
}
"""Verbs that only read, with the objects here that they report as failed."""


@pytest.mark.parametrize("verb", CHECKS, ids=" ".join)
def test_verbs_that_read_have_the_contract_too(
    run: Run, connect: FakeConnect, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    """A verb that reads takes the options of cron, and counts the objects that it has read."""
    textfile = tmp_path / "run.prom"
    outcome = run(*verb, "--summary-json", "--textfile", str(textfile), "--lock", "nightly")
    summary = json.loads(outcome.out)
    assert summary["exit_code"] == outcome.code
    results = {each["name"]: each["ok"] for each in summary["results"]}
    assert len(results) > len(CHECKS[verb])
    assert [name for name, ok in results.items() if not ok] == CHECKS[verb]
    assert f"}} {outcome.code}\n" in textfile.read_text()
    assert f'noun="{verb[0]}"' in textfile.read_text()
    assert "objects_failed{" in textfile.read_text()
    connect.slow["GET /"] = threading.Event()
    connect.slow["GET /connectors"] = connect.slow["GET /"]
    assert run(*verb, "--deadline", "1s").code == 124
    connect.slow["GET /"].set()


def test_every_verb_that_cron_runs_takes_its_options() -> None:
    """Every reading verb that cron may run takes all options of cron; acting verbs inherit them."""
    cron = {"lock", "jitter", "deadline", "summary_json", "textfile"}
    verbs = {
        "backup", "restore", "status", "health", "acls check", "transactions find-hanging",
        "connectors export", "offsets export", "reconcile sequence", "reconcile topic-sink",
    }  # fmt: skip
    for path in verbs:
        noun, _, verb = path.partition(" ")
        command = load_noun(next(each for each in NOUNS if each.name == noun))
        command = command.commands[verb] if verb else command
        given = {spec.name for _, group in command.shared_specs for spec in group}
        assert cron <= given, path
