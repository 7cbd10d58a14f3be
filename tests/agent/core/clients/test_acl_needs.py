"""What the worker's clients must be allowed follows from its configuration and the connectors'."""

from __future__ import annotations

import pytest

from pyconnect_agent.core.clients.acl_needs import (
    AclClient,
    AclNeed,
    ConnectorAclFacts,
    client_config,
    connector_needs,
    needs_in,
    refers_to_secrets,
    worker_needs,
)
from pyconnect_agent.core.config.worker_config import ExactlyOnceSourceSupport
from pyconnect_clients.security import principal_of
from tests.support.worker_properties import distributed

WORKER = distributed()
DISABLED, PREPARING, ENABLED = ExactlyOnceSourceSupport


def source(**changes: object) -> ConnectorAclFacts:
    values = {"type": "source", "config": {"topic": "t"}, "tasks": 1, "fenced_tasks": 0, **changes}
    return ConnectorAclFacts(name="c", **values)  # type: ignore[arg-type]


def texts(needs: list[AclNeed], client: AclClient) -> set[str]:
    return {str(need) for need in needs if need.client is client}


def test_the_worker_needs_its_group_topics_and_from_preparing_on_the_leaders_id() -> None:
    """Any worker may become the leader."""
    needs = list(worker_needs(WORKER))
    assert {str(need) for need in needs if need.blocker} == {
        "Read Group jb",
        *(
            f"{operation} Topic {topic}"
            for topic in ("configs", "offsets", "statuses")
            for operation in ("Read", "Write")
        ),
        "Write TransactionalId connect-cluster-jb",
    }
    assert [str(need) for need in needs if not needs_in(DISABLED, need.phase)] == [
        "Write TransactionalId connect-cluster-jb"
    ]


@pytest.mark.parametrize(("tasks", "fenced", "tasks_max"), [(3, 0, "1"), (1, 3, "1"), (0, 0, "3")])
def test_ids_of_a_source_cover_present_former_and_possible_tasks(
    tasks: int, fenced: int, tasks_max: str
) -> None:
    """Its producers write under them, its admin client fences them."""
    facts = source(tasks=tasks, fenced_tasks=fenced, config={"tasks.max": tasks_max})
    needs = [need for need in connector_needs(WORKER, facts) if "Id jb-c-" in str(need)]
    ids = {f"Write TransactionalId jb-c-{number}" for number in range(3)}
    assert texts(needs, AclClient.PRODUCER) == texts(needs, AclClient.ADMIN) == ids
    assert all(need.blocker and need.phase is ENABLED for need in needs)


def test_fencing_a_single_task_is_not_a_blocker() -> None:
    """One task after one task is not fenced."""
    needs = connector_needs(WORKER, source())
    fencing = [n for n in needs if n.client is AclClient.ADMIN and n.resource == "jb-c-0"]
    assert [need.blocker for need in fencing] == [False]


@pytest.mark.parametrize(
    ("config", "topic", "phase"),
    [({}, "offsets", ENABLED), ({"offsets.storage.topic": "own"}, "own", DISABLED)],
)
def test_offsets_topics_are_needed_by_the_connectors_clients(
    config: dict[str, str | None], topic: str, phase: ExactlyOnceSourceSupport
) -> None:
    """The worker's from enabled on, their own at once."""
    found = [n for n in connector_needs(WORKER, source(config=config)) if n.resource == topic]
    assert {(n.client.value, n.operation.value) for n in found} == {
        ("producer", "Write"),
        ("consumer", "Read"),
        ("admin", "Describe"),
    }
    assert {need.phase for need in found} == {phase}


def test_a_sink_needs_its_group_topics_and_dead_letter_queue() -> None:
    """The group is the one its consumers use."""
    config: dict[str, str | None] = {
        "topics": "a,b",
        "consumer.override.group.id": "mine",
        "errors.deadletterqueue.topic.name": "dead",
    }
    facts = ConnectorAclFacts(name="s", type="sink", config=config, tasks=1, fenced_tasks=0)
    needs = list(connector_needs(WORKER, facts))
    assert texts(needs, AclClient.CONSUMER) == {"Read Group mine", "Read Topic a", "Read Topic b"}
    assert texts(needs, AclClient.PRODUCER) == {"Write Topic dead"}
    assert {need.phase for need in needs} == {DISABLED}


def test_principals_are_those_of_the_clients_own_layers() -> None:
    """Only admin clients inherit the worker's credentials."""
    jaas = 'x.PlainLoginModule required username="w" password="p";'
    worker = distributed(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config=jaas
    )
    found = {client: principal_of(client_config(worker, client, {})) for client in AclClient}
    assert found == {
        AclClient.WORKER: "User:w",
        AclClient.PRODUCER: "User:ANONYMOUS",
        AclClient.CONSUMER: "User:ANONYMOUS",
        AclClient.ADMIN: "User:w",
    }


@pytest.mark.parametrize(
    "config",
    [
        {"security.protocol": "SSL"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "broken"},
    ],
)
def test_an_undetermined_principal_is_none(
    config: dict[str, str | None],
) -> None:
    """Brokers map certificates and tickets by rules of their own."""
    assert principal_of(config) is None


def test_references_to_secrets_are_recognised() -> None:
    """They are resolved in child processes only."""
    assert refers_to_secrets({"sasl.jaas.config": "${file:/run/secrets:jaas}"})
    assert not refers_to_secrets({"sasl.mechanism": "PLAIN", "x": None})
