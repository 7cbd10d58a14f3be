"""Generated grants are enough for a real broker, and each of them is needed.

A broker has StandardAuthorizer and SASL users, and one agent has exactly-once enabled. All
connectors that lack a grant are created at once; each test then waits for the failure predicted for
its own. Rows for brokers before 2.8 are tested with simulated answers only, in tests/cli/acls.
Workers that lack a grant are in test_acls_workers.py, with topics that the broker creates.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pyconnect_agent.core.clients.configs import kafka_python_config
from pyconnect_agent.kafka.acl_probes import AclProbes
from pyconnect_cli.acls.plan.grants import Grant, explain
from pyconnect_clients.acls.model import (
    Access,
    GrantOperation,
    GrantVerdict,
    Resource,
    ResourceType,
)
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts, WorkerFacts
from tests.support.agents.agent import Agent, Agents, line_count, sink_config, source_config
from tests.support.audits.sequences import Sequences
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.secured import (
    SecuredBroker,
    blockers,
    internal,
    needed_grants,
    overrides,
    read_grants,
    worker_file,
)

pytestmark = pytest.mark.kafka

WAIT_S = 150
NOBODY = "http://127.0.0.1:1"
GROUP = "secured"
TOPICS = frozenset({f"{GROUP}-configs", f"{GROUP}-offsets", f"{GROUP}-status"})

TOPIC_CREATION = {
    "topic.creation.default.partitions": "1",
    "topic.creation.default.replication.factor": "1",
}


@pytest.fixture(scope="module")
def agent(secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent that has only the grants generated from its properties file."""
    directory = tmp_path_factory.mktemp("worker")
    properties = {**internal(GROUP), **secured.worker(secured.user())}
    file = worker_file(directory, properties)
    command = Pyconnect(directory, NOBODY, secured.plaintext)
    generated = command(
        *("acls", "generate", "--worker-config", str(file), "--phase", "enabled", "-o", "json")
    )
    assert generated.code == 0, generated.err
    secured.grant(read_grants(generated.out))
    agents = Agents(secured.sasl, directory)
    try:
        yield agents.start(
            group_id=GROUP,
            properties={
                **properties,
                "exactly.once.source.support": "enabled",
                "scheduled.rebalance.max.delay.ms": "0",
            },
        )
    finally:
        agents.close()


@pytest.fixture(scope="module")
def pyconnect(
    agent: Agent, secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory
) -> Pyconnect:
    return Pyconnect(tmp_path_factory.mktemp("home"), agent.url, secured.plaintext)


def lacking_rules(pyconnect: Pyconnect, connector: str) -> set[str]:
    return {rule for rule, _ in blockers(pyconnect, connector)}


def test_the_generated_set_is_enough(
    agent: Agent, secured: SecuredBroker, pyconnect: Pyconnect, tmp_path: Path
) -> None:
    """A source with two transactional tasks and a sink run; new configs fence the old tasks."""
    sequences = Sequences(secured.plaintext, tmp_path)
    secured.create_topics(sequences.topic)
    source, sink = unique_name("source"), unique_name("sink")
    copied = tmp_path / "copied"
    configs = {
        source: {**sequences.config(2), **overrides(secured.client_users())},
        sink: {**sink_config(copied, sequences.topic), **overrides(secured.client_users())},
    }
    for name, config in configs.items():
        agent.create(name, config, initial_state="STOPPED")
    assert {"S1", "O1", "X1", "X2"} <= lacking_rules(pyconnect, source)
    assert lacking_rules(pyconnect, sink) == {"K1", "K2"}
    selected = [word for name in configs for word in ("--connector", name)]
    generated = pyconnect("acls", "generate", "--phase", "enabled", *selected, "-o", "json")
    secured.grant(read_grants(generated.out))
    for name in configs:
        eventually(lambda name=name: not blockers(pyconnect, name), WAIT_S)
        assert agent.call("PUT", f"/connectors/{name}/resume").status == 202
    sequences.allow(20)
    sequences.check(20, 2)
    eventually(lambda: line_count(copied) == 40, WAIT_S, lambda: line_count(copied))
    fewer = {**configs[source], "tasks.max": "1"}
    assert agent.call("PUT", f"/connectors/{source}/config", fewer).status == 200
    sequences.allow(30)
    sequences.wait_for(30, 1)
    eventually(lambda: agent.states(source) == ("RUNNING", "RUNNING"), WAIT_S)
    for name in configs:
        agent.call("DELETE", f"/connectors/{name}")


@dataclass(frozen=True)
class Lack:
    """A connector without one grant, the missing grants, and the failure predicted for it."""

    name: str
    grants: set[Grant]
    config: Mapping[str, str]
    trace: str


# Part of the trace of the failed connector or task, by the rule of the missing grant.
PREDICTED = {
    "S1": "Unrecoverable exception|Failed to flush offsets and/or records",
    "S2": r"Not authorized to describe topic\(s\) '.*-topic' on the brokers \S+",
    "S3": "Task failed to create new topic .*-topic",
    "O1": "Failed to flush offsets and/or records",
    "O2": "Grant Read on topic '.*-offsets' to the principal of the consumer 'connector-consumer-",
    "O3": "Grant Describe on topic '.*-offsets' to the principal of the admin client 'connector-ad",
    "O4": "offsets topic",
    "X1": "ransactional",
    "X2": "Failed to perform zombie fencing",
    "K1": "uthorization failed",
    "K2": "uthorization failed",
    "K4d": "dead letter queue",
    "K4c": "dead letter queue",
}


def lacking(
    rule: str, secured: SecuredBroker, agent: Agent, directory: Path, *, describing: bool = False
) -> Lack:
    """Grant a connector all that it needs but one row, then create it.

    `describing` grants what the missing row implies.
    """
    name = unique_name(f"lacks-{rule.lower()}")
    users = secured.client_users()
    topic, dead, offsets = f"{name}-topic", f"{name}-dead", f"{name}-offsets"
    existing = {topic}
    if rule.startswith("K"):
        config = sink_config(directory / name, topic)
        if rule.startswith("K4"):
            config |= {
                "errors.deadletterqueue.topic.name": dead,
                "errors.deadletterqueue.topic.replication.factor": "1",
                "errors.tolerance": "all",
            }
            existing |= {dead} if rule == "K4d" else set()
    else:
        tasks = 2 if rule == "X2" else 1
        folder = directory / name
        folder.mkdir()
        sequences = Sequences(secured.plaintext, folder)
        sequences.allow(10)
        config = {**sequences.config(tasks), "topic": topic}
        if rule in {"S2", "S3"}:
            config |= TOPIC_CREATION
        existing -= {topic} if rule == "S3" else set()
        if rule in {"O2", "O3", "O4"}:
            config["offsets.storage.topic"] = offsets
            existing |= {offsets} if rule != "O4" else set()
    if existing:
        secured.create_topics(*existing)
    if rule == "O2":
        secured.fill(offsets)
    config |= overrides(users)
    facts = ClusterFacts(
        workers=(WorkerFacts(name=agent.url, properties=internal(GROUP), is_agent=True),),
        connectors=(
            ConnectorFacts(
                name=name, type="sink" if rule.startswith("K") else "source", config=config
            ),
        ),
        existing_topics={"": TOPICS | existing},
    )
    everything = needed_grants(facts, owner=name)
    taken = needed_grants(facts, rules={rule}, owner=name)
    assert taken
    secured.grant(everything - taken)
    if describing:
        secured.grant(grant._replace(operation=GrantOperation.DESCRIBE) for grant in taken)
    agent.create(name, config)
    return Lack(name, taken, config, PREDICTED.get(rule, ""))


@pytest.fixture(scope="module")
def lacks(
    agent: Agent, secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Lack]:
    directory = tmp_path_factory.mktemp("lacks")
    return {rule: lacking(rule, secured, agent, directory) for rule in PREDICTED}


def trace_of(agent: Agent, name: str) -> str:
    """Return the first trace of the connector or its tasks; empty while nothing has failed."""
    answer = agent.call("GET", f"/connectors/{name}/status")
    if answer.status != 200:
        return ""
    status = answer.json()
    parts = [status["connector"], *status["tasks"]]
    return next((part["trace"] for part in parts if part["state"] == "FAILED"), "")


@pytest.mark.parametrize("rule", sorted(PREDICTED))
def test_without_a_connectors_grant_the_predicted_fails(
    rule: str, lacks: Mapping[str, Lack], agent: Agent, secured: SecuredBroker, pyconnect: Pyconnect
) -> None:
    """`acls check` names the missing row alone; once it is granted, a restart is enough."""
    lack = lacks[rule]
    if rule == "X2":
        eventually(lambda: agent.states(lack.name)[1:] == ("RUNNING", "RUNNING"), WAIT_S)
        config = {**lack.config, "tasks.max": "1"}
        assert agent.call("PUT", f"/connectors/{lack.name}/config", config).status == 200
    trace = eventually(lambda: trace_of(agent, lack.name), WAIT_S, lambda: agent.states(lack.name))
    assert re.search(lack.trace, trace), trace
    assert rule in explain(trace).rules, trace
    assert lacking_rules(pyconnect, lack.name) == {rule}
    secured.grant(lack.grants)
    eventually(lambda: not blockers(pyconnect, lack.name), WAIT_S)
    restart_until_it_runs(agent, lack.name)


def restart_until_it_runs(agent: Agent, name: str) -> None:
    """Restart the failed parts until all run, then delete the connector."""
    eventually(
        lambda: agent.revived(name) and len(agent.states(name)) == 2,
        WAIT_S,
        lambda: (agent.states(name), trace_of(agent, name)),
    )
    assert agent.call("DELETE", f"/connectors/{name}").status == 204


def test_a_task_that_may_describe_but_not_read_its_offsets_topic_fails(
    agent: Agent, secured: SecuredBroker, tmp_path: Path
) -> None:
    """Such a topic shows its partitions and its end, which no reader ever reaches."""
    lack = lacking("O2", secured, agent, tmp_path, describing=True)
    trace = eventually(lambda: trace_of(agent, lack.name), WAIT_S, lambda: agent.states(lack.name))
    assert re.search(lack.trace, trace), trace
    secured.grant(lack.grants)
    restart_until_it_runs(agent, lack.name)


def test_asking_leaves_a_living_producer_alone(
    agent: Agent, secured: SecuredBroker, pyconnect: Pyconnect
) -> None:
    """Producer id, epoch and open transaction stay, and no transactional id is created.

    The agent's user and a super user ask for a task's id and for the leader's.
    """
    name = unique_name("living")
    agent.create(name, {**source_config(Path("/nowhere"), name)}, initial_state="STOPPED")
    secured.create_topics(name)
    transactional_id = f"{GROUP}-{name}-0"
    living = Producer(
        {"bootstrap.servers": secured.plaintext, "transactional.id": transactional_id}
    )
    living.init_transactions(30)
    living.begin_transaction()
    living.produce(name, b"before", b"key")
    assert living.flush(30) == 0

    def known() -> list[dict[str, object]]:
        listed = pyconnect("transactions", "list", "--all-ids", "-o", "json")
        found: list[dict[str, object]] = json.loads(listed.out)
        ids = {transactional_id, leader, unused}
        return [entry for entry in found if entry["transactional_id"] in ids]

    leader, unused = f"connect-cluster-{GROUP}", unique_name("never-used")
    before = known()
    assert {entry["transactional_id"] for entry in before} == {transactional_id, leader}
    checked = pyconnect("acls", "check", "--phase", "enabled", "--connector", name, "-o", "json")
    probed = {
        (grant["rule"], grant["resource"]): grant["verdict"]
        for grant in json.loads(checked.out)["grants"]
    }
    assert probed["W7", leader] == "proven"
    assert probed["X1", transactional_id] == "denied"
    config = kafka_python_config({"bootstrap.servers": secured.plaintext}, client_id="probe")
    needs = [
        Access(GrantOperation.WRITE, Resource(ResourceType.TRANSACTIONAL_ID, id_))
        for id_ in (transactional_id, leader, unused)
    ]
    with AclProbes(config, WAIT_S * 1000) as probes:
        answers = probes.ask(needs)
    assert {verdict for verdict, _ in answers.values()} == {GrantVerdict.PROVEN}
    assert known() == before
    living.produce(name, b"after", b"key")
    living.commit_transaction(30)
    created = agent.call("PUT", f"/connectors/{name}/config", source_config(Path("/other"), name))
    assert created.status == 200, created.text
    agent.call("DELETE", f"/connectors/{name}")
