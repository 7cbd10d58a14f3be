"""The worker's check of its own rights: refusals of the start, warnings, and principals."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Self

import pytest

from pyconnect_agent.core.clients.configs import KafkaPythonConfig
from pyconnect_agent.core.errors import KafkaError, WorkerStartError
from pyconnect_agent.kafka.acl_probes import ABSENT_TOPIC, Answer
from pyconnect_agent.worker.acls import WorkerAcls
from pyconnect_clients.acls.model import Access, GrantVerdict
from pyconnect_clients.acls.needs import ConnectorFacts
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases
from tests.support.servers.secured import sasl

LEADER = "Write TransactionalId connect-cluster-jb"


class Brokers:
    """Brokers that deny, or do not know, the needs with these texts; all others are granted."""

    def __init__(
        self,
        denied: Sequence[str] = (),
        unknown: Sequence[str] = (),
        evidence: str = "as told",
        *,
        unreachable: bool = False,
    ) -> None:
        self.denied, self.unknown, self.evidence = denied, unknown, evidence
        self.users: list[object] = []
        self.unreachable = unreachable

    def __call__(self, config: KafkaPythonConfig, timeout_ms: int) -> Brokers:
        assert timeout_ms > 0
        if self.unreachable:
            raise KafkaError("nobody answers")
        sasl = config.security.sasl
        self.users.append(None if sasl is None else sasl.username)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: no connection is open."""

    def ask(self, accesses: Sequence[Access]) -> Mapping[Access, Answer]:
        return {access: (self._verdict(str(access)), self.evidence) for access in accesses}

    def _verdict(self, text: str) -> GrantVerdict:
        if text in self.denied:
            return GrantVerdict.DENIED
        return GrantVerdict.UNKNOWN if text in self.unknown else GrantVerdict.PROVEN


def check_start(brokers: Brokers, phase: str) -> None:
    WorkerAcls(distributed(exactly_once_source_support=phase), brokers).check_start()


@cases("phase", "preparing", "enabled")
def test_a_proven_lack_refuses_the_start_and_names_the_grant(phase: str) -> None:
    """The error has the missing right, the principal and the remedy."""
    with pytest.raises(WorkerStartError, match=f"{LEADER} for User:ANONYMOUS.*acls generate"):
        check_start(Brokers(denied=[LEADER]), phase)


@cases(
    "brokers, phase, warning",
    (Brokers(denied=["Write Topic configs"]), "disabled", "deny rights that this worker needs"),
    (Brokers(denied=[LEADER]), "disabled", None),
    (Brokers(denied=["DescribeConfigs Topic configs"]), "enabled", "deny rights that this"),
    (Brokers(unknown=["Write Topic configs"], evidence=ABSENT_TOPIC), "enabled", None),
    (Brokers(unknown=[LEADER]), "enabled", "could not be checked"),
    (Brokers(unreachable=True), "enabled", "could not be checked"),
)
def test_what_does_not_prevent_the_start_gives_a_warning_at_most(
    brokers: Brokers, phase: str, warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Needs of later phases and of topics that do not exist yet give no warning.

    At `disabled`, and with brokers that cannot answer, the worker starts with a warning.
    """
    check_start(brokers, phase)
    assert [warning in caplog.text for _ in caplog.records if warning] == [True] * bool(warning)
    assert {record.levelno for record in caplog.records} <= {logging.WARNING}
    assert bool(caplog.records) == bool(warning)


def source(**config: str) -> ConnectorFacts:
    settings: dict[str, str | None] = {
        name.replace("_", "."): text for name, text in config.items()
    }
    return ConnectorFacts(
        name="c", type="source", config={"topic": "t", **settings}, tasks=2, fenced_tasks=2
    )


def test_each_principal_is_asked_for_itself_over_one_connection() -> None:
    """Each principal is checked over one connection, which all its clients share."""
    properties = {**sasl("worker"), **sasl("writer", "producer."), **sasl("reader", "consumer.")}
    brokers = Brokers(denied=["Write TransactionalId jb-c-1"])
    worker = distributed(**{name.replace(".", "_"): text for name, text in properties.items()})
    document = WorkerAcls(worker, brokers).report("enabled", [source()])
    assert sorted(map(str, brokers.users)) == ["reader", "worker", "writer"]
    assert document["principals"] == {
        "worker": "User:worker",
        "producer": "User:writer",
        "consumer": "User:reader",
        "admin": "User:worker",
    }
    assert document["task_counts"] == {"c": 2}
    denied = [grant for grant in document["grants"] if grant["verdict"] == "denied"]
    expected = [("producer", "User:writer"), ("admin", "User:worker")]
    assert [(grant["client"], grant["principal"]) for grant in denied] == expected
    assert "secret" not in str(document)


def test_rights_to_read_the_workers_offsets_topic_are_warnings() -> None:
    """An agent reads the topic for its connectors, so `pyconnect acls` has the same severities."""
    document = WorkerAcls(distributed(), Brokers()).report("enabled", [source()])
    offsets = {
        (grant["client"], grant["operation"]): grant["severity"]
        for grant in document["grants"]
        if grant["resource"] == "offsets" and grant["connector"] == "c"
    }
    assert offsets == {
        ("producer", "Write"): "blocker",
        ("consumer", "Read"): "warning",
        ("admin", "Describe"): "warning",
        ("admin", "DescribeConfigs"): "warning",
    }


def test_credentials_that_stand_elsewhere_are_not_looked_up() -> None:
    """References to secrets are not resolved, because config providers run only in children."""
    facts = source(producer_override_sasl_jaas_config="${file:/run/secrets:jaas}")
    brokers = Brokers()
    document = WorkerAcls(distributed(), brokers).report("enabled", [facts])
    unknown = {grant["client"] for grant in document["grants"] if grant["verdict"] == "unknown"}
    assert unknown == {"producer"}


def test_a_wrong_phase_is_a_value_error() -> None:
    """A phase that does not exist raises ValueError, which the caller turns into a response."""
    with pytest.raises(ValueError, match="soon"):
        WorkerAcls(distributed(), Brokers()).report("soon", [])
