"""Servers leave no process behind, however they or their starters end."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyconnect_sandbox import processes
from pyconnect_sandbox.connect_worker import rest_status
from pyconnect_sandbox.errors import ServerExited, ServerNotReady
from pyconnect_sandbox.processes import ProcessIdentity
from pyconnect_sandbox.server import FIRST_PORT, LAST_PORT, Server, free_port
from tests.support.commands.processes import is_gone, python_environment
from tests.support.eventually import eventually
from tests.support.servers.kafka import free_ports

pytestmark = pytest.mark.wire

HTTP_SERVER = """
    import sys
    from http.server import BaseHTTPRequestHandler, HTTPServer
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
WITH_A_STUBBORN_CHILD = """
    import signal, subprocess, sys
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
"""


class ScriptServer(Server):
    """A Python script that gets a port and answers HTTP there."""

    name = "script"

    def __init__(
        self, directory: Path, script: str, *, stop_timeout_s: float = 5, tethered: bool = True
    ) -> None:
        super().__init__(
            directory=directory,
            start_timeout_s=20,
            stop_timeout_s=stop_timeout_s,
            hold_file=directory / "hold" if tethered else None,
        )
        self.port = free_port()
        self._script = textwrap.dedent(script)

    def _prepare(self) -> Sequence[str]:
        return [sys.executable, "-c", self._script, str(self.port)]

    def _answers(self, timeout_s: float) -> bool:
        return rest_status(self.port, "/", timeout_s) == 200


def stubborn(directory: Path, stop_timeout_s: float) -> Server:
    """Start a server that ignores SIGTERM, with a child."""
    script = textwrap.dedent(WITH_A_STUBBORN_CHILD) + textwrap.dedent(HTTP_SERVER)
    return ScriptServer(directory, script, stop_timeout_s=stop_timeout_s).start()


def test_a_started_server_answers_and_a_stopped_one_is_gone(tmp_path: Path) -> None:
    """`start` returns once the server answers, and `stop` once no process of it is alive."""
    with ScriptServer(tmp_path, HTTP_SERVER) as server:
        identity = server.identity
        assert server.is_running
        assert server.start().identity == identity
        assert server.resident_bytes() > 1024 * 1024
    assert is_gone(identity)
    assert not server.is_running


def test_a_server_that_ignores_the_signal_is_killed_with_its_children(tmp_path: Path) -> None:
    """After the grace the whole group is killed, and `stop` returns False."""
    server = stubborn(tmp_path, 0.3)
    identity = server.identity
    assert len(processes.group_members(identity)) == 2
    assert not server.stop()
    assert is_gone(identity)


def test_a_killed_server_is_gone_with_its_children_and_starts_again(tmp_path: Path) -> None:
    """SIGKILL reaches the whole group; the same object starts the server again."""
    server = stubborn(tmp_path, 0.1)
    identity = server.identity
    server.kill()
    assert is_gone(identity)
    with server:
        assert server.identity != identity


def test_a_child_that_outlived_its_server_is_ended_before_the_next_start(tmp_path: Path) -> None:
    """The remaining processes of a crashed server end before the next server starts."""
    server = stubborn(tmp_path, 0.1)
    identity = server.identity
    os.kill(identity.pid, signal.SIGKILL)
    assert server.wait_until_exited(10) == -signal.SIGKILL
    assert not is_gone(identity)
    with server:
        assert is_gone(identity)


def test_a_suspended_server_answers_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT reach the whole group."""
    with ScriptServer(tmp_path, HTTP_SERVER) as server:
        server.suspend()
        assert rest_status(server.port, "/", 0.3) is None
        server.resume()
        assert rest_status(server.port, "/", 10) == 200


def test_a_server_that_ends_early_shows_its_last_words(tmp_path: Path) -> None:
    """The error has the exit code and the end of the output."""
    server = ScriptServer(tmp_path, "import sys; sys.exit('no configuration')")
    with pytest.raises(ServerExited, match=r"exit code 1 before .*\n.*no configuration"):
        server.start()


def test_a_server_that_never_answers_is_stopped(tmp_path: Path) -> None:
    """After the time limit the error reports it, and no process of the server is alive."""
    server = ScriptServer(tmp_path, "import time; time.sleep(600)")
    server.launch()
    identity = server.identity
    with pytest.raises(ServerNotReady, match="script did not answer within") as error:
        server.wait_until_ready(0.3)
    assert error.value.exit_code == 124
    assert is_gone(identity)


def test_an_interrupt_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a server starts ends that server."""
    server = ScriptServer(tmp_path, "import time; time.sleep(600)")
    seen: list[ProcessIdentity] = []

    def interrupt(timeout_s: float) -> bool:
        seen.append(server.identity)
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "_answers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        server.start()
    assert is_gone(seen[0])


def test_a_disowned_server_lives_as_long_as_its_file_is_held(tmp_path: Path) -> None:
    """The server ends when the last holder releases the file."""
    server = ScriptServer(tmp_path, HTTP_SERVER).start()
    identity = server.identity
    hold = processes.Hold(tmp_path / "hold")
    server.disown()
    assert rest_status(server.port, "/", 5) == 200
    assert not is_gone(identity)
    hold.release()
    eventually(lambda: is_gone(identity), describe="the end of the server")


def test_a_detached_server_outlives_every_hold(tmp_path: Path) -> None:
    """Releasing the file does not end a detached server."""
    server = ScriptServer(tmp_path, HTTP_SERVER).start()
    identity = server.identity
    server.detach()
    try:
        assert not is_gone(identity)
        assert rest_status(server.port, "/", 5) == 200
    finally:
        assert processes.end_group(identity, 5)


_OWNER = """
import sys
from pathlib import Path
from tests.sandbox.test_server import HTTP_SERVER, ScriptServer
server = ScriptServer(Path(sys.argv[1]), HTTP_SERVER).start()
print(server.identity.pid, server.identity.start_mark, flush=True)
sys.stdin.read()
"""


def test_a_killed_owner_leaves_no_server_even_a_suspended_one(tmp_path: Path) -> None:
    """The tether kills the group when the process that started it was killed."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path)],
        env=python_environment(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid, start_mark = owner.stdout.readline().strip().split(maxsplit=1)
        identity = ProcessIdentity(pid=int(pid), start_mark=start_mark)
        processes.signal_group(identity, signal.SIGSTOP)
        owner.send_signal(signal.SIGKILL)
    eventually(lambda: is_gone(identity), describe="the end of the server")


_DYING_OWNER = """
import os, sys
from pathlib import Path
from tests.sandbox.test_server import ScriptServer, processes
def spawn(hold_file, identity):
    print(identity.pid, identity.start_mark, flush=True)
    os._exit(0)
processes.spawn_tether = spawn
ScriptServer(Path(sys.argv[1]), "open('ran', 'w').close(); input()").launch()
"""


def test_an_owner_that_dies_before_the_tether_starts_runs_no_server(tmp_path: Path) -> None:
    """The server's shell waits for its tether, so it never runs alone."""
    owner = subprocess.run(
        [sys.executable, "-c", _DYING_OWNER, str(tmp_path)],
        env=python_environment(os.environ),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    pid, start_mark = owner.stdout.strip().split(maxsplit=1)
    identity = ProcessIdentity(pid=int(pid), start_mark=start_mark)
    eventually(lambda: is_gone(identity), describe="the end of the process")
    assert not (tmp_path / "ran").exists()


def test_a_recycled_pid_is_not_taken_for_the_server() -> None:
    """A process with another start mark gets no signal; a zombie counts as ended."""
    me = processes.identify(os.getpid())
    assert me is not None
    assert processes.is_running(me)
    other = ProcessIdentity(pid=me.pid, start_mark="earlier")
    assert not processes.is_running(other)
    assert processes.group_members(other) == ()
    assert processes.end_group(other, 0)
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    ) as child:
        identity = processes.identify(child.pid)
        assert identity is not None
        child.kill()
        eventually(lambda: not processes.is_running(identity))
        assert is_gone(identity)


def test_both_sources_of_facts_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc and ps report the same about a running group."""
    with ScriptServer(tmp_path, HTTP_SERVER) as server:
        members = processes.group_members(server.identity)
        monkeypatch.setattr(processes, "_has_proc", lambda: False)
        identity = processes.identify(server.pid)
        assert identity is not None
        assert processes.is_running(identity)
        assert processes.group_members(identity) == members
        assert processes.resident_bytes(server.pid) > 1024 * 1024
        monkeypatch.undo()


def test_free_ports_differ_and_are_below_the_ephemeral_range() -> None:
    """No connection and no other process gets a chosen port until its server listens."""
    chosen = free_ports(20)
    assert len(set(chosen)) == 20
    assert all(FIRST_PORT <= port <= LAST_PORT < 32768 for port in chosen)
    first = free_port()
    script = f"""
        from pyconnect_sandbox import server as ports
        ports.FIRST_PORT = ports.LAST_PORT = {first}
        try:
            print(ports.free_port())
        except ports.PortTaken:
            print("taken")
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=python_environment(os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "taken\n"
