"""Connectors and tasks that share a Java process, without a worker and in an agent."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pyconnect_agent.java_processes.frames import FrameKind
from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_agent.java_processes.launch import JavaOptions
from pyconnect_agent.java_processes.link import JavaLink
from pyconnect_agent.java_processes.shared import SharedJavaProcess
from tests.java.test_java_processes import ANSWERS, jar, job, poll
from tests.java.test_java_tasks import World, agent, world
from tests.support.eventually import eventually
from tests.support.names import unique_name

__all__ = ["agent", "jar", "world"]

pytestmark = pytest.mark.java

QUICK = ("-Dio.pyconnect.linger.ms=500", "-Dio.pyconnect.stop.ms=1000")


@pytest.fixture
def options(tmp_path: Path) -> JavaOptions:
    """Options of processes that end soon and whose directories belong to the test."""
    own = (*QUICK, f"-Djava.io.tmpdir={tmp_path}")
    return JavaOptions(heap="96m", quick=True, options=own)


Connect = Callable[..., tuple[JavaLink, SharedJavaProcess]]


@pytest.fixture
def connected() -> Iterator[Connect]:
    """Connect to the process of a group; close what is left at the end of the test."""
    made = []

    def connect(options: JavaOptions, group: str = "g") -> tuple[JavaLink, SharedJavaProcess]:
        process = SharedJavaProcess(find_installation({}), options, group)
        made.append(JavaLink(process, ANSWERS))
        return made[-1], process

    yield connect
    for link in made:
        link.close()


def numbers(link: JavaLink, jar: str, **config: str) -> None:
    link.begin({**job(jar, "NumberSource"), "owner": unique_name("task")})
    link.call("start", config={"topic": "t", "limit": "5", **config})
    assert list(poll(link).numbers) == [0, 1, 2, 3, 4]


def test_a_group_has_one_process_and_each_member_its_records(
    connected: Connect, jar: str, options: JavaOptions, tmp_path: Path
) -> None:
    """A member's end does not affect the other ones; the process ends after the last one."""
    first, process = connected(options)
    second, same = connected(options)
    other, another = connected(options, "other")
    assert (same.pid == process.pid, another.pid != process.pid) == (True, True)
    for link in (first, second, other):
        numbers(link, jar)
    assert 'Java thread "task"' in first.stacks()
    assert first.stacks().count('Java thread "task"') == 1
    first.call("stop")
    first.close()
    numbers(third := connected(options)[0], jar)
    for link in (second, third, other):
        link.call("stop")
        link.close()
    for ended in (process, another):
        eventually(lambda pid=ended.pid: not psutil.pid_exists(pid))  # type: ignore[misc]
    assert not list(tmp_path.glob("*/*/address"))


def test_options_and_jars_tell_processes_apart(
    connected: Connect, jar: str, options: JavaOptions
) -> None:
    """A member with another heap size gets a process of its own."""
    links = [connected(options), connected(replace(options, heap="64m"))]
    assert links[0][1].pid != links[1][1].pid


def test_what_a_killed_member_began_is_stopped(
    connected: Connect, jar: str, options: JavaOptions, tmp_path: Path
) -> None:
    """The shared process stops a killed member's task, as its Python process cannot ask for it."""
    stays, _ = connected(options)
    numbers(stays, jar)
    gone, process = connected(options)
    notes = tmp_path / "notes"
    numbers(gone, jar, notes=str(notes))
    process.socket.shutdown(2)
    eventually(lambda: notes.read_text().splitlines()[-1] == "stop")


def test_a_member_that_cannot_be_stopped_ends_all(
    connected: Connect, jar: str, options: JavaOptions
) -> None:
    """A task that cannot be stopped ends the shared process, and the others report the reason."""
    stays, _ = connected(options)
    numbers(stays, jar)
    gone, process = connected(options)
    gone.begin({**job(jar, "NumberSource"), "owner": "c"})
    gone.call("start", config={"topic": "t", "limit": "50", "deed": "hang"})
    for _ in range(2):
        gone.tell(FrameKind.CREDIT)
    eventually(lambda: "NumberSource$Numbers.hang" in gone.stacks())
    process.socket.shutdown(2)
    assert 'The thread "task" did not end within 1000 ms' in str(stays.ended())


def test_a_killed_process_is_the_end_of_all_and_the_next_one_is_new(
    connected: Connect, jar: str, options: JavaOptions
) -> None:
    """A frozen process delays the start of the next one only for a limited time."""
    first, process = connected(options)
    numbers(first, jar)
    os.kill(process.pid, signal.SIGKILL)
    assert f"(pid {process.pid}) was killed" in str(first.ended())
    again, started = connected(options)
    assert started.pid != process.pid
    numbers(again, jar)


def test_only_who_knows_the_token_is_served(
    connected: Connect, options: JavaOptions, tmp_path: Path
) -> None:
    """Only this user can read the file with the token that a client must send."""
    connected(options)
    (address,) = tmp_path.glob("*/*/address")
    assert address.parent.stat().st_mode & 0o077 == 0
    port = int(address.read_text().split()[0])
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(b"x" * 16)
        assert stranger.recv(1) == b""


@pytest.mark.parametrize("isolation", ["connector", "location"])
def test_a_source_in_a_shared_process_on_an_agent(world: World, isolation: str) -> None:
    """A source in a shared process has the same records, and its output in its own log."""
    world.source(limit="10", deed="print", agent_java_isolation=isolation)
    assert world.await_values(10) == [f"number {number}" for number in range(10)]
    world.await_note("key 9 at 10")  # behind the end of a transaction
    lines = [line for line in world.agent.log().splitlines() if world.name in line]
    (printed,) = [line for line in lines if "printed by the task" in line]
    assert f"task={world.name}-0" in printed


def test_what_a_killed_task_began_is_stopped(world: World) -> None:
    """The shared Java process goes on without the killed Python process, and stops its task."""
    world.source(limit="10", agent_java_isolation="location")
    world.await_values(10)
    (task,) = (
        child
        for child in world.agent.get("/agent/tasks")
        if child["task"] is not None and world.name in str(child)
    )
    assert Path(f"/proc/{task['shared_java_pid']}/exe").resolve().name == "java"
    assert task["shared_java_rss_bytes"] > 1_000_000
    os.kill(int(task["pid"]), signal.SIGKILL)
    world.await_note("stop")
