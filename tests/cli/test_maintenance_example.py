"""The examples for cron, run without a terminal and with a bare environment, as cron does."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.fakes.connect_server import FakeConnect

pytestmark = pytest.mark.wire

EXAMPLES = Path(__file__).parents[2] / "examples" / "cron"
COMMAND = Path(sys.executable).parent / "pyconnect"


@pytest.fixture
def nightly(connect: FakeConnect) -> FakeConnect:
    """Return a server where `orders` starts over each night."""
    orders = connect.connectors["orders"]
    orders.config["pyconnect.nightly"] = "start-over"
    orders.offsets = [{"partition": {"file": "a"}, "offset": {"position": 3}}]
    return connect


def run_as_cron(home: Path, url: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script as crond does: /bin/sh -c in the home directory, no environment, no stdin."""
    environment = {
        "HOME": str(home),
        "LOGNAME": "operator",
        "SHELL": "/bin/sh",
        "PATH": "/usr/bin:/bin",
        "PYCONNECT": str(COMMAND),
        "PYCONNECT_URL": url,
        **variables,
    }
    return subprocess.run(
        ["/bin/sh", "-c", str(EXAMPLES / "nightly-maintenance")],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        start_new_session=True,
    )


def test_the_nightly_run_needs_no_terminal(nightly: FakeConnect, url: str, tmp_path: Path) -> None:
    """The nightly run restarts failed tasks, resets offsets after a backup and prints summaries."""
    home = tmp_path / "home"
    metrics = tmp_path / "metrics"
    home.mkdir()
    metrics.mkdir()
    ended = run_as_cron(home, url, METRICS=str(metrics))
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    summaries = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [summary["exit_code"] for summary in summaries] == [0, 0]
    assert nightly.connectors["orders"].offsets == []
    assert nightly.connectors["orders"].state == "RUNNING"
    assert "FAILED" not in nightly.connectors["broken"].tasks
    assert len(list((home / ".local/state/pyconnect/offsets").glob("*.json"))) == 1
    expected = {"pyconnect_restart_failed.prom", "pyconnect_start_over.prom"}
    assert {file.name for file in metrics.iterdir()} == expected


def test_an_unreachable_cluster_is_reported_on_stderr_and_by_the_exit_code(tmp_path: Path) -> None:
    """A failure of the nightly run is on stderr, which cron mails, and every step is tried."""
    ended = run_as_cron(tmp_path, "http://127.0.0.1:9")
    assert ended.returncode == 7
    assert "restart_failed ended with exit code 7" in ended.stderr
    assert "start_over ended with exit code 7" in ended.stderr


def test_the_crontabs_commands_are_commands(run: Run, connect: FakeConnect) -> None:
    """The parser accepts the commands of the crontab, and no line has a percent sign."""
    lines = [
        line
        for line in (EXAMPLES / "crontab").read_text().splitlines()
        if line and not line.startswith("#") and not line.startswith("PYCONNECT_")
    ]
    assert len(lines) == 3
    assert not any("%" in line for line in lines)
    words = [shlex.split(line)[5:] for line in lines]
    commands = [rest for program, *rest in words if program == "/opt/pyconnect/bin/pyconnect"]
    assert len(commands) == 2
    for command in commands:
        run(*command, "--jitter", "0s", "--help", code=0)
    restart = next(line for line in lines if "restart" in line)
    assert run(*shlex.split(restart)[6:], "--jitter", "0s").code == 0
    assert "FAILED" not in connect.connectors["broken"].tasks


def test_the_timer_s_service_runs_the_scripts_with_the_command_that_it_names() -> None:
    """Each script takes the command from PYCONNECT, which the service sets."""
    units = EXAMPLES.parent / "deployment" / "systemd"
    service = (units / "pyconnect-cron@.service").read_text()
    assert "ExecStart=/bin/sh /etc/pyconnect/cron/%i" in service
    assert "Environment=PYCONNECT=/opt/pyconnect/bin/pyconnect" in service
    scripts = [path for path in EXAMPLES.iterdir() if path.name != "crontab"]
    assert len(scripts) == 4
    assert all("${PYCONNECT:-/opt/pyconnect/bin/pyconnect}" in it.read_text() for it in scripts)
