"""`pyconnect upgrade` on brokers with ACLs: refused while a grant lacks, then done."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pyconnect_cli.acls.plan.check import assess
from pyconnect_cli.acls.plan.grants import Grant, missing_grants
from pyconnect_clients.acls.facts import ClusterFacts, ConnectorFacts, WorkerFacts
from pyconnect_clients.acls.model import Evidence
from pyconnect_clients.acls.needs import cluster_needs
from pyconnect_clients.connect_names import Phase
from tests.support.agents.agent import Agent, Agents
from tests.support.agents.upgrade_cluster import ALLOWED, Tool
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import QUICK_GROUP
from tests.support.servers.secured import SecuredBroker, internal, overrides

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

WAIT_S = 150


def needed(facts: ClusterFacts) -> dict[str, tuple[Grant, ...]]:
    """All grants of `enabled`, by the rule that they are for."""
    findings = assess(cluster_needs(facts, Phase.ENABLED).needs, Evidence(bindings={"": ()}))
    rules = {finding.need.rule.id for finding in findings}
    return {
        rule: missing_grants(f for f in findings if f.need.rule.id == rule).grants for rule in rules
    }


def without(grants: Mapping[str, tuple[Grant, ...]], rule: str) -> set[Grant]:
    everything = {grant for each in grants.values() for grant in each}
    return everything - set(grants[rule])


def refusal(tool: Tool, phase: str) -> str:
    done = tool.upgrade(phase)
    assert done.returncode == 9, done.stderr
    return done.stderr


@pytest.mark.long(only=True)
def test_an_upgrade_waits_for_its_grants(secured: SecuredBroker, tmp_path: Path) -> None:
    """The leader's id before `preparing`, a task's before `enabled`; the worker is left alone."""
    group, source = unique_name("granted"), unique_name("source")
    sequences = Sequences(secured.plaintext, tmp_path)
    config = {
        **sequences.config(1),
        **overrides(secured.client_users()),
        "exactly.once.support": "requested",
    }
    properties = {**internal(group), **secured.worker(secured.user())}
    worker = WorkerFacts(name="w", properties=properties, is_agent=True)
    topics = {name for key, name in properties.items() if key.endswith(".storage.topic")}
    secured.create_topics(sequences.topic, *topics)
    there = {"": frozenset({sequences.topic, *topics})}
    workers = needed(ClusterFacts(workers=(worker,), existing_topics=there))
    connector = ConnectorFacts(name=source, type="source", config=config)
    all_grants = needed(
        ClusterFacts(workers=(worker,), connectors=(connector,), existing_topics=there)
    )
    secured.grant(without(workers, "W7"))
    secured.grant(without(all_grants, "X1") - {g for each in workers.values() for g in each})
    agents = Agents(secured.sasl, tmp_path)
    try:
        agent = agents.start(group_id=group, properties={**QUICK_GROUP, **ALLOWED, **properties})
        agent.create(source, config)
        tool = Tool(secured.plaintext, agent.url, tmp_path)
        check_is_refused(tool, "preparing", all_grants["W7"], agent, "disabled")
        secured.grant(all_grants["W7"])
        eventually(lambda: "missing ACL" not in plan(tool, "preparing"), WAIT_S)
        tool.must_upgrade("preparing")
        check_is_refused(tool, "enabled", all_grants["X1"], agent, "preparing")
        secured.grant(all_grants["X1"])
        eventually(lambda: "missing ACL" not in plan(tool, "enabled"), WAIT_S)
        tool.must_upgrade("enabled")
        sequences.allow(10)
        sequences.check(10, 1)
        agent.call("DELETE", f"/connectors/{source}")
    finally:
        agents.close()


def check_is_refused(
    tool: Tool, phase: str, lacks: tuple[Grant, ...], agent: Agent, before: str
) -> None:
    told = refusal(tool, phase)
    (lack,) = lacks
    assert f"missing ACL: {lack.operation.value}" in told
    assert f"{lack.resource.name} for {lack.principal}" in told
    assert told.count("missing ACL") == 1, told
    assert agent.get("/agent")["exactly_once_source_support"] == before


def plan(tool: Tool, phase: str) -> str:
    return tool.run("upgrade", "plan", "--phase", phase).stderr
