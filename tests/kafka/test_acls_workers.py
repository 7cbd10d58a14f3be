"""A worker without one grant: what its agent refuses, what fails, and what `acls check` finds.

The broker is that of test_acls.py, and each row of the table has a worker of its own. A further
broker creates topics for a source whose producer may not cause that.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_cli.acls.plan.grants import Grant, explain
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts, WorkerFacts
from pyconnect_clients.connect_names import Phase
from pyconnect_sandbox.broker import KafkaBroker
from pyconnect_sandbox.connect_worker import AgentProcess
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import Agent, Agents, closing, source_config
from tests.support.audits.sequences import Sequences
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import chosen
from tests.support.servers.secured import (
    TOOL,
    SecuredBroker,
    blockers,
    internal,
    needed_grants,
    sasl,
    secured_config,
    worker_file,
)

pytestmark = pytest.mark.kafka

WAIT_S = 150
NOBODY = "http://127.0.0.1:1"
WORKER_RULES = chosen(("W1", "W3w", "W7"), long=("W2r", "W2w", "W3r", "W4r", "W4w"))


@dataclass(frozen=True)
class LackingWorker:
    """The properties of a worker without one grant, and the grants that it lacks."""

    properties: Mapping[str, str]
    lacks: set[Grant]


def worker_that_lacks(
    rule: str, secured: SecuredBroker, *, topics_exist: bool, phase: Phase = Phase.ENABLED
) -> LackingWorker:
    """Grant a new worker everything but one row."""
    group = unique_name(f"lacks-{rule.lower()}")
    names = internal(group)
    topics = {name for key, name in names.items() if key.endswith(".topic")}
    if topics_exist:
        secured.create_topics(*topics)
        secured.fill(*topics)
    properties = {**names, **secured.worker(secured.user())}
    facts = ClusterFacts(
        workers=(WorkerFacts(name="w", properties=properties),),
        existing_topics={"": frozenset(topics if topics_exist else ())},
    )
    taken = needed_grants(facts, phase, rules={rule})
    secured.grant(needed_grants(facts, phase) - taken)
    return LackingWorker(properties, taken)


@pytest.fixture
def agents(secured: SecuredBroker, tmp_path: Path) -> Iterator[Agents]:
    yield from closing(lambda: Agents(secured.sasl, tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("rule", WORKER_RULES)
def test_a_worker_refuses_enabled_when_a_grant_is_proven_to_lack(
    rule: str, secured: SecuredBroker, agents: Agents
) -> None:
    """The agent exits with 3 if a grant is missing, and its log names that grant alone."""
    worker = worker_that_lacks(rule, secured, topics_exist=True)
    process = agents.process(
        group_id=worker.properties["group.id"],
        properties={**worker.properties, "exactly.once.source.support": "enabled"},
    )
    process.launch()
    assert process.wait_until_exited(WAIT_S) == 3
    log = process.log_path.read_text()
    (lack,) = worker.lacks
    refusal = next(line for line in log.splitlines() if "worker could not start" in line)
    assert (
        f"enabled needs rights that the brokers deny this worker: {lack.operation.value}" in refusal
    )
    assert f"{lack.resource} for {lack.principal}. Grant it" in refusal


def complains(log: Path) -> bool:
    """Return whether the log has refusals apart from those of the check at the start."""
    lines = [line for line in log.read_text().splitlines() if "this worker needs" not in line]
    return any(re.search(r"(?i)authorization.?failed|not authorized", line) for line in lines)


def is_ready(process: AgentProcess) -> bool:
    """Return whether the worker is healthy; False also if it does not listen."""
    try:
        return Agent(process).call("GET", "/health").status == 200
    except ConnectionError:
        return False


def test_a_worker_without_its_group_never_gets_ready(
    secured: SecuredBroker, agents: Agents
) -> None:
    """The worker goes on trying, as Apache's does, and logs what the brokers refuse."""
    worker = worker_that_lacks("W1", secured, topics_exist=True)
    process = agents.process(
        group_id=worker.properties["group.id"],
        properties={**worker.properties, "default.api.timeout.ms": "5000"},
    )
    process.launch()
    try:
        eventually(lambda: complains(process.log_path), WAIT_S, process.log_path.read_text)
        assert not is_ready(process)
    finally:
        process.kill()


@pytest.mark.parametrize("rule", ["W2r", "W3r", "W4r"])
def test_a_worker_that_may_not_read_its_topics_ends_and_names_the_grant(
    rule: str, secured: SecuredBroker, agents: Agents
) -> None:
    """The agent names the grant and exits with 3, where a Java worker polls forever."""
    worker = worker_that_lacks(rule, secured, topics_exist=True)
    process = agents.process(group_id=worker.properties["group.id"], properties=worker.properties)
    process.launch()
    assert process.wait_until_exited(WAIT_S) == 3
    (lack,) = worker.lacks
    assert f"Grant Read on topic '{lack.resource.name}'" in process.log_path.read_text()


def test_a_task_is_failed_when_its_worker_may_not_read_offsets_any_more(
    secured: SecuredBroker, agents: Agents, tmp_path: Path
) -> None:
    """A task fails if its worker can no longer read offsets, as the next position is unknown."""
    worker = worker_that_lacks("W3r", secured, topics_exist=True)
    secured.grant(worker.lacks)
    agent = agents.start(group_id=worker.properties["group.id"], properties=worker.properties)
    (lack,) = worker.lacks
    secured.revoke(lack)
    # A request from before the revocation may still bring what is written.
    eventually(lambda: "Error reading" in agent.log(), WAIT_S)
    secured.fill(lack.resource.name)
    name = unique_name("lines")
    (tmp_path / "lines.txt").write_text("one\n")
    agent.create(name, source_config(tmp_path / "lines.txt", name))

    def trace() -> str:
        answer = agent.call("GET", f"/connectors/{name}/status")
        tasks = answer.json()["tasks"] if answer.status == 200 else []
        return str(tasks[0].get("trace", "")) if tasks else ""

    eventually(trace, WAIT_S, lambda: agent.log()[-2_000:])
    assert f"Grant Read on topic '{lack.resource.name}'" in trace()


@pytest.mark.parametrize("rule", ["W2w", "W4w", "W7"])
def test_a_worker_that_may_not_write_fails_where_it_was_predicted(
    rule: str, secured: SecuredBroker, agents: Agents, tmp_path: Path
) -> None:
    """A worker that may not write answers changes of configs with 500 and shows no states."""
    worker = worker_that_lacks(rule, secured, topics_exist=True)
    phase = "preparing" if rule == "W7" else "disabled"
    # The check at the start would refuse the worker, so it has the grant until it has started.
    secured.grant(worker.lacks)
    agent = agents.start(
        group_id=worker.properties["group.id"],
        properties={**worker.properties, "exactly.once.source.support": phase},
    )
    name = unique_name("lines")
    (tmp_path / "lines.txt").write_text("one\n")
    secured.create_topics(name)
    config = {
        **source_config(tmp_path / "lines.txt", name),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    (lack,) = worker.lacks
    secured.revoke(lack)
    if rule in {"W2w", "W7"}:
        body = {"name": name, "config": config}
        eventually(lambda: agent.call("POST", "/connectors", body).status == 500, WAIT_S)
        assert agent.get("/connectors") == []
        return
    agent.create(name, config)
    complaint = r"(?i)status.*(fail|authoriz)|(fail|authoriz).*status"
    eventually(lambda: re.search(complaint, agent.log()), WAIT_S, lambda: agent.log()[-2_000:])
    assert agent.call("GET", f"/connectors/{name}/status").status == 404


@pytest.mark.long(only=True)
def test_a_worker_that_may_not_create_its_topics_does_not_start(
    secured: SecuredBroker, agents: Agents
) -> None:
    """Without W5 the worker waits for its topics until its timeout and ends."""
    worker = worker_that_lacks("W5", secured, topics_exist=False)
    process = agents.process(
        group_id=worker.properties["group.id"],
        properties={**worker.properties, "default.api.timeout.ms": "5000"},
    )
    process.launch()
    assert process.wait_until_exited(WAIT_S) != 0
    assert worker.properties["config.storage.topic"] in process.log_path.read_text()


@pytest.mark.parametrize("rule", ["W7", "W2w", None])
def test_where_acls_may_not_be_listed_clients_of_a_file_are_asked(
    rule: str | None, secured: SecuredBroker, tmp_path: Path
) -> None:
    """Without a right to list ACLs, the command asks with the clients of the properties file."""
    worker = worker_that_lacks(rule or "none", secured, topics_exist=True)
    file = worker_file(tmp_path, worker.properties)
    command = Pyconnect(tmp_path, NOBODY, secured.sasl)
    credentials = tmp_path / "tool.properties"
    credentials.write_text("".join(f"{k}={v}\n" for k, v in sasl(TOOL).items()))
    command.environ["PYCONNECT_KAFKA_PROPERTIES"] = str(credentials)
    arguments = ("acls", "check", "--worker-config", str(file), "--phase", "preparing")
    ended = command(*arguments, "-o", "json")
    assert ended.code == (0 if rule is None else 1), ended.err
    lacking = [g for g in json.loads(ended.out)["grants"] if g["verdict"] == "denied"]
    assert [g["rule"] for g in lacking if g["severity"] == "blocker"] == ([rule] if rule else [])
    assert "secret" not in ended.out + ended.err


def test_offset_commits_fail_and_are_tried_again(
    secured: SecuredBroker, agents: Agents, tmp_path: Path
) -> None:
    """Without W3w records go on and the task stays RUNNING.

    When the grant is back, the next commit has all offsets.
    """
    name, sequences = unique_name("source"), Sequences(secured.plaintext, tmp_path)
    worker = worker_that_lacks("W3w", secured, topics_exist=True, phase=Phase.DISABLED)
    secured.create_topics(sequences.topic)
    secured.grant(worker.lacks)
    (lack,) = worker.lacks
    agent = agents.start(
        group_id=worker.properties["group.id"],
        properties={**worker.properties, "offset.flush.interval.ms": "500"},
    )
    secured.revoke(lack)
    secured.grant([lack._replace(resource=lack.resource._replace(name=sequences.topic))])
    sequences.allow(10)
    agent.create(name, {**sequences.config(1), "exactly.once.support": "requested"})
    sequences.check(10, 1)
    failed = "source offsets were not committed"
    eventually(lambda: failed in agent.log(), WAIT_S, lambda: agent.log()[-2_000:])
    assert agent.states(name) == ("RUNNING", "RUNNING")
    assert agent.get(f"/connectors/{name}/offsets")["offsets"] == []
    secured.grant([lack])
    eventually(lambda: agent.get(f"/connectors/{name}/offsets")["offsets"] != [], WAIT_S)
    assert agent.states(name) == ("RUNNING", "RUNNING")


def test_a_source_may_not_have_the_broker_create_its_topic(
    kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """Without S4 the task fails and `acls check` names that row; granted, the topic is created."""
    config = secured_config(kafka_runtime, tmp_path / "secured", auto_create=True)
    with KafkaBroker(config) as broker:
        creating = SecuredBroker(broker.bootstrap_servers, broker.sasl_bootstrap_servers)
        for agents in closing(lambda: Agents(creating.sasl, tmp_path)):
            check_created_topic(creating, agents, tmp_path)


def check_created_topic(creating: SecuredBroker, agents: Agents, tmp_path: Path) -> None:
    group, name = unique_name("lacks-s4"), unique_name("source")
    properties = {
        **internal(group),
        **creating.worker(creating.user()),
        "exactly.once.source.support": "enabled",
    }
    topics = {value for key, value in properties.items() if key.endswith(".storage.topic")}
    creating.create_topics(*topics)
    sequences = Sequences(creating.plaintext, tmp_path)
    sequences.allow(10)
    config = sequences.config()
    facts = ClusterFacts(
        workers=(WorkerFacts(name="w", properties=properties, is_agent=True),),
        connectors=(ConnectorFacts(name=name, type="source", config=config),),
        existing_topics={"": frozenset(topics)},
    )
    (lack,) = needed_grants(facts, rules={"S4"})
    creating.grant(needed_grants(facts) - {lack})
    agent = agents.start(group_id=group, properties=properties)
    agent.create(name, config)
    eventually(lambda: agent.states(name)[1:] == ("FAILED",), WAIT_S, agent.log)
    trace = agent.get(f"/connectors/{name}/status")["tasks"][0]["trace"]
    assert f"Failed to flush offsets and/or records for task {name}-0" in trace
    assert "S4" in explain(trace).rules, trace
    pyconnect = Pyconnect(tmp_path, agent.url, creating.plaintext)
    assert blockers(pyconnect, name) == {("S4", sequences.topic)}
    creating.grant([lack])
    eventually(lambda: not blockers(pyconnect, name), WAIT_S)
    eventually(lambda: agent.revived(name), WAIT_S, lambda: agent.states(name))
    sequences.check(10)
