"""Check that the brokers grant this worker the rights of its phase.

Composition root. Answers `/agent/acls`. The worker asks
before it reads its topics and joins its group. It refuses `preparing` and `enabled` only if a
broker denies a needed right; a right that could not be checked gives a warning.
On request the check includes connectors' clients, with their own configuration, unless it refers to
secrets: only child processes resolve these.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

from pyconnect_agent.core.clients.acl_needs import (
    ABSENT_TOPIC,
    AclClient,
    AclFinding,
    AclNeed,
    AclVerdict,
    ConnectorAclFacts,
    client_config,
    connector_needs,
    needs_in,
    refers_to_secrets,
    worker_needs,
)
from pyconnect_agent.core.clients.kafka_python import KafkaPythonConfig, kafka_python_config
from pyconnect_agent.core.config.worker_config import DistributedConfig, ExactlyOnceSourceSupport
from pyconnect_agent.core.errors import KafkaError, WorkerConfigError, WorkerStartError
from pyconnect_agent.kafka.acl_probes import AclProbes
from pyconnect_api.errors import ConfigException
from pyconnect_clients.security import principal_of

LOG = logging.getLogger(__name__)

PROBE_TIMEOUT_MS = 10_000
JavaConfig = Mapping[str, str | None]


class Probes(Protocol):
    """One client's requests to its brokers."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def ask(self, needs: Sequence[AclNeed]) -> Mapping[AclNeed, tuple[AclVerdict, str]]: ...


class WorkerAcls:
    """Implements `herder.acl_reports.AclCheck`. Any thread; one check at a time."""

    def __init__(
        self,
        config: DistributedConfig,
        connect: Callable[[KafkaPythonConfig, int], Probes] = AclProbes,
    ) -> None:
        """`connect` takes the client's configuration and a time in milliseconds."""
        self._config = config
        self._connect = connect
        self._one_at_a_time = threading.Lock()

    def check_start(self) -> None:
        """Log missing rights; WorkerStartError for a blocker that a broker denies.

        A topic that does not exist yet is not a finding: the worker creates it, or fails then.
        """
        phase = self._config.exactly_once_source_support
        findings = self.findings(phase, ())
        denied = [one for one in findings if one.verdict is AclVerdict.DENIED]
        for one in denied:
            LOG.warning(
                "the brokers deny rights that this worker needs",
                extra={"grant": str(one.need), "principal": one.principal, "reason": one.evidence},
            )
        unknown = [
            one
            for one in findings
            if one.verdict is AclVerdict.UNKNOWN
            and one.need.blocker
            and one.evidence != ABSENT_TOPIC
        ]
        if unknown:
            LOG.warning(
                "some rights of this worker could not be checked",
                extra={
                    "grants": [str(one.need) for one in unknown],
                    "reason": unknown[0].evidence,
                },
            )
        blockers = [one for one in denied if one.need.blocker]
        if blockers and phase.uses_transactional_leader:
            grants = "; ".join(f"{one.need} for {one.principal}" for one in blockers)
            raise WorkerStartError(
                f"exactly.once.source.support={phase.value} needs rights that the brokers deny this"
                f" worker: {grants}. Grant it (`pyconnect acls generate` prints the commands), or"
                " set the property to disabled."
            )

    def report(self, phase: str | None, connectors: Sequence[ConnectorAclFacts]) -> dict[str, Any]:
        """Return the document of `GET /agent/acls`; `phase` None: that of the worker.

        ValueError for a wrong phase. Blocks while brokers are asked.
        """
        support = ExactlyOnceSourceSupport(phase or self._config.exactly_once_source_support.value)
        findings = self.findings(support, connectors)
        return {
            "phase": support.value,
            "principals": {
                client.value: principal_of(client_config(self._config, client, {}))
                for client in AclClient
            },
            "task_counts": {one.name: one.fenced_tasks for one in connectors if one.fenced_tasks},
            "grants": [finding.to_json() for finding in findings],
        }

    def findings(
        self, phase: ExactlyOnceSourceSupport, connectors: Sequence[ConnectorAclFacts]
    ) -> list[AclFinding]:
        """Ask the brokers about all needs of a phase."""
        configs = {one.name: one.config for one in connectors}
        needs = [*worker_needs(self._config)]
        for one in connectors:
            needs += connector_needs(self._config, one)
        wanted = [need for need in needs if needs_in(phase, need.phase)]
        with self._one_at_a_time:
            found = dict(self._found(wanted, configs))
        return [found[need] for need in wanted]

    def _found(
        self, needs: Iterable[AclNeed], configs: Mapping[str, JavaConfig]
    ) -> Iterable[tuple[AclNeed, AclFinding]]:
        """Group needs by the client that has them: one connection for each."""
        clients: dict[tuple[AclClient, str | None], list[AclNeed]] = defaultdict(list)
        for need in needs:
            clients[(need.client, need.connector)].append(need)
        alike: dict[frozenset[tuple[str, str | None]], list[AclNeed]] = defaultdict(list)
        for (client, connector), own in clients.items():
            config = configs.get(connector or "", {})
            try:
                java = _connection(client_config(self._config, client, config))
            except ConfigException as error:
                yield from _unknown(own, None, str(error))
                continue
            if refers_to_secrets(java):
                reason = "its credentials are looked up in child processes only"
                yield from _unknown(own, None, reason)
            else:
                alike[frozenset(java.items())] += own
        for items, own in alike.items():
            yield from self._asked(dict(items), own)

    def _asked(
        self, java: JavaConfig, needs: Sequence[AclNeed]
    ) -> Iterable[tuple[AclNeed, AclFinding]]:
        principal = principal_of(java)
        client_id = f"{self._config.client_id_base}acl-probe"
        try:
            config = kafka_python_config(java, client_id=client_id)
            with self._connect(config, PROBE_TIMEOUT_MS) as probes:
                answers = probes.ask(list(dict.fromkeys(needs)))
        except (KafkaError, WorkerConfigError, ConfigException) as error:
            yield from _unknown(needs, principal, str(error))
            return
        for need, (verdict, evidence) in answers.items():
            yield (
                need,
                AclFinding(need=need, verdict=verdict, evidence=evidence, principal=principal),
            )


def _unknown(
    needs: Iterable[AclNeed], principal: str | None, reason: str
) -> Iterable[tuple[AclNeed, AclFinding]]:
    for need in needs:
        verdict = AclVerdict.UNKNOWN
        yield (
            need,
            AclFinding(need=need, verdict=verdict, evidence=reason, principal=principal),
        )


def _connection(java: JavaConfig) -> dict[str, str | None]:
    """Return the keys for addresses and credentials, because equal clients share a connection."""
    return {
        name: value
        for name, value in java.items()
        if name.startswith(("security.", "sasl.", "ssl.")) or name == "bootstrap.servers"
    }
