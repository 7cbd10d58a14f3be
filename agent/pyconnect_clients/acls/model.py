"""Kafka's words for ACLs, and the needs of a Connect cluster in these words. Pure.

A `Rule` is a row of the table in `rules`; a `Need` is that row for one principal and one resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pyconnect_clients.connect_names import Phase


class GrantOperation(Enum):
    """An operation; the value is Kafka's name, as its tools print it.

    The order is that of Kafka's protocol, which numbers them from 2.
    """

    ALL = "All"
    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    CLUSTER_ACTION = "ClusterAction"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"
    CREATE_TOKENS = "CreateTokens"
    DESCRIBE_TOKENS = "DescribeTokens"
    TWO_PHASE_COMMIT = "TwoPhaseCommit"


class ResourceType(Enum):
    """A type of resource; the value is Kafka's name, the order as above."""

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"
    TRANSACTIONAL_ID = "TransactionalId"
    DELEGATION_TOKEN = "DelegationToken"  # noqa: S105 - a kind of resource
    USER = "User"


OPERATIONS = dict(enumerate(GrantOperation, 2))
RESOURCE_TYPES = dict(enumerate(ResourceType, 2))


class Pattern(Enum):
    """The way in which a binding's name matches."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


class Resource(NamedTuple):
    """One resource, by its literal name."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.value} {self.name}"


class Access(NamedTuple):
    """One operation on one resource, as text `Write TransactionalId group-connector-0`."""

    operation: GrantOperation
    resource: Resource

    def __str__(self) -> str:
        return f"{self.operation.value} {self.resource}"


class Binding(NamedTuple):
    """One ACL entry: `host` is `*` or an address as text; the name `*` (literal) is any name."""

    type: ResourceType
    name: str
    pattern: Pattern
    principal: str
    host: str
    operation: GrantOperation
    allow: bool

    def __str__(self) -> str:
        verb = "ALLOW" if self.allow else "DENY"
        where = "" if self.host == "*" else f" from {self.host}"
        prefixed = "" if self.pattern is Pattern.LITERAL else " (prefixed)"
        return (
            f"{verb} {self.operation.value} {self.type.value} {self.name}{prefixed}"
            f" for {self.principal}{where}"
        )


CLUSTER = Resource(ResourceType.CLUSTER, "kafka-cluster")


class Role(Enum):
    """The client that acts: clients may have different credentials, and so principals."""

    WORKER = "worker"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"
    TOOL = "tool"


class NeedSeverity(Enum):
    """The effect of a missing grant on a phase."""

    BLOCKER = "blocker"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row of the table: `why` it is needed, and the symptom of a missing grant.

    `severity`: of the row; the severity of a need may be lower.
    """

    id: str
    role: Role
    operation: GrantOperation
    why: str
    symptom: str
    severity: NeedSeverity
    first_phase: Phase


class Need(NamedTuple):
    """One operation that one client must be allowed.

    `owner`: the connector, or the worker by its URL or file, or the tool. `principal` None: not
    known. `servers`: bootstrap addresses, if it is not the workers' own cluster. `phase`: the first
    phase that has the need. `unasked`: the client of its worker could not be probed, so the
    brokers' answers to other workers' clients do not count for it. A tuple, because large clusters
    have tens of thousands.
    """

    rule: Rule
    owner: str
    principal: str | None
    resource: Resource
    phase: Phase
    severity: NeedSeverity
    servers: str = ""
    unasked: bool = False

    @property
    def access(self) -> Access:
        return Access(self.rule.operation, self.resource)

    @property
    def text(self) -> str:
        """As `Write TransactionalId group-connector-0`."""
        return str(self.access)


class GrantVerdict(Enum):
    PROVEN = "proven"
    PREDICTED = "predicted"
    DENIED = "denied"
    MISSING = "missing"
    UNKNOWN = "unknown"

    @property
    def granted(self) -> bool:
        """Whether the grant exists, as far as known."""
        return self in (GrantVerdict.PROVEN, GrantVerdict.PREDICTED)

    @property
    def lacking(self) -> bool:
        return self in (GrantVerdict.DENIED, GrantVerdict.MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFinding:
    """A need with its verdict; `evidence` is a binding, a broker's answer or a reason."""

    need: Need
    verdict: GrantVerdict
    evidence: str

    @property
    def blocks(self) -> bool:
        """Whether it prevents its phase."""
        return self.verdict.lacking and self.need.severity is NeedSeverity.BLOCKER

    @property
    def undecided(self) -> bool:
        """Whether a blocker could not be tested."""
        return self.verdict is GrantVerdict.UNKNOWN and self.need.severity is NeedSeverity.BLOCKER

    def to_json(self) -> dict[str, object]:
        """The stable form for machines."""
        need = self.need
        return {
            "rule": need.rule.id,
            "client": need.rule.role.value,
            "owner": need.owner,
            "principal": need.principal,
            "operation": need.rule.operation.value,
            "resource_type": need.resource.type.value,
            "resource": need.resource.name,
            "bootstrap_servers": need.servers or None,
            "phase": need.phase.value,
            "severity": need.severity.value,
            "verdict": self.verdict.value,
            "evidence": self.evidence,
            "why": need.rule.why,
            "symptom": need.rule.symptom,
        }


class ProbeKey(NamedTuple):
    """The subject of a probe: an owner's client, an operation and a resource."""

    role: Role
    owner: str
    operation: GrantOperation
    resource: Resource


class ProbeAnswer(NamedTuple):
    """A broker's answer to the client itself; `allowed` None: the answer is not conclusive."""

    allowed: bool | None
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All reports of brokers: bindings per cluster, and probes.

    `bindings`: by bootstrap servers as in `Need.servers`; an absent cluster was not asked.
    `open_clusters`: those without an authorizer. `refused`: those that denied listing ACLs.
    """

    bindings: Mapping[str, tuple[Binding, ...]] = field(default_factory=dict)
    open_clusters: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    probes: Mapping[ProbeKey, ProbeAnswer] = field(default_factory=dict)
    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Address from which an owner connects; absent: bindings for a host do not count."""
