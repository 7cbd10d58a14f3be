"""Errors of an agent about bad input and failing surroundings, while all other work goes on.

Failed tasks restart automatically where the policy says so, unless a restart cannot help.
"""

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from pyconnect_agent.kafka.admin import Admin, TopicSpec
from tests.support.agents.agent import Agent, Agents, emptied, sink_config, source_config
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.bad_plugins import BAD_SOURCE
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def shared_agent(module_agents: Agents) -> Agent:
    return module_agents.start(properties={"task.shutdown.graceful.timeout.ms": "500"})


@pytest.fixture
def agent_worker(shared_agent: Agent) -> Agent:
    return emptied(shared_agent)


@cases(
    "where, how, expected",
    ("start", "raise", "ValueError: no good"),
    ("start", "exit", "exited with code 7"),
    ("task.start", "raise", "ValueError: no good"),
    ("poll", "raise", "ValueError: no good"),
    ("poll", "exit", "exited with code 7"),
    ("poll", "abort", "SIGABRT"),
)
def test_a_bad_plugin_fails_alone(
    agent_worker: Agent, tmp_path: Path, where: str, how: str, expected: str
) -> None:
    """A failing plugin is FAILED with its trace, while REST and other connectors go on."""
    agent_worker.create("good", source_config(tmp_path / "in.txt", unique_name("lines")))
    agent_worker.create("bad", {"connector.class": BAD_SOURCE, where: how})
    in_task = where in ("task.start", "poll")
    agent_worker.wait_for_states("bad", *(("RUNNING", "FAILED") if in_task else ("FAILED",)))
    status = agent_worker.get("/connectors/bad/status")
    failed = status["tasks"][0] if in_task else status["connector"]
    assert expected in failed["trace"]
    agent_worker.wait_for_states("good", "RUNNING", "RUNNING")
    assert agent_worker.call("GET", "/health").status == 200


def test_a_config_that_is_too_large_is_refused_with_the_reason(agent_worker: Agent) -> None:
    """A config that can never be stored is refused, and so is a number with very many digits."""
    config = {"connector.class": BAD_SOURCE, "large": "x" * 2_000_000}
    answer = agent_worker.call("PUT", "/connectors/large/config", config)
    assert answer.status == 400
    for part in ("connector large takes 2000", "at most 1048576 bytes", "max.request.size"):
        assert part in str(answer.message)
    del config["large"]
    answer = agent_worker.call(
        "PUT", "/connectors/c/config", {**config, "tasks.max": "1" * 900_000}
    )
    assert (answer.status, "Not a number of type INT" in str(answer.message)) == (400, True)
    assert agent_worker.get("/connectors") == []


@cases("support", "disabled", "enabled")
def test_a_config_that_the_topic_does_not_take_is_refused_with_the_reason(
    agents: Agents, support: str
) -> None:
    """A config above the topic's limit is refused, and the leader goes on writing."""
    limit = {"config.storage.max.message.bytes": "20000"}
    agent = agents.start(properties={"exactly.once.source.support": support, **limit})
    config = {"connector.class": BAD_SOURCE, "large": "x" * 30_000}
    answer = agent.call("PUT", "/connectors/large/config", config)
    assert answer.status == 400
    assert answer.message == (
        "Error writing connector configuration to Kafka: a record is larger than the broker allows"
        " (max.message.bytes of the config topic). Let it refer to large values by a config"
        " provider."
    )
    agent.create("small", {**config, "large": "x"})
    agent.wait_for_states("small", "RUNNING", "RUNNING")
    assert agent.get("/connectors") == ["small"]


def test_a_hanging_task_is_killed_when_it_is_to_stop(agent_worker: Agent) -> None:
    """A hanging task is killed after the graceful time, and the worker goes on at once."""
    name = unique_name("bad")
    agent_worker.create(name, {"connector.class": BAD_SOURCE, "poll": "hang"})
    agent_worker.wait_for_states(name, "RUNNING", "RUNNING")
    assert agent_worker.call("DELETE", f"/connectors/{name}").status == 204
    eventually(lambda: agent_worker.children() == [])
    assert agent_worker.call("GET", "/health").status == 200
    killed = "child did not stop in time and is killed"
    assert any(killed in line and name in line for line in agent_worker.log().splitlines())


def test_a_hanging_connector_does_not_hold_up_others(agent_worker: Agent, tmp_path: Path) -> None:
    """A connector whose start never returns does not delay the other connectors."""
    agent_worker.create("bad", {"connector.class": BAD_SOURCE, "start": "hang"})
    agent_worker.create("good", source_config(tmp_path / "in.txt", unique_name("lines")))
    agent_worker.wait_for_states("good", "RUNNING", "RUNNING")
    assert agent_worker.states("bad") == ()


def test_a_second_signal_kills_the_children(agents: Agents) -> None:
    """Draining waits for a hanging task until the second SIGTERM."""
    agent = agents.start(properties={"task.shutdown.graceful.timeout.ms": "600000"})
    agent.create("bad", {"connector.class": BAD_SOURCE, "poll": "hang"})
    agent.wait_for_states("bad", "RUNNING", "RUNNING")
    agent.drain()
    eventually(lambda: "worker is stopping" in agent.log())
    agent.supervisor().send_signal(signal.SIGTERM)
    assert agent.exit_code() == 0


def test_a_terminal_that_goes_away_stops_the_worker_in_order(
    agents: Agents, tmp_path: Path
) -> None:
    """SIGHUP reaches every process: the worker process drains while its children wait for it."""
    agent_worker = agents.start()
    agent_worker.create("good", source_config(tmp_path / "in.txt", unique_name("lines")))
    agent_worker.wait_for_states("good", "RUNNING", "RUNNING")
    supervisor = agent_worker.supervisor()
    for process in (*supervisor.children(recursive=True), supervisor):
        process.send_signal(signal.SIGHUP)
    assert agent_worker.exit_code() == 0
    log = agent_worker.log()
    assert "signalled: stopping signal=SIGHUP" in log
    assert "killed by signal" not in log


def test_logs_contain_no_secret(agents: Agents, tmp_path: Path) -> None:
    """A failed validation and a failed task quote a secret: the log has its reference instead."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=sesame-open\n")
    reference = f"${{file:{secrets}:password}}"
    agent = agents.start(
        properties={"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
    )
    config = {"connector.class": BAD_SOURCE, "name": "bad", "login": f"alice:{reference}"}
    refused = {**config, "producer.override.batch.size": reference}
    answer = agent.call("PUT", "/connectors/bad/config", refused)
    assert answer.status == 500
    assert f"Invalid value {reference} for" in answer.text
    agent.create("bad", {**config, "task.start": "quote"})
    agent.wait_for_states("bad", "RUNNING", "FAILED")
    log = agent.log()
    assert "request failed" in log
    assert f"no entry for {reference}" in log
    assert "sesame-open" not in log


def test_a_killed_task_can_be_restarted(agent_worker: Agent, tmp_path: Path) -> None:
    """The trace names the kill -9 of the task's process; a restart over REST starts it again."""
    agent_worker.create("source", source_config(tmp_path / "in.txt", unique_name("lines")))
    agent_worker.wait_for_states("source", "RUNNING", "RUNNING")
    task = max(agent_worker.children(), key=lambda child: child.create_time())
    task.kill()
    agent_worker.wait_for_states("source", "RUNNING", "FAILED")
    assert "SIGKILL" in agent_worker.get("/connectors/source/status")["tasks"][0]["trace"]
    path = "/connectors/source/restart?includeTasks=true&onlyFailed=true"
    answer = agent_worker.call("POST", path)
    assert [task["state"] for task in answer.json()["tasks"]] == ["RESTARTING"]
    assert answer.json()["connector"]["state"] == "RUNNING"
    agent_worker.wait_for_states("source", "RUNNING", "RUNNING")


def test_an_unwritable_file_fails_the_sink_alone(agent_worker: Agent, tmp_path: Path) -> None:
    """The trace of a sink that cannot write its file names the file."""
    missing = tmp_path / "missing" / "out.txt"
    agent_worker.create("sink", sink_config(missing, unique_name("lines")))
    agent_worker.wait_for_states("sink", "RUNNING", "FAILED")
    trace = agent_worker.get("/connectors/sink/status")["tasks"][0]["trace"]
    assert str(missing) in trace


def test_an_unknown_class_is_refused(agent_worker: Agent) -> None:
    """A connector of an unknown class is refused with 400 and Apache's text."""
    body = {"name": "none", "config": {"connector.class": "NoSuchConnector"}}
    answer = agent_worker.call("POST", "/connectors", body)
    assert answer.status == 400
    assert "Failed to find any class that implements Connector and which name matches" in (
        answer.message or ""
    )
    assert agent_worker.get("/connectors") == []


def test_a_topic_with_the_wrong_policy_is_refused(
    agents: Agents, kafka_broker: SharedBroker
) -> None:
    """A topic with another cleanup policy ends the worker with exit 2 and Apache's text."""
    group_id = unique_name("agents")
    admin = Admin({"bootstrap.servers": kafka_broker.bootstrap_servers})
    topic = TopicSpec(name=f"{group_id}-offsets", settings={"cleanup.policy": "delete"})
    admin.create_topic(topic, TIMEOUT_MS)
    process = agents.process(group_id=group_id)
    process.launch()
    assert process.wait_until_exited(WAIT_S) == 2
    log = process.log_path.read_text()
    assert f"Topic '{group_id}-offsets' supplied via the 'offset.storage.topic' property" in log
    assert "'cleanup.policy=compact'" in log


def test_an_unreachable_broker_is_named(agents: Agents) -> None:
    """Without a broker the worker exits with 3 after default.api.timeout.ms, naming addresses."""
    process = agents.process(
        properties={"bootstrap.servers": "127.0.0.1:9", "default.api.timeout.ms": "2000"}
    )
    process.launch()
    assert process.wait_until_exited(WAIT_S) == 3
    log = process.log_path.read_text()
    assert "Failed to connect to and describe the Kafka cluster" in log
    assert "bootstrap.servers=127.0.0.1:9" in log


def test_a_signal_ends_a_worker_that_waits_for_its_broker(agents: Agents) -> None:
    """A worker that still waits for its broker ends at SIGTERM."""
    process = agents.process(
        properties={"bootstrap.servers": "127.0.0.1:9", "default.api.timeout.ms": "600000"}
    )
    process.launch()
    eventually(lambda: "looking up the Kafka cluster" in process.log_path.read_text())
    process.terminate()
    assert process.wait_until_exited(WAIT_S) == 0


@cases(
    "properties, expected",
    ({"session.timeout.ms": "soon"}, "Not a number of type INT"),
    ({"key.converter": "no.such.Converter"}, "Class no.such.Converter could not be found."),
    ({"config.storage.topic": ""}, "config.storage.topic"),
    ({"exactly.once.source.support": "maybe"}, "exactly.once.source.support"),
    ({"connector.client.config.override.policy": "Maybe"}, "All, None, Principal, Allowlist"),
)
def test_broken_properties_are_refused(
    agents: Agents, properties: dict[str, str], expected: str
) -> None:
    """Wrong properties end the worker with exit 2, naming the file and the property."""
    process = agents.process(properties=properties)
    process.launch()
    assert process.wait_until_exited(WAIT_S) == 2
    log = process.log_path.read_text()
    assert "worker.properties: " in log
    assert expected in log


AUTOMATIC = {
    # The policy needs a group of agents alone.
    "agent.restart.policy": "auto",
    "agent.restart.backoff.ms": "200",
    "agent.restart.backoff.max.ms": "200",
    "exactly.once.source.support": "enabled",
    "task.shutdown.graceful.timeout.ms": "2000",
}


def task_of(agent: Agent, name: str) -> dict[str, Any]:
    """Return what the agent shows of task 0."""
    found: dict[str, Any] = next(
        child
        for child in agent.get("/agent/tasks")
        if (child["connector"], child["task"]) == (name, 0)
    )
    return found


def attempts(agent: Agent, name: str) -> int:
    """Return the number of restarts of task 0; 0 before its first start."""
    children = agent.get("/agent/tasks")
    found = [child["restarts"]["attempts"] for child in children if child["connector"] == name]
    return max(found, default=0)


@pytest.fixture(scope="module")
def restarting(module_agents: Agents) -> Agent:
    return module_agents.start(properties=AUTOMATIC)


def test_a_task_whose_process_is_killed_twice_comes_back_twice(
    restarting: Agent, sequences: Sequences
) -> None:
    """Each number is there once after two kills, and attempts, metrics and log show them."""
    agent, name = restarting, sequences.name
    agent.create(name, sequences.config())
    for life in range(2):
        sequences.allow(50 * (life + 1))
        sequences.wait_for(50 * (life + 1))
        before = task_of(agent, name)["pid"]
        psutil.Process(before).kill()
        eventually(lambda known=before: task_of(agent, name)["pid"] not in (None, known))
        agent.wait_for_states(name, "RUNNING", "RUNNING")
    sequences.allow(120)
    sequences.wait_for(120)
    shown = task_of(agent, name)["restarts"]
    assert (shown["policy"], shown["attempts"], shown["next_ms"]) == ("on-failure", 2, None)
    metric = "kafka_connect_agent_restart_metrics_restart_attempts_total"
    told = f'{metric}{{connector="{name}",task="0"}} 2.0'
    assert told in agent.call("GET", "/agent/metrics").text
    log = str(agent.get(f"/agent/connectors/{name}/logs?task=0&level=WARN")["lines"])
    assert log.count("task process ended by itself") == 2
    assert agent.call("PUT", f"/connectors/{name}/pause").status == 202
    sequences.check(120)


def test_tasks_of_a_killed_process_come_back_into_one(
    restarting: Agent, sequences: Sequences
) -> None:
    """Tasks of a killed shared process share one process again; each number is there once."""
    agent, name = restarting, sequences.name
    agent.create(name, sequences.config(3, agent_isolation="connector"))
    for life in range(2):
        sequences.allow(50 * (life + 1))
        sequences.wait_for(50 * (life + 1), tasks=3)
        children = agent.get("/agent/tasks")
        tasks = [c for c in children if c["connector"] == name and c["task"] is not None]
        (before,) = {child["pid"] for child in tasks}
        psutil.Process(before).kill()
        agent.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING", "RUNNING")
        eventually(lambda known=before: task_of(agent, name)["pid"] not in (None, known))
    sequences.allow(120)
    sequences.wait_for(120, tasks=3)
    assert agent.call("PUT", f"/connectors/{name}/pause").status == 202
    sequences.check(120, tasks=3)


def test_a_wrong_setting_is_not_repeated(restarting: Agent) -> None:
    """A ConfigException is permanent, while a task with another error is restarted many times."""
    agent = restarting
    agent.create("wrong", {"connector.class": BAD_SOURCE, "task.start": "config-exception"})
    agent.create("passing", {"connector.class": BAD_SOURCE, "task.start": "raise"})
    agent.wait_for_states("wrong", "RUNNING", "FAILED")
    eventually(lambda: attempts(agent, "passing") >= 3, WAIT_S)
    shown = task_of(agent, "wrong")["restarts"]
    assert (shown["attempts"], shown["ended"], shown["next_ms"]) == (0, "permanent", None)
    agent.wait_for_states("wrong", "RUNNING", "FAILED")
    trace = agent.get("/connectors/wrong/status")["tasks"][0]["trace"]
    assert "ConfigException: wrong on purpose" in trace
    assert "a configuration error or a missing authorization has to be corrected first" in trace
