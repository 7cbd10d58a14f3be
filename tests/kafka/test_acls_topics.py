"""A source whose topics the broker creates, and whose producer may not have that done (row S4)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_cli.acls.plan.check import assess
from pyconnect_cli.acls.plan.explain import explain
from pyconnect_cli.acls.plan.grants import missing_grants
from pyconnect_clients.acls.facts import ClusterFacts, ConnectorFacts, WorkerFacts
from pyconnect_clients.acls.model import Evidence
from pyconnect_clients.acls.needs import cluster_needs
from pyconnect_clients.connect_names import Phase
from pyconnect_sandbox.broker import KafkaBroker
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import Agent, Agents
from tests.support.audits.sequences import Sequences
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.secured import SecuredBroker, internal, secured_config

pytestmark = pytest.mark.kafka

WAIT_S = 150
LAST = 10


@pytest.fixture
def creating(kafka_runtime: KafkaRuntime, tmp_path: Path) -> Iterator[SecuredBroker]:
    config = secured_config(kafka_runtime, tmp_path / "secured", auto_create=True)
    with KafkaBroker(config) as broker:
        yield SecuredBroker(broker.bootstrap_servers, broker.sasl_bootstrap_servers)


def test_a_source_may_not_have_the_broker_create_its_topic(
    creating: SecuredBroker, tmp_path: Path
) -> None:
    """The task is FAILED and `acls check` names that row alone; granted, the broker creates it."""
    group, name = unique_name("lacks-s4"), unique_name("source")
    properties = {
        **internal(group),
        **creating.worker(creating.user()),
        "exactly.once.source.support": "enabled",
    }
    topics = {value for key, value in properties.items() if key.endswith(".storage.topic")}
    creating.create_topics(*topics)
    sequences = Sequences(creating.plaintext, tmp_path)
    sequences.allow(LAST)
    config = sequences.config()
    facts = ClusterFacts(
        workers=(WorkerFacts(name="w", properties=properties, is_agent=True),),
        connectors=(ConnectorFacts(name=name, type="source", config=config),),
        existing_topics={"": frozenset(topics)},
    )
    findings = assess(cluster_needs(facts, Phase.ENABLED).needs, Evidence(bindings={"": ()}))
    (lack,) = missing_grants(f for f in findings if f.need.rule.id == "S4").grants
    creating.grant(set(missing_grants(findings).grants) - {lack})
    agents = Agents(creating.sasl, tmp_path)
    try:
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
        eventually(lambda: restarted(agent, name), WAIT_S, lambda: agent.states(name))
        sequences.check(LAST)
    finally:
        agents.close()


def blockers(pyconnect: Pyconnect, connector: str) -> set[tuple[str, str]]:
    """Rule and resource of what stands in the connector's way."""
    ended = pyconnect(
        *("acls", "check", "--phase", "enabled", "--connector", connector, "-o", "json")
    )
    missing = {
        (grant["rule"], grant["resource"])
        for grant in json.loads(ended.out)["grants"]
        if grant["severity"] == "blocker" and grant["verdict"] not in {"proven", "predicted"}
    }
    assert ended.code == (1 if missing else 0), ended.err
    return missing


def restarted(agent: Agent, name: str) -> bool:
    """Whether it runs; restarts what has failed."""
    if "FAILED" in agent.states(name):
        agent.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
    return agent.states(name) == ("RUNNING", "RUNNING")
