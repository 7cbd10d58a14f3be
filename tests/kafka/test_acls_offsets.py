"""A worker that may not write its offsets topic any more (row W3w): what is seen of it."""

from pathlib import Path

import pytest

from pyconnect_cli.acls.plan.check import assess
from pyconnect_cli.acls.plan.grants import missing_grants
from pyconnect_clients.acls.facts import ClusterFacts, WorkerFacts
from pyconnect_clients.acls.model import Evidence
from pyconnect_clients.acls.needs import cluster_needs
from pyconnect_clients.connect_names import Phase
from tests.support.agents.agent import Agents
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.secured import SecuredBroker, internal

pytestmark = pytest.mark.kafka

WAIT_S = 150


def test_offset_commits_fail_and_are_tried_again(secured: SecuredBroker, tmp_path: Path) -> None:
    """Records go on, the task stays RUNNING; with the grant back the next commit has them all."""
    group, name = unique_name("lacks-w3w"), unique_name("source")
    properties = {**internal(group), **secured.worker(secured.user())}
    facts = ClusterFacts(workers=(WorkerFacts(name="w", properties=properties),))
    findings = assess(cluster_needs(facts, Phase.DISABLED).needs, Evidence(bindings={"": ()}))
    topics = {value for key, value in properties.items() if key.endswith(".storage.topic")}
    sequences = Sequences(secured.plaintext, tmp_path)
    secured.create_topics(sequences.topic, *topics)
    secured.grant(missing_grants(findings).grants)
    (lack,) = missing_grants(f for f in findings if f.need.rule.id == "W3w").grants
    agents = Agents(secured.sasl, tmp_path)
    try:
        agent = agents.start(
            group_id=group, properties={**properties, "offset.flush.interval.ms": "500"}
        )
        secured.revoke(lack)
        secured.grant([lack._replace(resource=lack.resource._replace(name=sequences.topic))])
        sequences.allow(10)
        agent.create(name, {**sequences.config(1), "exactly.once.support": "requested"})
        sequences.check(10, 1)
        eventually(
            lambda: "source offsets were not committed" in agent.log(),
            WAIT_S,
            lambda: agent.log()[-2_000:],
        )
        assert agent.states(name) == ("RUNNING", "RUNNING")
        assert agent.get(f"/connectors/{name}/offsets")["offsets"] == []
        secured.grant([lack])
        eventually(lambda: agent.get(f"/connectors/{name}/offsets")["offsets"] != [], WAIT_S)
        assert agent.states(name) == ("RUNNING", "RUNNING")
    finally:
        agents.close()
