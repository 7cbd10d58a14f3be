"""`pyconnect agent` and `tasks kill stacks` against the agent's own REST server."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.fakes.fake_admin import HERE, FakeAdmin
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import rest_config, serving

pytestmark = pytest.mark.wire


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
def agent(admin: FakeAdmin) -> Iterator[str]:
    """Serve an agent and yield its address."""
    with serving(rest_config(), FakeHerder(), admin) as server:
        yield f"http://{server.listeners[0].netloc}"


def test_status_shows_agents_and_processes(run: Run, agent: str) -> None:
    """`status` shows each agent's state, and with --tasks the process of each task."""
    lines = run("agent", "status", address=agent).out.splitlines()
    assert lines[0].split()[:5] == ["WORKER", "STATE", "LEADER", "GENERATION", "PHASE"]
    expected = [agent.removeprefix("http://"), "active", "yes", "7", "preparing"]
    assert lines[1].split()[:5] == expected
    assert json.loads(run("agent", "status", "-o", "json", address=agent).out)[0]["pid"] == 4711
    lines = run("agent", "status", "--tasks", "-o", "wide", address=agent).out.splitlines()
    running, killed = (line.split() for line in lines[1:])
    assert running[:2] == ["c/0", "RUNNING"]
    assert {"20M/512M", "12%/150%"} <= set(running)
    assert running[-5:-1] == ["5", "0", "of", "5"]
    assert killed[:2] == ["c/2", "FAILED"]
    assert killed[3] == "-"


def test_a_java_worker_is_exit_9_with_the_reason(run: Run) -> None:
    """A verb that only agents support is exit 9 for a Java worker, with the reason."""
    for arguments in (
        ("agent", "status"),
        ("agent", "drain", "--yes"),
        ("tasks", "stacks", "orders/0"),
        ("tasks", "kill", "orders/0", "--yes"),
    ):
        outcome = run(*arguments)
        assert outcome.code == 9, arguments
        assert "it is a Java worker" in outcome.err


def test_a_java_worker_among_agents_does_not_hide_them(run: Run, agent: str, url: str) -> None:
    """A Java worker among agents is exit 9, and the agents are still listed."""
    outcome = run("agent", "status", "--url", url, "--url", agent, code=9)
    assert agent.removeprefix("http://") in outcome.out
    assert f"{url} has no admin interface" in outcome.err


def test_drain_waits_and_is_safe_to_run_twice(run: Run, agent: str, admin: FakeAdmin) -> None:
    """A second drain does nothing, and undrain takes the drain back."""
    assert run("agent", "drain", "--yes", address=agent).code == 0
    again = run("agent", "drain", "--yes", address=agent)
    assert (again.code, admin.drains) == (0, [False])
    assert "is drained already" in again.err
    assert run("agent", "undrain", address=agent).code == 0
    assert admin.drains == [False, True]


def test_drains_are_planned_and_confirmed(run: Run, agent: str, admin: FakeAdmin) -> None:
    """A dry run of a drain changes nothing, and without a terminal it needs --yes."""
    planned = run("agent", "drain", "--dry-run", address=agent)
    assert (planned.code, planned.out) == (0, f"would drain {agent}\n")
    assert admin.drains == []
    assert run("agent", "drain", address=agent).code == 9
    assert admin.drains == []


def test_drain_that_takes_too_long_is_exit_124(run: Run, agent: str, admin: FakeAdmin) -> None:
    """A drain that takes longer than --timeout is exit 124, and continues on the worker."""

    def slowly(*, undrain: bool) -> None:
        admin.state = "draining"

    admin.drain = slowly  # type: ignore[method-assign]
    outcome = run("agent", "drain", "--yes", "--timeout", "3s", address=agent, code=124)
    assert "is draining, not drained" in outcome.err
    run("agent", "drain", "--yes", "--no-wait", address=agent, code=0)


def test_one_of_several_workers_has_to_be_named(run: Run, agent: str, url: str) -> None:
    """A drain with several addresses needs the name of a worker."""
    both = ("--url", url, "--url", agent)
    assert run("agent", "drain", "--yes", *both).code == 2
    assert run("agent", "drain", agent.removeprefix("http://"), "--yes", *both).code == 0


def test_kill_and_stacks(run: Run, agent: str, admin: FakeAdmin) -> None:
    """`kill` returns when the process has ended, and `stacks` prints its stacks."""
    killed = run("tasks", "kill", "c/0", "--yes", address=agent)
    assert (killed.code, killed.out) == (0, "c/0: killed\n")
    assert admin.looks == 2
    assert run("tasks", "kill", "c/0", "--force", "--yes", address=agent).code == 0
    assert admin.kills == [(HERE, False), (HERE, True)]
    assert run("tasks", "stacks", "c/0", address=agent).out == "Thread MainThread\n"
    document = json.loads(run("tasks", "stacks", "c/0", "-o", "json", address=agent).out)
    assert document == {"task": "c/0", "stacks": "Thread MainThread\n"}


def test_a_kill_that_takes_too_long_is_exit_124(run: Run, agent: str, admin: FakeAdmin) -> None:
    """A kill that takes longer than --timeout is exit 124 with --force as the hint."""
    admin.looks_until_end = 1_000
    outcome = run("tasks", "kill", "c/0", "--yes", "--timeout", "1s", address=agent)
    assert (outcome.code, "--force" in outcome.err) == (124, True)


def test_kills_are_planned_and_confirmed(run: Run, agent: str, admin: FakeAdmin) -> None:
    """The plan of a kill names the other tasks of the process, and a kill needs --yes."""
    kill = ("tasks", "kill", "c/0", "nobody/0", "--dry-run")
    assert "shared" not in run(*kill, address=agent).out
    admin.shares = True
    assert "its process is shared: may also end other/7" in run(*kill, address=agent).out
    assert "also ends other/7" in run(*kill, "--force", address=agent).out
    outcome = run("tasks", "kill", "c/0", address=agent, code=9)
    assert "pyconnect tasks kill c/0 --yes" in outcome.err
    assert admin.kills == []


def test_the_owner_of_a_task_is_asked(run: Run, agent: str, admin: FakeAdmin) -> None:
    """`kill` and `stacks` follow the address of the task's owner once."""
    owner = FakeAdmin()
    owner._check = lambda task_id: None  # type: ignore[method-assign]
    with serving(rest_config(), FakeHerder(), owner) as server:
        admin.owner_url = f"http://{server.listeners[0].netloc}/"
        assert run("tasks", "kill", "c/1", "--yes", address=agent).code == 0
        assert run("tasks", "stacks", "c/1", address=agent).code == 0
    assert [task.task for task, _ in owner.kills] == [1]
    admin.owner_url = f"{agent}/"
    assert run("tasks", "kill", "c/1", "--yes", address=agent).code == 6


def test_unknown_tasks_and_tasks_without_a_process_cannot_be_killed(run: Run, agent: str) -> None:
    """An unknown task is exit 3, and a task without a process is exit 6."""
    unknown = run("tasks", "kill", "c/9", "--yes", address=agent)
    assert (unknown.code, "Unknown task: c-9" in unknown.err) == (3, True)
    stopped = run("tasks", "kill", "c/2", "--yes", "--timeout", "60s", address=agent)
    assert (stopped.code, "has no process" in stopped.err) == (6, True)


def test_missing_credentials_are_exit_4(run: Run, tmp_path: Path) -> None:
    """Missing credentials are exit 4 with a hint at the agent's settings."""
    users = tmp_path / "users"
    users.write_text("ann=secret\n")
    password = tmp_path / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    config = rest_config(agent_admin_basic_auth_file=str(users))
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        address = f"http://{server.listeners[0].netloc}"
        refused = run("agent", "status", address=address)
        assert (refused.code, "agent.admin" in refused.err) == (4, True)
        known = ("--username", "ann", "--password-file", str(password))
        assert run("agent", "status", *known, address=address).code == 0


def test_describe_shows_attempts_and_the_next_time(run: Run, admin: FakeAdmin) -> None:
    """`describe` shows the restarts of each task and the time of the next one."""
    herder = FakeHerder()
    herder.configs["c"] = {"name": "c", "connector.class": "FileStreamSource", "tasks.max": "3"}
    herder.task_counts["c"] = 3
    admin.next_ms = int((time.time() + 3_000) * 1_000)
    with serving(rest_config(), herder, admin) as server:
        address = f"http://{server.listeners[0].netloc}"
        shown = run("connectors", "describe", "c", address=address).out
        document = json.loads(run("connectors", "describe", "c", "-o", "json", address=address).out)
    assert re.search(r"^ +0 .*0 of 5$", shown, re.MULTILINE)
    assert re.search(r"^ +2 .*1 of 5, next in (49|50)m\d\ds$", shown, re.MULTILINE)
    assert [entry["task"] for entry in document["restarts"]] == [0, 2]
    assert document["restarts"][1]["next_ms"] == admin.next_ms
