"""A named sandbox outlives the command that started it and leaves nothing after `down`.

Further tests have the jars that it fetches, and the broker that a test session shares.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pyconnect_sandbox import lifecycle, processes
from pyconnect_sandbox.broker import answers_metadata
from pyconnect_sandbox.errors import InvalidSandboxRequest, PortTaken, SandboxNotRunning
from pyconnect_sandbox.jars import KAFKA_VERSION, JarCache, find_runtime, known_checksums
from pyconnect_sandbox.lifecycle import SandboxStatus, UpOutcome, UpRequest
from pyconnect_sandbox.processes import ProcessIdentity
from pyconnect_sandbox.runtime import KafkaRuntime
from pyconnect_sandbox.server import LOOPBACK, is_free
from pyconnect_sandbox.state import SandboxDirectory
from tests.support.commands.processes import RecordedProgress, is_gone, python_environment
from tests.support.eventually import eventually

pytestmark = pytest.mark.kafka


class Sandboxes:
    """Sandboxes in a directory of the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.progress = RecordedProgress()

    def up(self, request: UpRequest | None = None) -> UpOutcome:
        return lifecycle.up(request or UpRequest(), self.progress, root=self.root)

    def down(self, name: str = "default", *, remove_data: bool = False) -> tuple[str, ...]:
        return lifecycle.down(name, remove_data=remove_data, root=self.root)

    def status(self, name: str = "default") -> SandboxStatus:
        return lifecycle.status(name, root=self.root)

    def identity(self, kind: str = "broker") -> ProcessIdentity:
        state = SandboxDirectory("default", self.root).load()
        assert state is not None
        record = state.server(kind)
        assert record is not None
        return record.identity


@pytest.fixture
def sandboxes(kafka_runtime: KafkaRuntime, tmp_path: Path) -> Iterator[Sandboxes]:
    made = Sandboxes(tmp_path / "sandboxes")
    yield made
    for known in lifecycle.all_statuses(root=made.root):
        made.down(known.name)


@pytest.mark.long(only=True)
def test_data_and_port_are_kept_between_down_and_up(sandboxes: Sandboxes, tmp_path: Path) -> None:
    """A sandbox keeps its topics, its address and its directory between `down` and `up`.

    After `down` with its data removed, the directory does not exist.
    """
    named = tmp_path / "records"
    first = sandboxes.up(UpRequest(data_directory=named))
    identity = sandboxes.identity()
    address = first.status.bootstrap_servers
    assert address is not None
    producer = Producer({"bootstrap.servers": address})
    producer.produce("kept", b"value")
    assert producer.flush(60) == 0

    assert sandboxes.down() == ("broker",)
    assert is_gone(identity)
    assert sandboxes.status().state == "stopped"
    assert sandboxes.down() == ()
    second = sandboxes.up().status
    assert (second.bootstrap_servers, second.data_directory) == (address, str(named))
    assert topics(address) >= {"kept"}
    sandboxes.down(remove_data=True)
    assert not named.exists()


def topics(address: str) -> set[str]:
    from confluent_kafka.admin import AdminClient

    return set(AdminClient({"bootstrap.servers": address}).list_topics(timeout=400).topics)


def test_a_directory_with_other_files_is_neither_used_nor_removed(
    sandboxes: Sandboxes, tmp_path: Path
) -> None:
    """A data directory with other files is refused, and the files stay."""
    somebodys = tmp_path / "home"
    somebodys.mkdir()
    (somebodys / "server.properties").write_text("mine")
    with pytest.raises(InvalidSandboxRequest, match="contains files that are not from a sandbox"):
        sandboxes.up(UpRequest(data_directory=somebodys))
    assert (somebodys / "server.properties").read_text() == "mine"


def test_a_sandbox_that_crashed_or_froze_is_seen(sandboxes: Sandboxes) -> None:
    """`up` starts another broker after a crash; `down` ends a frozen one."""
    first = sandboxes.up()
    processes.signal_group(sandboxes.identity(), signal.SIGKILL)
    eventually(lambda: sandboxes.status().state == "crashed")
    # The Java process may end a moment after the process that holds it.
    port = int(str(first.status.bootstrap_servers).rpartition(":")[2])
    eventually(lambda: is_free(port))

    second = sandboxes.up()
    assert second.started == ("broker",)
    assert second.status.bootstrap_servers == first.status.bootstrap_servers

    identity = sandboxes.identity()
    processes.signal_group(identity, signal.SIGSTOP)
    # A thread that was about to answer may still do so.
    eventually(lambda: sandboxes.status().state == "unresponsive")
    assert sandboxes.down() == ("broker",)
    assert is_gone(identity)


@pytest.mark.long(only=True)
def test_a_second_up_adds_what_is_missing(sandboxes: Sandboxes) -> None:
    """The second `up` keeps the broker and refuses options that the running one does not have.

    `down` ends workers while the broker still serves them.
    """
    first = sandboxes.up(UpRequest(sasl_users={"alice": "one"}))
    assert first.started == ("broker",)
    for request in (UpRequest(sasl_users={"alice": "one"}), UpRequest()):
        again = sandboxes.up(request)
        assert (again.started, again.status.state) == ((), "running")
        assert again.status.bootstrap_servers == first.status.bootstrap_servers
        assert again.status.servers[0].pid == first.status.servers[0].pid
    with pytest.raises(InvalidSandboxRequest, match="no ACL authorizer"):
        sandboxes.up(UpRequest(acl=True))
    with pytest.raises(InvalidSandboxRequest, match="it has other SASL users or passwords"):
        sandboxes.up(UpRequest(sasl_users={"alice": "two"}))
    with pytest.raises(InvalidSandboxRequest, match="listens on port") as error:
        sandboxes.up(UpRequest(port=1))
    assert error.value.exit_code == 2
    assert error.value.hint == "stop it first: pyconnect sandbox down --name default"
    outcome = sandboxes.up(UpRequest(java_worker=True))
    assert outcome.started == ("java-worker",)
    assert {server.kind: server.state for server in outcome.status.servers} == {
        "broker": "running",
        "java-worker": "running",
    }
    assert sandboxes.down() == ("java-worker", "broker")


@pytest.mark.long(only=True)
def test_sandboxes_of_different_names_do_not_meet(sandboxes: Sandboxes) -> None:
    """Each name has its own broker; removing one sandbox leaves the other."""
    one = sandboxes.up(UpRequest(name="one"))
    two = sandboxes.up(UpRequest(name="two"))
    assert one.status.bootstrap_servers != two.status.bootstrap_servers
    assert sandboxes.down("one", remove_data=True) == ("broker",)
    assert not Path(one.status.data_directory).exists()
    with pytest.raises(SandboxNotRunning, match="no sandbox one"):
        sandboxes.status("one")
    assert sandboxes.status("two").state == "running"


def test_a_port_in_use_fails_and_leaves_nothing(sandboxes: Sandboxes) -> None:
    """A port in use is refused; nothing runs and nothing is recorded."""
    with socket.create_server((LOOPBACK, 0)) as occupied, pytest.raises(PortTaken):
        sandboxes.up(UpRequest(port=occupied.getsockname()[1]))
    with pytest.raises(SandboxNotRunning):
        sandboxes.status()


_UP = """
import sys
from pathlib import Path
from pyconnect_sandbox.lifecycle import UpRequest, up
def report(message, *, passing=False):
    print(message, flush=True)
up(UpRequest(), report, root=Path(sys.argv[1]))
"""


def start_up(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _UP, str(root)],
        env=python_environment(os.environ),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_an_up_that_is_killed_half_way_leaves_no_broker(sandboxes: Sandboxes) -> None:
    """A broker that was still starting ends with the killed command."""
    broker_directory = sandboxes.root / "default" / "broker"
    with start_up(sandboxes.root) as command:
        eventually((broker_directory / "broker.out").exists)
        command.kill()
    eventually(
        lambda: not commands_mentioning(str(broker_directory)),
        describe=lambda: commands_mentioning(str(broker_directory)),
    )
    assert SandboxDirectory("default", sandboxes.root).load() is None


def commands_mentioning(text: str) -> list[str]:
    lines = subprocess.run(
        ["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [line for line in lines if text in line]


@pytest.mark.long(only=True)
def test_two_ups_at_once_start_one_broker(sandboxes: Sandboxes) -> None:
    """Two commands at once start one broker, which outlives both."""
    with start_up(sandboxes.root) as one, start_up(sandboxes.root) as two:
        outputs = [command.communicate(timeout=400)[0] for command in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0)
    assert sorted(output.count("starting the broker") for output in outputs) == [0, 1]
    address = sandboxes.status().bootstrap_servers
    assert address is not None
    assert answers_metadata(address, timeout_s=150)


@pytest.mark.long(only=True)
@pytest.mark.timeout(850)
def test_an_empty_cache_is_filled_with_the_known_jars(tmp_path: Path) -> None:
    """An empty cache is filled with all jars of known checksums, and progress is reported."""
    cache = JarCache(KAFKA_VERSION, known_checksums(), tmp_path)
    progress = RecordedProgress()
    environment = {key: value for key, value in os.environ.items() if key != "KAFKA_HOME"}

    runtime = find_runtime(environment=environment, cache=cache, progress=progress)

    assert {jar.name for jar in runtime.libs.iterdir()} >= set(known_checksums())
    assert cache.is_complete(check_contents=True)
    (message,) = progress.messages
    assert message.startswith(f"fetching Apache Kafka {KAFKA_VERSION} (54 MB), once")


_SESSION = """
import pytest

pytestmark = pytest.mark.kafka

@pytest.mark.parametrize("number", range(4))
def test_address(kafka_broker, number, record_property, worker_id):
    with open({addresses!r}, "a") as file:
        file.write(worker_id + " " + kafka_broker.bootstrap_servers + "\\n")
"""


def test_the_processes_of_a_session_share_one_broker_and_leave_none(tmp_path: Path) -> None:
    """All pytest-xdist workers get the same broker, which ends with the session."""
    root = Path(__file__).resolve().parents[2]
    addresses = tmp_path / "addresses"
    module = tmp_path / "test_session.py"
    module.write_text(_SESSION.format(addresses=str(addresses)))
    session = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-n", "2", "--dist", "load", "-q"),
            *("-c", str(root / "pyproject.toml"), "--rootdir", str(root)),
            *("-p", "tests.conftest", f"--basetemp={tmp_path / 'base'}", str(module)),
        ],
        cwd=root,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert session.returncode == 0, session.stdout + session.stderr
    rows = [line.split() for line in addresses.read_text().splitlines()]
    assert {worker for worker, _ in rows} == {"gw0", "gw1"}
    (address,) = {address for _, address in rows}
    port = int(address.rpartition(":")[2])
    eventually(lambda: is_free(port), describe="the end of the session's broker")
