"""Grants that connectors' clients lack: revoked while a task runs, or needed to change offsets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_cli.acls.plan.grants import Grant
from pyconnect_clients.acls.model import GrantOperation, Pattern, Resource, ResourceType
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts, WorkerFacts
from tests.support.agents.agent import Agent, Agents, append_lines, sink_config, source_config
from tests.support.agents.changed_offsets import LINES, PARTITIONS, Groups, Sink
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import chosen
from tests.support.servers.secured import SecuredBroker, internal, needed_grants, overrides
from tests.support.servers.topics import OffsetTopic

pytestmark = pytest.mark.kafka

WAIT_S = 150


@dataclass(frozen=True, kw_only=True)
class Revoked:
    """A grant to revoke at a `phase` of exactly-once support; the trace must have `names`."""

    phase: str
    operation: GrantOperation
    type: ResourceType
    names: str


TOPIC, GROUP, ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE = GrantOperation.READ, GrantOperation.WRITE
SOURCES = [
    Revoked(phase="disabled", operation=WRITE, type=TOPIC, names="Grant Write on topic '{topic}'"),
    # Brokers do not say which topic of a transaction they refuse.
    Revoked(
        phase="enabled",
        operation=WRITE,
        type=TOPIC,
        names="Grant Write on each of the topics '{group}-offsets', '{topic}'",
    ),
    Revoked(
        phase="enabled",
        operation=WRITE,
        type=ID,
        names="Grant Write on transactional id '{group}-{name}-0'",
    ),
]
SINKS = [
    Revoked(phase="disabled", operation=READ, type=TOPIC, names="Grant Read on topic '{topic}'")
]
# The broker notices this revocation late.
GROUPS = [
    Revoked(
        phase="disabled", operation=READ, type=GROUP, names="Grant Read on group 'connect-{name}'"
    )
]


@pytest.fixture(scope="module")
def agents(
    secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[str, Agent]]]:
    """For each phase, a group and an agent that may do everything."""
    made = Agents(secured.plaintext, tmp_path_factory.mktemp("agents"))
    groups = {phase: unique_name(phase) for phase in ("disabled", "enabled")}
    try:
        yield {
            phase: (
                group,
                made.start(group_id=group, properties={"exactly.once.source.support": phase}),
            )
            for phase, group in groups.items()
        }
    finally:
        made.close()


@pytest.mark.parametrize(
    "revoked", chosen([*SOURCES, *SINKS], long=GROUPS), ids=lambda r: f"{r.phase}-{r.type.value}"
)
def test_a_revoked_grant_fails_the_task_and_is_named(
    revoked: Revoked, agents: dict[str, tuple[str, Agent]], secured: SecuredBroker, tmp_path: Path
) -> None:
    """A revoked grant fails the task and is named; a restart is enough once the grant is back."""
    group, agent = agents[revoked.phase]
    name, topic, user = unique_name("c"), unique_name("t"), secured.user()
    lines, copied = tmp_path / "lines", tmp_path / "copied"
    append_lines(lines, 1, 1)
    secured.create_topics(topic, cleanup_policy="delete")
    grants = {
        (TOPIC, WRITE): topic,
        (TOPIC, READ): topic,
        (GROUP, READ): f"connect-{name}",
        (ID, WRITE): f"{group}-{name}-0",
    }

    def grant(type_: ResourceType, operation: GrantOperation, resource: str) -> Grant:
        to = Resource(type_, resource)
        return Grant("", f"User:{user}", to, Pattern.LITERAL, operation)

    secured.grant(grant(*what, resource) for what, resource in grants.items())
    secured.grant(grant(TOPIC, op, f"{group}-offsets") for op in (READ, WRITE))
    source = revoked in SOURCES
    config = source_config(lines, topic) if source else sink_config(copied, topic)
    clients = ("producer", "consumer", "admin")
    config |= overrides(dict.fromkeys(clients, user))
    config |= {f"{client}.override.bootstrap.servers": secured.sasl for client in clients}
    config["offset.flush.interval.ms"] = "1000"
    agent.create(name, config)
    agent.wait_for_states(name, "RUNNING", "RUNNING")
    what = revoked.type, revoked.operation
    gone = grant(*what, grants[what])
    if not source:
        secured.fill(topic)
        eventually(lambda: copied.exists() and copied.read_text(), WAIT_S)
    secured.revoke(gone)
    append_lines(lines, 2, 2)
    if not source:
        secured.fill(topic)

    def trace() -> str:
        tasks = agent.get(f"/connectors/{name}/status")["tasks"]
        return str(tasks[0].get("trace", ""))

    found = eventually(trace, WAIT_S, lambda: agent.log()[-3_000:])
    assert revoked.names.format(topic=topic, group=group, name=name) in found, found
    assert "secret" not in found
    assert agent.call("GET", "/health").status == 200
    secured.grant([gone])

    eventually(lambda: agent.revived(name), WAIT_S, lambda: agent.states(name))
    agent.do("DELETE", f"/connectors/{name}")


TO_RUN = {"S1", "O1", "O2", "O3", "O5", "O6", "X1", "X2", "X3"}


def clients(secured: SecuredBroker) -> dict[str, str]:
    """Return settings of a connector whose clients have no grants yet."""
    users = secured.client_users()
    servers = {f"{client}.override.bootstrap.servers": secured.sasl for client in users}
    return {**overrides(users), **servers}


def grants_of(
    rules: set[str], name: str, kind: str, config: Mapping[str, str], worker: tuple[str, Agent]
) -> set[Grant]:
    """Return the grants that these rules need for a connector on the worker's brokers."""
    group, agent = worker
    config = {key: value for key, value in config.items() if "bootstrap" not in key}
    there = {f"{group}-offsets", config.get("topic", config.get("topics", ""))}
    facts = ClusterFacts(
        workers=(WorkerFacts(name=agent.url, properties=internal(group), is_agent=True),),
        connectors=(ConnectorFacts(name=name, type=kind, config=config),),
        existing_topics={"": frozenset(there)},
    )
    return needed_grants(facts, rules=rules, owner=name)


def test_a_source_continues_after_a_forbidden_offset_change(
    agents: dict[str, tuple[str, Agent]], secured: SecuredBroker, tmp_path: Path
) -> None:
    """The fenced tasks run again, and need no right to the transactional id of changes."""
    group, agent = worker = agents["enabled"]
    sequences, name = Sequences(secured.plaintext, tmp_path), unique_name("numbers")
    secured.create_topics(sequences.topic)
    config = {**sequences.config(2), **clients(secured)}
    secured.grant(grants_of(TO_RUN, name, "source", config, worker))
    agent.create(name, config)
    sequences.allow(10)
    sequences.check(10, 2)
    path, topic = f"/connectors/{name}", OffsetTopic(secured.plaintext, f"{group}-offsets")
    eventually(lambda: len(agent.get(f"{path}/offsets")["offsets"]) == 2, WAIT_S)
    assert agent.call("PUT", f"{path}/stop").status == 204
    agent.wait_for_states(name, "STOPPED")
    stored = topic.live()
    entry = {"partition": {"number": "0"}, "offset": {"last": 3}}
    body = {"offsets": [entry]}
    refusal = f"Failed to modify offsets for source connector {name}"
    for answer in (
        agent.call("PATCH", f"{path}/offsets", body),
        agent.call("DELETE", f"{path}/offsets"),
    ):
        assert (answer.status, answer.message) == (500, refusal)
    assert topic.live() == stored
    assert agent.call("PUT", f"{path}/resume").status == 202
    sequences.allow(20)
    sequences.check(20, 2)
    assert agent.log().count("id not fenced") == 1
    secured.grant(grants_of({"X4"}, name, "source", config, worker))
    assert agent.call("PUT", f"{path}/stop").status == 204
    agent.wait_for_states(name, "STOPPED")
    eventually(lambda: agent.call("PATCH", f"{path}/offsets", body).status == 200, WAIT_S)
    assert entry in agent.get(f"{path}/offsets")["offsets"]
    assert agent.call("PUT", f"{path}/resume").status == 202
    eventually(lambda: sequences.seen()["0"] == [*range(1, 21), *range(4, 21)], WAIT_S)
    assert agent.log().count("id not fenced") == 1
    agent.call("DELETE", path)


def test_a_sinks_group_stays_as_it_was_when_its_admin_client_may_not_change_it(
    agents: dict[str, tuple[str, Agent]], secured: SecuredBroker, tmp_path: Path
) -> None:
    """A refused change leaves the group as it was, and succeeds once it is granted."""
    _, agent = worker = agents["enabled"]
    # The connector is listed as a sink, because a possible source is fenced first.
    config = {**clients(secured), "connector.class": "FileStreamSink"}
    stored = dict.fromkeys(range(PARTITIONS), LINES)
    name, topic = unique_name("sink"), unique_name("lines")
    wanted = {**config, "topics": topic}
    secured.grant(grants_of({"K1", "K2"}, name, "sink", wanted, worker))
    sink = Sink(agent, Groups(secured.plaintext), tmp_path, name=name, topic=topic, **config)
    alter = f"Failed to alter consumer group offsets for connector {name}"
    for answer in (sink.alter(1), sink.alter(None)):
        assert (answer.status, answer.message) == (500, alter)
    assert sink.reset().message == (
        f"Failed to list offsets prior to resetting offsets for sink connector {name}"
    )
    secured.grant(grants_of({"K5"}, name, "sink", wanted, worker))
    reset = f"Failed to reset consumer group offsets for sink connector {name}"
    eventually(lambda: sink.reset().message == reset, WAIT_S)
    assert sink.committed() == stored
    secured.grant(grants_of({"K6", "K7"}, name, "sink", wanted, worker))
    eventually(lambda: sink.alter(1, None).status == 200, WAIT_S)
    assert sink.committed() == {0: 1, 2: LINES}
    assert sink.reset().status == 200
    assert sink.committed() == {}
    agent.call("DELETE", f"/connectors/{name}")
