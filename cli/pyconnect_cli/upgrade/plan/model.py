"""The observations of a Connect cluster during an upgrade, as values. Pure.

pyconnect's own agents report their phase. The phase of a Java worker is inferred: its validation
distinguishes `enabled` from the rest, and its writing distinguishes `preparing` from `disabled`
while it leads. So each worker has a set of possible phases and the source of that knowledge.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyconnect_clients.acls.model import Role
from pyconnect_clients.acls.needs import Config, client_config, client_layers, server_set
from pyconnect_clients.connect_names import Phase, source_transactional_ids


class PhaseSource(StrEnum):
    """The source of a worker's phase."""

    TOLD = "told"  # the agent's report
    SHOWN = "shown"  # the output of the command `show`, from the worker's file
    INFERRED = "inferred"  # from a Java worker's behaviour
    UNKNOWN = "unknown"


class Kind(StrEnum):
    """The implementation of a worker."""

    AGENT = "agent"
    JAVA = "java"
    UNKNOWN = "unknown"


class Means(StrEnum):
    """The way in which a worker's phase is changed."""

    AGENT = "agent"  # POST /agent/phase; the agent restarts itself
    COMMANDS = "commands"  # argv templates of the inventory
    OPERATOR = "operator"  # instructions are printed, exit 75


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradedWorker:
    """One worker. `url` has no slash at its end.

    `instance` distinguishes the worker's processes: the member id of the group, which is new at
    each join of a new process; None if the worker is not a member. `outdated`: its properties file
    is newer than the process. `reason`: why the worker does not answer.
    """

    url: str
    reachable: bool = True
    kind: Kind = Kind.UNKNOWN
    version: str = ""
    cluster_id: str = ""
    phases: frozenset[Phase] = frozenset(Phase)
    source: PhaseSource = PhaseSource.UNKNOWN
    instance: str | None = None
    leader: bool = False
    outdated: bool = False
    config_sha256: str | None = None
    drained: bool = False
    ready: bool = True
    fences: bool | None = None
    means: Means = Means.OPERATOR
    reason: str = ""

    @property
    def phase(self) -> Phase | None:
        """The phase when only one is possible."""
        return next(iter(self.phases)) if len(self.phases) == 1 else None

    @property
    def member(self) -> bool:
        return self.instance is not None

    @property
    def phase_text(self) -> str:
        """The phase as a text; a label marks a phase that the worker did not report itself."""
        if not self.reachable:
            return "?"
        if self.source is PhaseSource.UNKNOWN:
            return "unknown"
        text = " or ".join(phase for phase in Phase if phase in self.phases)
        return text if self.source is PhaseSource.TOLD else f"{text} ({self.source})"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction under way, as its coordinator reports it; the next one starts later."""

    transactional_id: str
    started_ms: int
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """The facts of a source connector's configuration that matter for an upgrade.

    `replaced` and `breaking` are client settings, in the user's spelling, that exactly-once
    ignores or that break it. `own_cluster`: its clients have other addresses than the worker;
    `several_clusters`: its clients' addresses differ.
    """

    name: str
    state: str
    tasks: int
    tasks_max: int = 1
    offsets_topic: str | None = None
    requires_exactly_once: bool = False
    boundary: str = "poll"
    boundary_interval_ms: int | None = None
    transaction_timeout_ms: int = 60_000
    preflight: tuple[str, ...] = ()
    """Errors of a validation with `required`; empty if there are none or it was not validated."""
    replaced: tuple[str, ...] = ()
    breaking: tuple[str, ...] = ()
    own_cluster: bool = False
    several_clusters: bool = False

    def transactional_ids(self, group_id: str) -> tuple[str, ...]:
        """Return the ids of its present and possible tasks, and of changes of its offsets."""
        return source_transactional_ids(group_id, self.name, max(self.tasks, self.tasks_max))


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """The brokers' answers; None: the question was not asked or not permitted."""

    transactions: bool = True
    max_transaction_timeout_ms: int | None = None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSettings:
    """Workers' own client settings, each as `name: key=value`."""

    replaced: tuple[str, ...] = ()
    breaking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One look at the cluster. Workers: members of the group and those of the inventory.

    `instances`: the state of each connector (`orders`) and task (`orders/0`).
    `hanging`: transactional ids of this group whose transaction is open for longer than its
    timeout. The other fields are filled for plans: `aborted_offsets` are keys of `offsets_topic`
    whose newest record is of no committed transaction; the ACLs are those of the next phase;
    `worker_settings` are workers' settings that the phase ignores or that prevent a leader;
    `unusable_plugins` are findings about jars that the Java workers' release of Kafka cannot run.
    """

    group_id: str
    cluster_id: str
    group_state: str
    protocol: str
    workers: tuple[UpgradedWorker, ...]
    instances: Mapping[str, str]
    hanging: tuple[str, ...] = ()
    open_transactions: frozenset[OpenTransaction] = frozenset()
    sources: tuple[SourceFacts, ...] = ()
    stopped: tuple[str, ...] = ()
    brokers: Brokers = Brokers()
    aborted_offsets: tuple[str, ...] = ()
    offsets_topic: str | None = None
    acl_blockers: tuple[str, ...] = ()
    acl_unknown: tuple[str, ...] = ()
    worker_settings: KnownSettings = KnownSettings()
    other_groups: tuple[str, ...] = ()
    unusable_plugins: tuple[str, ...] = ()
    leader_transactional_id: str = ""
    states_known: bool = True
    """Whether any worker reported the `instances`; False means that their states are not known."""
    leader_writes: bool | None = None
    """Whether the leader writes transactionally; None if it is not known."""

    @property
    def stable(self) -> bool:
        """Whether no rebalance is under way."""
        return self.group_state == "Stable"

    @property
    def by_url(self) -> dict[str, UpgradedWorker]:
        return {worker.url: worker for worker in self.workers}

    @property
    def leader(self) -> UpgradedWorker | None:
        return next((worker for worker in self.workers if worker.leader), None)

    def failed(self) -> frozenset[str]:
        """Return the names of connectors and tasks that are FAILED."""
        return frozenset(name for name, state in self.instances.items() if state == "FAILED")

    def unassigned(self) -> frozenset[str]:
        """Return the names of connectors and tasks that run nowhere."""
        return frozenset(
            name for name, state in self.instances.items() if state in {"UNASSIGNED", ""}
        )

    def fingerprint(self) -> tuple[object, ...]:
        """Return the values that must stay the same while the cluster settles."""
        members = tuple(sorted((w.url, w.instance or "", *sorted(w.phases)) for w in self.workers))
        return (
            self.group_state,
            self.protocol,
            members,
            self.failed(),
            self.unassigned(),
            self.hanging,
        )


MOST_IN_FLIGHT = 5
_FLUSH_INTERVAL_MS = "60000"
_ALL = frozenset({"all", "-1"})
_CLIENTS = (Role.PRODUCER, Role.CONSUMER, Role.ADMIN)


def replaced_settings(worker: Config, connector: Config) -> tuple[str, ...]:
    """Return a source connector's settings that are ignored once it is exactly-once."""
    return (
        *_idempotence(client_layers(Role.PRODUCER, worker, connector)),
        *_isolation(client_layers(Role.CONSUMER, worker, connector)),
    )


def breaking_settings(worker: Config, connector: Config) -> tuple[str, ...]:
    """Return a source connector's settings that make its transactional producer fail."""
    layers = client_layers(Role.PRODUCER, worker, connector)
    found = []
    key, value = layers.get("acks", ("", "all"))
    if _text(value) not in _ALL:
        found.append(f"{key}={value}")
    found += _retries(layers)
    key, value = layers.get("max.in.flight.requests.per.connection", ("", None))
    if (_number(value) or 0) > MOST_IN_FLIGHT:
        found.append(f"{key}={value}")
    return tuple(found)


def replaced_of_leader(worker: Config, *, enabled: bool) -> tuple[str, ...]:
    """Return a worker's own settings that are ignored; reading changes only at `enabled`."""
    keys = {key: (key, value) for key, value in worker.items()}
    return (*_idempotence(keys), *(_isolation(keys) if enabled else ()))


def breaking_of_leader(worker: Config) -> tuple[str, ...]:
    """Return settings with which a leader could not write; acks and in-flight ones are fixed."""
    return tuple(_retries({key: (key, value) for key, value in worker.items()}))


def client_clusters(worker: Config, connector: Config) -> frozenset[frozenset[str]]:
    """Return the sets of addresses that a connector's clients have, as far as they are known."""
    found = (client_config(role, worker, connector).get("bootstrap.servers") for role in _CLIENTS)
    return frozenset(server_set(servers) for servers in found if servers)


def transaction_timeout_ms(worker: Config, connector: Config) -> int | None:
    """Return the configured timeout of a task's transactions; None: the client's default."""
    found = client_layers(Role.PRODUCER, worker, connector).get("transaction.timeout.ms")
    return _number(found[1]) if found else None


def boundary_interval_ms(worker: Config, connector: Config) -> int | None:
    """Return the duration of transactions at `transaction.boundary=interval`; None: not known.

    Without a value of the connector the worker's flush interval counts.
    """
    own = connector.get("transaction.boundary.interval.ms")
    return _number(own or worker.get("offset.flush.interval.ms") or _FLUSH_INTERVAL_MS)


Layers = Mapping[str, tuple[str, str | None]]
"""Settings by the client's own key: the key as it is written, and its value."""


def _idempotence(layers: Layers) -> Iterator[str]:
    key, value = layers.get("enable.idempotence", ("", "true"))
    if _text(value) != "true":
        yield f"{key}={value}"
    if "transactional.id" in layers:
        key, value = layers["transactional.id"]
        yield f"{key}={value}"


def _isolation(layers: Layers) -> Iterator[str]:
    key, value = layers.get("isolation.level", ("", "read_committed"))
    if _text(value) != "read_committed":
        yield f"{key}={value}"


def _retries(layers: Layers) -> Iterator[str]:
    key, value = layers.get("retries", ("", None))
    if _number(value) == 0:
        yield f"{key}={value}"


def _text(value: str | None) -> str:
    return (value or "").strip().lower()


def _number(value: str | None) -> int | None:
    text = _text(value)
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None
