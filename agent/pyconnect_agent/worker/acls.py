"""Check that the brokers grant this worker the rights of its phase.

Composition root. Answers `/agent/acls`. The worker asks before it reads its topics and joins its
group. It refuses `preparing` and `enabled` only if a broker denies a needed right; a right that
could not be checked gives a warning. On request the check includes connectors' clients, with their
own configuration, unless it refers to secrets: only child processes resolve these.
`pyconnect_clients.acls` derives the rights.

`python -m pyconnect_agent.worker.acls` checks for Apache's workers, which do not report
permissions: the command line passes their properties and connectors as JSON on stdin and gets the
document of `GET /agent/acls` on stdout. The program starts no worker and loads no plugin;
references to secrets stay unresolved. Input: `properties` (of worker.properties), `phase`, and
`connectors`, each with the fields of `ConnectorFacts`. Exit code 2: the properties are not those of
a distributed worker; the reason is on stderr.
"""

import json
import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

from pyconnect_agent.core.clients import configs
from pyconnect_agent.core.clients.configs import KafkaPythonConfig, kafka_python_config
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.errors import KafkaError, WorkerConfigError, WorkerStartError
from pyconnect_agent.kafka.acl_probes import ABSENT_TOPIC, AclProbes, Answer
from pyconnect_api.errors import ConfigException
from pyconnect_clients.acls.model import Access, GrantFinding, GrantVerdict, Role
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts, WorkerFacts, cluster_needs
from pyconnect_clients.connect_names import Phase
from pyconnect_clients.security import principal_of

LOG = logging.getLogger(__name__)

PROBE_TIMEOUT_MS = 10_000
JavaConfig = Mapping[str, str | None]

_Client = tuple[Role, str]
"""A role, and the name of its connector or `_WORKER`."""

_WORKER = ""
_ROLES = (Role.WORKER, Role.PRODUCER, Role.CONSUMER, Role.ADMIN)
_NOT_ASKED = "O6"
"""A rule that agents leave out: its answer takes two requests for each connector."""

_OF_COMMANDS = frozenset({"rule", "owner", "bootstrap_servers", "why", "symptom"})
"""Members of a finding that `GET /agent/acls` leaves out."""


class Probes(Protocol):
    """One client's requests to its brokers."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def ask(self, accesses: Sequence[Access]) -> Mapping[Access, Answer]: ...


class WorkerAcls:
    """The check of the worker's rights. Any thread; one check at a time."""

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

        A topic that does not exist yet is not a finding: the worker creates it, or fails at that.
        """
        phase = self._config.exactly_once_source_support
        findings = self.findings(phase, ())
        denied = [one for one in findings if one.verdict is GrantVerdict.DENIED]
        for one in denied:
            LOG.warning(
                "the brokers deny rights that this worker needs",
                extra={
                    "grant": one.need.text,
                    "principal": one.need.principal,
                    "reason": one.evidence,
                },
            )
        unknown = [one for one in findings if one.undecided and one.evidence != ABSENT_TOPIC]
        if unknown:
            LOG.warning(
                "some rights of this worker could not be checked",
                extra={"grants": [one.need.text for one in unknown], "reason": unknown[0].evidence},
            )
        blockers = [one.need for one in denied if one.blocks]
        if blockers and phase.uses_transactional_leader:
            grants = "; ".join(f"{need.text} for {need.principal}" for need in blockers)
            raise WorkerStartError(
                f"exactly.once.source.support={phase.value} needs rights that the brokers deny this"
                f" worker: {grants}. Grant it (`pyconnect acls generate` prints the commands), or"
                " set the property to disabled."
            )

    def report(self, phase: str | None, connectors: Sequence[ConnectorFacts]) -> dict[str, Any]:
        """Return the document of `GET /agent/acls`; `phase` None: the worker's own.

        ValueError for a wrong phase. Blocks while brokers are asked.
        """
        support = Phase(phase or self._config.exactly_once_source_support.value)
        findings = self.findings(support, connectors)
        return {
            "phase": support.value,
            "principals": {
                role.value: principal_of(client_config(self._config, role, {})) for role in _ROLES
            },
            "task_counts": {one.name: one.fenced_tasks for one in connectors if one.fenced_tasks},
            "grants": [
                {"connector": finding.need.owner or None}
                | {
                    key: value
                    for key, value in finding.to_json().items()
                    if key not in _OF_COMMANDS
                }
                for finding in findings
            ],
        }

    def findings(self, phase: Phase, connectors: Sequence[ConnectorFacts]) -> list[GrantFinding]:
        """Ask the brokers for all rights of a phase and return the findings."""
        worker = WorkerFacts(name=_WORKER, properties=self._config.originals, is_agent=True)
        facts = ClusterFacts(workers=(worker,), connectors=tuple(connectors))
        needs = [need for need in cluster_needs(facts, phase).needs if need.rule.id != _NOT_ASKED]
        clients: dict[_Client, list[Access]] = defaultdict(list)
        for need in needs:
            clients[need.rule.role, need.owner].append(need.access)
        with self._one_at_a_time:
            answers = self._answers(clients, {one.name: one.config for one in connectors})
        return [
            GrantFinding(need=need, verdict=verdict, evidence=evidence)
            for need in needs
            for verdict, evidence in [answers[need.rule.role, need.owner][need.access]]
        ]

    def _answers(
        self, clients: Mapping[_Client, Sequence[Access]], configs: Mapping[str, JavaConfig]
    ) -> dict[_Client, Mapping[Access, Answer]]:
        """Ask as each client; clients with equal addresses and credentials share a connection."""
        answers: dict[_Client, Mapping[Access, Answer]] = {}
        alike: dict[frozenset[tuple[str, str | None]], list[_Client]] = defaultdict(list)
        for client, accesses in clients.items():
            role, owner = client
            try:
                config = client_config(self._config, role, configs.get(owner, {}))
            except ConfigException as error:
                answers[client] = _unknown(accesses, str(error))
                continue
            java = {
                name: value
                for name, value in config.items()
                if name.startswith(("security.", "sasl.", "ssl.")) or name == "bootstrap.servers"
            }
            if any("${" in (value or "") for value in java.values()):
                reason = "its credentials are looked up in child processes only"
                answers[client] = _unknown(accesses, reason)
            else:
                alike[frozenset(java.items())].append(client)
        for items, same in alike.items():
            wanted = list(dict.fromkeys(access for client in same for access in clients[client]))
            client_id = f"{self._config.client_id_base}acl-probe"
            try:
                connection = kafka_python_config(dict(items), client_id=client_id)
                with self._connect(connection, PROBE_TIMEOUT_MS) as probes:
                    told = probes.ask(wanted)
            except (KafkaError, WorkerConfigError, ConfigException) as error:
                told = _unknown(wanted, str(error))
            answers |= dict.fromkeys(same, told)
        return answers


def _unknown(accesses: Iterable[Access], reason: str) -> dict[Access, Answer]:
    return dict.fromkeys(accesses, (GrantVerdict.UNKNOWN, reason))


def client_config(worker: DistributedConfig, role: Role, config: JavaConfig) -> JavaConfig:
    """Return the configuration with which the worker, or a connector's client, connects.

    Raises ConfigException for an override that the worker's policy forbids.
    """
    client_id = f"{worker.group_id}-acl-probe"
    match role:
        case Role.PRODUCER:
            return configs.connector_producer(worker, config, client_id).java_config
        case Role.CONSUMER:
            return configs.sink_consumer(worker, "", config, client_id).java_config
        case Role.ADMIN:
            return configs.connector_admin(worker, config, client_id).java_config
        case _:
            return configs.shared_admin(worker).java_config


EXIT_CONFIG = 2


def main() -> int:
    """Answer one question; return the exit code."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    question = json.load(sys.stdin)
    try:
        config = DistributedConfig.parse(question["properties"])
    except ConfigException as error:
        print(error, file=sys.stderr)  # noqa: T201 - the answer to who started this
        return EXIT_CONFIG
    connectors = [ConnectorFacts(**entry) for entry in question["connectors"]]
    json.dump(WorkerAcls(config).report(question["phase"], connectors), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
