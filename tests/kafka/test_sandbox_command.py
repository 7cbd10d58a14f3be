"""The commands `pyconnect sandbox`: texts, JSON, exit codes."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_sandbox.broker import answers_metadata
from pyconnect_sandbox.jars import KAFKA_VERSION
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.rest_client import call_url
from tests.support.cases import cases
from tests.support.commands.processes import run_python
from tests.support.plugins.java_jars import test_connectors as compiled_connectors

pytestmark = pytest.mark.kafka


class CommandLine:
    """Runs `pyconnect` with a state directory of its own."""

    def __init__(self, state: Path) -> None:
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("PYCONNECT_")},
            "XDG_STATE_HOME": str(state),
            "XDG_CONFIG_HOME": str(state / "config"),
        }

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_python(["-m", "pyconnect_cli", *arguments], self.environment)


@pytest.fixture
def pyconnect(kafka_runtime: KafkaRuntime, tmp_path: Path) -> Iterator[CommandLine]:
    command_line = CommandLine(tmp_path)
    yield command_line
    command_line("sandbox", "down", "--all")


def test_a_sandbox_from_up_to_down(pyconnect: CommandLine) -> None:
    """`up` starts a broker, a second `up` says that it runs, `status` and `logs` show it."""
    up = pyconnect("sandbox", "up", "-o", "json")
    assert up.returncode == 0, up.stderr
    document = json.loads(up.stdout)
    assert document["started"] == ["broker"]
    assert answers_metadata(document["bootstrap_servers"], timeout_s=150)

    again = pyconnect("sandbox", "up")
    assert again.returncode == 0
    assert "sandbox default: was running already" in again.stdout
    assert document["bootstrap_servers"] in again.stdout

    status = pyconnect("sandbox", "status", "--name", "default")
    assert status.returncode == 0
    assert "running" in status.stdout
    assert document["bootstrap_servers"] in status.stdout

    logs = pyconnect("sandbox", "logs", "--lines", "1000")
    assert "Kafka Server started" in logs.stdout

    down = pyconnect("sandbox", "down")
    assert down.stdout == "sandbox default: stopped broker\n"
    assert not answers_metadata(document["bootstrap_servers"], timeout_s=0.5)
    stopped = pyconnect("sandbox", "status", "--name", "default")
    assert stopped.returncode == 1
    assert "stopped" in stopped.stdout
    assert pyconnect("sandbox", "down").stdout == "sandbox default: was not running\n"


@pytest.mark.long(only=True)
@pytest.mark.timeout(850)
def test_another_release_is_downloaded_and_run(pyconnect: CommandLine) -> None:
    """Broker and Java worker are of the release of --kafka; a running sandbox keeps its release."""
    up = pyconnect("sandbox", "up", "--kafka", "4.4.0", "--java-worker", "-o", "json")
    assert up.returncode == 0, up.stderr
    servers = {server["kind"]: server for server in json.loads(up.stdout)["servers"]}
    assert call_url(servers["java-worker"]["addresses"]["rest"], "GET", "/").json()["version"] == (
        "4.4.0"
    )
    other = pyconnect("sandbox", "up", "--kafka", KAFKA_VERSION)
    assert other.returncode == 2
    assert "its Kafka is that of" in other.stderr


@cases(
    "options, refusal",
    (("--kafka", "4.9.0"), "--kafka is one of 4.3.1, 4.4.0"),
    (("--kafka", "4.4.0", "--kafka-dir", "/nowhere"), "exclude each other"),
)
def test_releases_that_cannot_be_had_are_refused(
    pyconnect: CommandLine, options: tuple[str, ...], refusal: str
) -> None:
    """An unknown release is refused before anything is downloaded or started."""
    up = pyconnect("sandbox", "up", *options)
    assert up.returncode == 2
    assert refusal in up.stderr


@pytest.mark.long(only=True)
def test_workers_have_the_plugins_of_a_path(
    pyconnect: CommandLine, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """Workers keep their plugin path after a stop; a running worker refuses another path."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    compiled_connectors(kafka_runtime, plugins)

    def up(path: Path | None) -> subprocess.CompletedProcess[str]:
        given = () if path is None else ("--plugin-path", str(path))
        return pyconnect("sandbox", "up", "--agent", "--use", *given)

    missing = up(tmp_path / "missing")
    assert missing.returncode == 2
    assert f"{tmp_path / 'missing'} of the plugin path does not exist" in missing.stderr
    started = up(plugins)
    assert started.returncode == 0, started.stderr
    assert "io.pyconnect.tests.NumberSource" in pyconnect("plugins", "list", "-o", "json").stdout
    other = up(tmp_path)
    assert other.returncode == 2
    assert f"The agent of sandbox default runs with the plugin path {plugins}" in other.stderr
    assert pyconnect("sandbox", "down").returncode == 0
    assert up(None).returncode == 0
    assert "io.pyconnect.tests.NumberSource" in pyconnect("plugins", "list", "-o", "json").stdout
    alone = pyconnect("sandbox", "up", "--plugin-path", str(plugins))
    assert alone.returncode == 2
    assert "--plugin-path needs a worker" in alone.stderr


def test_an_unknown_sandbox_is_not_found(pyconnect: CommandLine) -> None:
    """`status`, `logs` and `down` exit with 3 for a name that was never up."""
    for verb in ("status", "logs", "down"):
        answer = pyconnect("sandbox", verb, "--name", "nobody")
        assert answer.returncode == 3
        assert "error: There is no sandbox nobody" in answer.stderr


def test_a_missing_java_is_answered_with_an_install_command(
    pyconnect: CommandLine, tmp_path: Path
) -> None:
    """Without Java the command says how to install it and exits 9."""
    pyconnect.environment |= {"PATH": str(tmp_path), "JAVA_HOME": ""}
    answer = pyconnect("sandbox", "up")
    assert answer.returncode == 9
    assert "error: No Java found" in answer.stderr
    assert "hint: install it" in answer.stderr


def test_a_user_without_a_password_is_a_usage_error(pyconnect: CommandLine) -> None:
    """--sasl needs a user and a password."""
    answer = pyconnect("sandbox", "up", "--sasl", "alice")
    assert answer.returncode == 2
    assert "USER:PASSWORD" in answer.stderr


@pytest.mark.long(only=True)
def test_data_is_removed_only_after_a_yes(pyconnect: CommandLine) -> None:
    """Without a terminal and without --yes nothing is deleted and the exit code is 9."""
    up = json.loads(pyconnect("sandbox", "up", "-o", "json").stdout)
    data = Path(up["data_directory"])
    refused = pyconnect("sandbox", "down", "--remove-data")
    assert refused.returncode == 9
    assert data.exists()
    assert pyconnect("sandbox", "down", "--remove-data", "--yes").returncode == 0
    assert not data.exists()


@pytest.mark.long(only=True)
def test_using_a_sandbox_makes_it_the_current_context(pyconnect: CommandLine) -> None:
    """With --use, commands without an address reach the sandbox's agent and its broker."""
    assert pyconnect("sandbox", "up", "--use").returncode == 2
    up = pyconnect("sandbox", "up", "--agent", "--use")
    assert up.returncode == 0, up.stderr
    assert pyconnect("context", "current").stdout == "sandbox\n"
    assert pyconnect("connectors", "list").returncode == 0
    assert pyconnect("transactions", "list").returncode == 0
    assert pyconnect("sandbox", "down").returncode == 0
    for command in (("connectors", "list"), ("topics", "read", "lines")):
        stopped = pyconnect(*command)
        assert stopped.returncode == 7
        assert "hint: start the sandbox: pyconnect sandbox up --agent --use" in stopped.stderr
    assert pyconnect("sandbox", "down", "--remove-data", "--yes").returncode == 0
    assert pyconnect("context", "list", "-o", "name").stdout == ""
    assert pyconnect("context", "current").returncode == 3


@pytest.mark.long(only=True)
def test_a_demo_takes_a_file_through_a_topic_each_time(pyconnect: CommandLine) -> None:
    """The demo starts what does not run; a second run continues with the same connectors."""
    for lines in (1000, 2000):
        shown = pyconnect("sandbox", "demo", "--name", "shown", "-o", "json")
        assert shown.returncode == 0, shown.stderr
        document = json.loads(shown.stdout)
        assert document["lines"] == lines
        assert Path(document["written"]).read_bytes() == Path(document["read"]).read_bytes()
    use = ("--context", document["context"])
    listed = pyconnect(*use, "connectors", "list", "-o", "name")
    assert sorted(listed.stdout.split()) == sorted(document["connectors"])
    shown = pyconnect(*use, "topics", "read", document["topic"], "--max", "1", "-o", "json")
    assert json.loads(shown.stdout)[0]["value"] == "line 2000"
    assert pyconnect("sandbox", "down", "--name", "shown", "--remove-data", "--yes").returncode == 0
    assert not Path(document["read"]).exists()
