"""Grants that are taken from a connector's user while its task runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_cli.acls.plan.grants import Grant
from pyconnect_clients.acls.model import GrantOperation, Pattern, Resource, ResourceType
from tests.support.agents.agent import Agent, Agents, append_lines, sink_config, source_config
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import chosen
from tests.support.servers.secured import SecuredBroker, overrides

pytestmark = pytest.mark.kafka

WAIT_S = 150


@dataclass(frozen=True, kw_only=True)
class Revoked:
    """`phase`: of exactly-once support; `names`: what the trace has to name."""

    phase: str
    operation: GrantOperation
    type: ResourceType
    names: str


TOPIC, GROUP, ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE = GrantOperation.READ, GrantOperation.WRITE
SOURCES = [
    Revoked(phase="disabled", operation=WRITE, type=TOPIC, names="Grant Write on topic '{topic}'"),
    # The brokers do not say of which topic of a transaction they speak.
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
    Revoked(phase="disabled", operation=READ, type=TOPIC, names="Grant Read on topic '{topic}'"),
]
# The broker notices this one late.
GROUPS = [
    Revoked(
        phase="disabled", operation=READ, type=GROUP, names="Grant Read on group 'connect-{name}'"
    ),
]


@pytest.fixture(scope="module")
def agents(
    secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[str, Agent]]]:
    """A worker that may do everything for each phase."""
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
    "revoked",
    chosen([*SOURCES, *SINKS], long=GROUPS),
    ids=lambda r: f"{r.phase}-{r.type.value}",
)
def test_a_revoked_grant_fails_the_task_and_is_named(
    revoked: Revoked, agents: dict[str, tuple[str, Agent]], secured: SecuredBroker, tmp_path: Path
) -> None:
    """With the grant back, a restart is all that it takes, and the worker goes on meanwhile."""
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

    def runs() -> bool:
        states = agent.states(name)
        if "FAILED" in states:
            agent.call("POST", f"/connectors/{name}/restart?includeTasks=true")
        return states == ("RUNNING", "RUNNING")

    eventually(runs, WAIT_S, lambda: agent.states(name))
    agent.do("DELETE", f"/connectors/{name}")
