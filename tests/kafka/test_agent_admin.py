"""The admin interface of real agents."""

import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.agents.agent import Agent, Agents, emptied, source_config
from tests.support.agents.rest_client import Answer, call_url
from tests.support.commands.processes import run_python
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.bad_plugins import BAD_SOURCE

pytestmark = pytest.mark.kafka

SESSION_TIMEOUT_MS = 6_000
"""The lowest session timeout that a broker allows."""
QUICK = {
    "task.shutdown.graceful.timeout.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
    "session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "heartbeat.interval.ms": "1000",
}


@pytest.fixture(scope="module")
def shared_agent(module_agents: Agents) -> Agent:
    return module_agents.start(properties=QUICK)


@pytest.fixture
def agent(shared_agent: Agent) -> Agent:
    """An agent that is alone in its group, without connectors."""
    return emptied(shared_agent)


@pytest.fixture(scope="module")
def shared_trio(module_agents: Agents) -> list[Agent]:
    group_id = unique_name("agents")
    return [module_agents.start(properties=QUICK, group_id=group_id) for _ in range(3)]


@pytest.fixture
def trio(shared_trio: list[Agent]) -> list[Agent]:
    """Three agents of one group, without connectors."""
    emptied(*shared_trio)
    return shared_trio


def about(agent: Agent) -> Any:
    return agent.get("/agent")


def wait_for_state(agent: Agent, state: str) -> None:
    eventually(lambda: about(agent)["state"] == state, describe=lambda: about(agent))


def owners(agent: Agent, name: str) -> list[str]:
    return [task["worker_id"] for task in agent.get(f"/connectors/{name}/status")["tasks"]]


def test_an_agent_reports_about_itself(agent: Agent) -> None:
    """The answer has process, group, leadership, and the configuration file with its checksum."""
    told = about(agent)
    file = Path(told["config_file"])
    assert told["pid"] == agent.process.pid
    assert told["worker_id"] == agent.url.removeprefix("http://")
    assert told["url"] == f"{agent.url}/"
    assert (told["mode"], told["state"], told["leader"]) == ("distributed", "active", True)
    assert told["protocol"] == "sessioned"
    assert told["generation"] >= 1
    assert told["exactly_once_source_support"] == "disabled"
    assert told["restart"] == "self"
    assert told["config_sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert not told["config_outdated"]
    file.write_text(file.read_text() + "\n# changed\n")
    assert about(agent)["config_outdated"]


def test_the_configuration_in_force_hides_secrets(agents: Agents) -> None:
    """The admin interface hides passwords and shows references to providers."""
    properties = {"ssl.key.password": "tiger", "producer.sasl.jaas.config": "x password=tiger"}
    agent = agents.start(properties=properties)
    answer = agent.call("GET", "/agent/config")
    values = {value["name"]: value for value in answer.json()}
    assert "tiger" not in answer.text
    assert values["ssl.key.password"]["value"] == "[hidden]"
    assert values["group.id"]["source"] == "file"
    assert values["session.timeout.ms"] == {
        "name": "session.timeout.ms",
        "value": "10000",
        "source": "default",
    }


def test_a_hung_task_is_seen_killed_and_restarted(agent: Agent) -> None:
    """Stacks show where the task hangs; it fails with the reason and runs again after a restart."""
    agent.create("bad", {"connector.class": BAD_SOURCE, "poll": "hang"})
    agent.wait_for_states("bad", "RUNNING", "RUNNING")
    path = "/agent/tasks/bad/0/stacks"
    # The task is RUNNING before its first poll.
    stacks = eventually(
        lambda: found if "in misbehave" in (found := agent.call("GET", path)).text else None
    )
    assert stacks is not None
    assert stacks.headers["content-type"].startswith("text/plain")
    connector, task = agent.get("/agent/tasks")
    assert (connector["connector"], connector["task"], task["task"]) == ("bad", None, 0)
    assert task["pid"] in [child.pid for child in agent.children()]
    assert agent.call("POST", "/agent/tasks/bad/0/kill", {"force": False}).status == 202
    agent.wait_for_states("bad", "RUNNING", "FAILED")
    trace = agent.get("/connectors/bad/status")["tasks"][0]["trace"]
    assert "killed through the admin interface" in trace
    killed = agent.get("/agent/tasks")[1]
    assert (killed["state"], killed["pid"]) == ("FAILED", None)
    assert agent.call("POST", "/agent/tasks/bad/0/kill").status == 409
    assert agent.call("POST", "/connectors/bad/tasks/0/restart").status == 204
    agent.wait_for_states("bad", "RUNNING", "RUNNING")
    assert agent.get("/agent/tasks")[1]["pid"] != task["pid"]


def test_a_drained_agent_gives_its_work_away_and_takes_it_back(
    trio: list[Agent], tmp_path: Path
) -> None:
    """The other agents run everything meanwhile, and the drained one still answers reads."""
    one, two, _ = trio
    names = [unique_name("source") for _ in range(3)]
    for name in names:
        one.create(name, source_config(tmp_path / "in.txt", name))
    everybody = {agent.url.removeprefix("http://") for agent in trio}

    def workers() -> set[str]:
        return {owner for name in names for owner in owners(two, name)}

    eventually(lambda: workers() == everybody, describe=workers)
    assert one.call("POST", "/agent/drain").status == 202
    wait_for_state(one, "drained")
    assert one.get("/agent/tasks") == []
    left = everybody - {one.url.removeprefix("http://")}
    eventually(lambda: workers() == left, describe=workers)
    for name in names:
        two.wait_for_states(name, "RUNNING", "RUNNING")
    assert one.get(f"/connectors/{names[0]}")["name"] == names[0]
    assert one.call("GET", "/health").status == 200
    refused = one.call("DELETE", f"/connectors/{names[0]}")
    assert refused.status == 503
    assert "drained" in (refused.message or "")
    assert one.call("POST", "/agent/drain", {"undrain": True}).status == 202
    wait_for_state(one, "active")
    eventually(lambda: workers() == everybody, describe=workers)


def test_a_task_of_another_agent_is_pointed_to(trio: list[Agent], tmp_path: Path) -> None:
    """Another agent's task gets a 409 with the owner's address, and an unknown task a 404."""
    trio[0].create("source", source_config(tmp_path / "in.txt", "lines"))
    trio[0].wait_for_states("source", "RUNNING", "RUNNING")
    path = "/agent/tasks/source/0/kill"
    owner_url = f"http://{owners(trio[0], 'source')[0]}"
    other = next(agent for agent in trio if agent.url != owner_url)
    # The other worker may read the owner's status a moment later.
    elsewhere = eventually(
        lambda: (answer := other.call("POST", path)).headers.get("location") and answer
    )
    assert elsewhere.status == 409
    assert elsewhere.headers["location"] == f"{owner_url}{path}"
    assert owner_url in (elsewhere.message or "")
    assert call_url(owner_url, "POST", path).status == 202
    assert other.call("POST", "/agent/tasks/source/7/kill").status == 404
    assert other.call("GET", "/agent/tasks/none/0/stacks").status == 404


def test_the_command_line_sees_every_agent_of_a_cluster(trio: list[Agent], tmp_path: Path) -> None:
    """All agents are listed and healthy, an agent's tasks are selected, and each task is killed."""
    names = sorted(unique_name("source") for _ in range(3))
    for name in names:
        trio[0].create(name, source_config(tmp_path / "in.txt", name))
    ids = {agent.url.removeprefix("http://") for agent in trio}

    def everybody_works() -> bool:
        return {owner for name in names for owner in owners(trio[0], name)} == ids

    eventually(everybody_works)
    for name in names:
        trio[0].wait_for_states(name, "RUNNING", "RUNNING")

    def pyconnect(*arguments: str) -> Any:
        environment = {
            "PYCONNECT_URL": trio[0].url,
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        command = ["-m", "pyconnect_cli", *arguments, "-o", "json"]
        done = run_python(command, {**os.environ, **environment})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    listed = pyconnect("agent", "status", "--all-workers")
    assert {agent["worker_id"] for agent in listed} == ids
    assert [agent["leader"] for agent in listed].count(True) == 1
    assert {agent["state"] for agent in listed} == {"active"}
    healthy = pyconnect("health", "--all-workers")
    assert [worker["status"] for worker in healthy] == ["healthy"] * 3
    owner = owners(trio[0], names[0])[0]
    shares = pyconnect("tasks", "list", "--worker", owner)
    assert names[0] in json.dumps(shares)
    assert {task["worker_id"] for task in shares} == {owner}
    for name in names:
        pyconnect("tasks", "kill", f"{name}/0", "--yes")
        trio[0].wait_for_states(name, "RUNNING", "FAILED")


def test_a_frozen_worker_process_loses_its_children_and_starts_them_again(
    agent: Agent, tmp_path: Path
) -> None:
    """The children of a frozen worker process end within the session timeout."""
    agent.create("source", source_config(tmp_path / "in.txt", unique_name("lines")))
    agent.wait_for_states("source", "RUNNING", "RUNNING")
    before = agent.children()
    os.kill(agent.process.pid, signal.SIGSTOP)
    try:
        _, alive = psutil.wait_procs(before, timeout=1.5 * SESSION_TIMEOUT_MS / 1000)
        assert alive == []
    finally:
        os.kill(agent.process.pid, signal.SIGCONT)

    def running_anew() -> bool:
        pids = {child["pid"] for child in agent.get("/agent/tasks")}
        return len(pids) == 2 and pids.isdisjoint(child.pid for child in before)

    eventually(running_anew)
    agent.wait_for_states("source", "RUNNING", "RUNNING")


def change_phase(agent: Agent, phase: str, sha256: str, run_id: str = "run-1") -> Answer:
    body = {"phase": phase, "run_id": run_id, "expect_config_sha256": sha256}
    return agent.call("POST", "/agent/phase", body)


def wait_for_phase(agent: Agent, phase: str) -> None:
    def in_force() -> bool:
        try:
            told = agent.call("GET", "/agent")
        except OSError:
            return False
        return (
            told.status == 200
            and told.json()["state"] == "active"
            and told.json()["exactly_once_source_support"] == phase
        )

    eventually(in_force, 60, agent.log)


def test_an_agent_changes_its_phase_and_restarts_itself(
    agent: Agent, agents: Agents, tmp_path: Path
) -> None:
    """A change of phase is in the file and in the new process; without permission it is a 403."""
    guarded = agent
    agent = agents.start(properties={**QUICK, "agent.allow.phase.change": "true"})
    agent.create("source", source_config(tmp_path / "in.txt", unique_name("lines")))
    agent.wait_for_states("source", "RUNNING", "RUNNING")
    before = about(agent)
    assert change_phase(agent, "preparing", "0" * 64).status == 409
    answer = change_phase(agent, "preparing", before["config_sha256"])
    assert (answer.status, answer.json()["restart"]) == (202, "self")
    wait_for_phase(agent, "preparing")
    told = about(agent)
    assert (told["pid"], told["started_ms"] > before["started_ms"]) == (before["pid"], True)
    assert (told["last_upgrade_run_id"], told["config_outdated"]) == ("run-1", False)
    agent.wait_for_states("source", "RUNNING", "RUNNING")
    assert agent.process.is_running
    refused = change_phase(guarded, "preparing", about(guarded)["config_sha256"])
    assert refused.status == 403


def test_an_agent_is_restarted_by_its_command(agents: Agents, tmp_path: Path) -> None:
    """The restart command outlives the worker that it stops."""
    asked = tmp_path / "asked"
    properties = {
        **QUICK,
        "agent.allow.phase.change": "true",
        "agent.restart.command": f"touch '{asked}'",
    }
    agent = agents.start(properties=properties)
    told = about(agent)
    assert told["restart"] == "command"
    answer = change_phase(agent, "enabled", told["config_sha256"])
    assert (answer.status, answer.json()["restart"]) == (202, "command")
    eventually(asked.exists)
    told = about(agent)
    assert (told["config_outdated"], told["exactly_once_source_support"]) == (True, "disabled")
