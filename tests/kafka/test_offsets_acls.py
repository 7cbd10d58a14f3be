"""Changes of offsets that ACLs forbid: what is said, what stays, what goes on (KIP-875)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pyconnect_cli.acls.plan.check import assess
from pyconnect_cli.acls.plan.grants import Grant, missing_grants
from pyconnect_clients.acls.facts import ClusterFacts, ConnectorFacts, WorkerFacts
from pyconnect_clients.acls.model import Evidence
from pyconnect_clients.acls.needs import cluster_needs
from pyconnect_clients.connect_names import Phase
from tests.support.agents.agent import Agent, Agents, closing
from tests.support.agents.changed_offsets import LINES, PARTITIONS, Groups, Sink
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.secured import SecuredBroker, internal, overrides
from tests.support.servers.topics import OffsetTopics

pytestmark = pytest.mark.kafka

WAIT_S = 150
GROUP = "forbidden"
OFFSETS = f"{GROUP}-offsets"
TO_RUN = {"S1", "O1", "O2", "O3", "O5", "O6", "X1", "X2", "X3"}


@pytest.fixture(scope="module")
def agent(secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """A worker that may do everything; its connectors' clients are others."""
    directory = tmp_path_factory.mktemp("worker")
    properties = {**internal(GROUP), "exactly.once.source.support": "enabled"}
    for agents in closing(lambda: Agents(secured.plaintext, directory)):
        yield agents.start(group_id=GROUP, properties=properties)


def clients(secured: SecuredBroker) -> dict[str, str]:
    """Settings of a connector whose clients nothing is granted to yet."""
    users = secured.client_users()
    servers = {f"{client}.override.bootstrap.servers": secured.sasl for client in users}
    return {**overrides(users), **servers}


def grants_of(
    rules: set[str], name: str, kind: str, config: Mapping[str, str], agent: Agent
) -> set[Grant]:
    """Return the grants that these rules need for a connector; its brokers are the worker's by
    another address.
    """
    config = {key: value for key, value in config.items() if "bootstrap" not in key}
    facts = ClusterFacts(
        workers=(WorkerFacts(name=agent.url, properties=internal(GROUP), is_agent=True),),
        connectors=(ConnectorFacts(name=name, type=kind, config=config),),
        existing_topics={"": frozenset({OFFSETS, config.get("topic", config.get("topics", ""))})},
    )
    needs = [need for need in cluster_needs(facts, Phase.ENABLED).needs if need.owner == name]
    findings = assess(needs, Evidence(bindings={"": ()}))
    return set(missing_grants(f for f in findings if f.need.rule.id in rules).grants)


def test_a_source_continues_after_a_forbidden_offset_change(
    agent: Agent, secured: SecuredBroker, tmp_path: Path
) -> None:
    """Its tasks were fenced for nothing, and need no right to the id of changes themselves."""
    sequences, name = Sequences(secured.plaintext, tmp_path), unique_name("numbers")
    secured.create_topics(sequences.topic)
    config = {**sequences.config(2), **clients(secured)}
    secured.grant(grants_of(TO_RUN, name, "source", config, agent))
    agent.create(name, config)
    sequences.allow(10)
    sequences.check(10, 2)
    path, topics = f"/connectors/{name}", OffsetTopics(secured.plaintext)
    eventually(lambda: len(agent.get(f"{path}/offsets")["offsets"]) == 2, WAIT_S)
    assert agent.call("PUT", f"{path}/stop").status == 204
    agent.wait_for_states(name, "STOPPED")
    stored = topics.live(OFFSETS)
    entry = {"partition": {"number": "0"}, "offset": {"last": 3}}
    body = {"offsets": [entry]}
    refusal = f"Failed to modify offsets for source connector {name}"
    for answer in (
        agent.call("PATCH", f"{path}/offsets", body),
        agent.call("DELETE", f"{path}/offsets"),
    ):
        assert (answer.status, answer.message) == (500, refusal)
    assert topics.live(OFFSETS) == stored
    assert agent.call("PUT", f"{path}/resume").status == 202
    sequences.allow(20)
    sequences.check(20, 2)
    assert agent.log().count("id not fenced") == 1
    secured.grant(grants_of({"X4"}, name, "source", config, agent))
    assert agent.call("PUT", f"{path}/stop").status == 204
    agent.wait_for_states(name, "STOPPED")
    eventually(lambda: agent.call("PATCH", f"{path}/offsets", body).status == 200, WAIT_S)
    assert entry in agent.get(f"{path}/offsets")["offsets"]
    assert agent.call("PUT", f"{path}/resume").status == 202
    eventually(lambda: sequences.seen()["0"] == [*range(1, 21), *range(4, 21)], WAIT_S)
    assert agent.log().count("id not fenced") == 1
    agent.call("DELETE", path)


def test_a_sinks_group_stays_as_it_was_when_its_admin_client_may_not_change_it(
    agent: Agent, secured: SecuredBroker, tmp_path: Path
) -> None:
    """Each answer says what could not be done; once it is granted the same requests succeed."""
    # Listed as a sink: what may be a source is fenced first.
    config = {**clients(secured), "connector.class": "FileStreamSink"}
    stored = dict.fromkeys(range(PARTITIONS), LINES)
    name, topic = unique_name("sink"), unique_name("lines")
    wanted = {**config, "topics": topic}
    secured.grant(grants_of({"K1", "K2"}, name, "sink", wanted, agent))
    sink = Sink(agent, Groups(secured.plaintext), tmp_path, name=name, topic=topic, **config)
    alter = f"Failed to alter consumer group offsets for connector {name}"
    for answer in (sink.alter(1), sink.alter(None)):
        assert (answer.status, answer.message) == (500, alter)
    assert sink.reset().message == (
        f"Failed to list offsets prior to resetting offsets for sink connector {name}"
    )
    secured.grant(grants_of({"K5"}, name, "sink", wanted, agent))
    reset = f"Failed to reset consumer group offsets for sink connector {name}"
    eventually(lambda: sink.reset().message == reset, WAIT_S)
    assert sink.committed() == stored
    secured.grant(grants_of({"K6", "K7"}, name, "sink", wanted, agent))
    eventually(lambda: sink.alter(1, None).status == 200, WAIT_S)
    assert sink.committed() == {0: 1, 2: LINES}
    assert sink.reset().status == 200
    assert sink.committed() == {}
    agent.call("DELETE", f"/connectors/{name}")
