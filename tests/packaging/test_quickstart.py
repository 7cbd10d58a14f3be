"""Failures of scripts/quickstart.py; CI runs it as a whole."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve

pytestmark = pytest.mark.wire

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "quickstart.py"
RUN = """
import signal, sys
from pathlib import Path
# A runner that ignores the signal hands that on to what it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {scripts!r})
import quickstart
quickstart.BIN = Path({bin!r})
quickstart.ROOT = Path({root!r})
sys.argv[1:] = [{file!r}]
sys.exit(quickstart.main())
"""


@pytest.fixture
def quickstart() -> ModuleType:
    specification = importlib.util.spec_from_file_location("quickstart", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def run_with_command(directory: Path, script: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the script with a fake `pyconnect`; return its end and the commands it ran."""
    command = directory / "bin" / "pyconnect"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\necho "$@" >> {directory}/commands\n{script}\n')
    command.chmod(0o755)
    lines = directory / "lines.txt"
    lines.write_text("one\ntwo\n")
    program = RUN.format(
        scripts=str(SCRIPT.parent), bin=str(command.parent), root=str(directory), file=str(lines)
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=directory,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    return done, (directory / "commands").read_text()


def test_an_interrupt_ends_started_servers_without_a_traceback(tmp_path: Path) -> None:
    """Ctrl-C while the broker starts ends with 130 and takes the sandbox down."""
    done, commands = run_with_command(
        tmp_path,
        'case "$*" in *"sandbox up"*) kill -INT $PPID; exec sleep 60 >/dev/null 2>&1 ;; esac',
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "interrupted" in done.stdout
    assert commands.splitlines()[-1].startswith("sandbox down")


def test_a_failed_step_is_named(tmp_path: Path) -> None:
    """The message has noun and verb of the failed command, and the sandbox is taken down."""
    done, commands = run_with_command(tmp_path, 'case "$*" in *"sandbox up"*) exit 10 ;; esac')
    assert done.returncode == 1
    assert "error: `pyconnect sandbox up` ended with exit code 10" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert commands.splitlines()[-1].startswith("sandbox down")


def test_a_command_with_an_address_is_named_by_its_verb(quickstart: ModuleType) -> None:
    """The message names the verb, although the address comes first on the command line."""
    with pytest.raises(quickstart.Failed, match="`pyconnect connectors list` ended with"):
        quickstart.pyconnect("connectors", "list", url="http://127.0.0.1:1", show=False)


def test_a_failure_beside_an_agent_names_its_log(
    quickstart: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the agent's log, which has the reason."""
    places = quickstart.Workplace(tmp_path)
    places.agent_log.touch()
    quickstart.report(quickstart.Failed("the sink did not run"), places)
    assert str(places.agent_log) in capsys.readouterr().out.replace("\n", "")


def test_the_committed_position_is_read_from_the_worker(quickstart: ModuleType) -> None:
    """The committed position comes from REST; before the first commit there is none."""
    source = FakeConnector({"connector.class": "FileStreamSource"})
    with serve(FakeConnect({quickstart.SOURCE: source})) as url:
        assert quickstart.committed_position(url) is None
        source.offsets = [{"partition": {"filename": "f"}, "offset": {"position": 17}}]
        assert quickstart.committed_position(url) == 17


def test_the_header_of_the_sample_is_explained(quickstart: ModuleType) -> None:
    """The output has lines and flights, because the README counts only flights."""
    assert quickstart.line_count(b"a,b\n1,2\n3,4\n", None) == "3 lines (a header and 2 flights)"
    assert quickstart.line_count(b"1\n2\n", Path("file")) == "2 lines"


@cases(
    "verdicts, agreed",
    ({"one": "agree", "two": "agree"}, True),
    ({"one": "agree", "two": "differ"}, False),
    ({"one": "agree"}, False),
)
def test_all_connectors_of_an_audit_must_agree(
    quickstart: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verdicts: dict[str, str],
    agreed: bool,
) -> None:
    """A connector without a report counts as a difference."""
    monkeypatch.setattr(quickstart, "ROOT", tmp_path)
    commands: list[tuple[str, ...]] = []

    def pyconnect(*arguments: str, **_: object) -> str:
        commands.append(arguments)
        for name, verdict in verdicts.items():
            report = tmp_path / "report-topic-sink" / f"topic-sink-{name}" / "report.json"
            report.parent.mkdir(parents=True)
            report.write_text(f'{{"verdict": "{verdict}"}}')
        return ""

    monkeypatch.setattr(quickstart, "pyconnect", pyconnect)
    places = quickstart.Workplace(tmp_path)
    assert quickstart.agree(places, "topic-sink", ["one", "two"], "url", "b:9092") is agreed
    (command,) = commands
    assert command[:4] == ("reconcile", "topic-sink", "one", "two")
