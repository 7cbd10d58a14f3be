"""Kafka's words for ACLs, and the needs of a Connect cluster in these words. Pure.

A `Rule` is a row of the table; a `Need` is that row for one principal and one resource. The ids of
rules are those of docs/reference/acls.md. Symptoms are of both kinds of worker, Apache's and
ours, unless a symptom names one.
"""

import re
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
    """A type of resource; the value is Kafka's name, in the order of Kafka's protocol."""

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"
    TRANSACTIONAL_ID = "TransactionalId"
    DELEGATION_TOKEN = "DelegationToken"  # noqa: S105 - a kind of resource
    USER = "User"


OPERATIONS = dict(enumerate(GrantOperation, 2))
RESOURCE_TYPES = dict(enumerate(ResourceType, 2))


class Pattern(Enum):
    """How a binding's name matches a resource."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


class Resource(NamedTuple):
    """One resource, by its literal name."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.value} {self.name}"


class Access(NamedTuple):
    """One operation on one resource; its text is `Write TransactionalId group-connector-0`."""

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
    """The acting client: clients may have different credentials, and so principals."""

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

    `severity` is the row's; the severity of a need may be lower.
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
    known. `servers`: bootstrap addresses, if the cluster is not the workers' own. `phase`: the
    first phase with the need. `unasked`: the client on its worker could not be probed, so that
    brokers' answers to other workers' clients do not count for it. A tuple, because large clusters
    have tens of thousands of needs.
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
        """Return a text such as `Write TransactionalId group-connector-0`."""
        return str(self.access)


class GrantVerdict(Enum):
    PROVEN = "proven"
    PREDICTED = "predicted"
    DENIED = "denied"
    MISSING = "missing"
    UNKNOWN = "unknown"

    @property
    def granted(self) -> bool:
        """Whether the grant exists, as far as is known."""
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
        """Whether the finding prevents its phase."""
        return self.verdict.lacking and self.need.severity is NeedSeverity.BLOCKER

    @property
    def undecided(self) -> bool:
        """Whether the finding is a blocker that could not be tested."""
        return self.verdict is GrantVerdict.UNKNOWN and self.need.severity is NeedSeverity.BLOCKER

    def to_json(self) -> dict[str, object]:
        """Return the stable form for machines."""
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
    """A broker's answer to the client itself; `allowed` None: the answer decides nothing."""

    allowed: bool | None
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All answers of brokers: bindings per cluster, and probes.

    `bindings`: by bootstrap servers as in `Need.servers`; a missing cluster was not asked.
    `open_clusters`: clusters without an authorizer. `refused`: clusters that denied listing ACLs.
    """

    bindings: Mapping[str, tuple[Binding, ...]] = field(default_factory=dict)
    open_clusters: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    probes: Mapping[ProbeKey, ProbeAnswer] = field(default_factory=dict)
    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False
    hosts: Mapping[str, str] = field(default_factory=dict)
    """An owner's address; without one, bindings for a host do not count."""


_TABLE = """
W1  WORKER  READ  BLOCKER  DISABLED
    join the workers' group
    else: the worker never joins: `Not authorized to access group` (30); Apache's exits
W2r  WORKER  READ  BLOCKER  DISABLED
    read connectors' configurations
    else: once the topic holds anything: the worker does not finish its start (29)
W2w  WORKER  WRITE  BLOCKER  DISABLED
    write connectors' configurations, as leader
    else: creating or changing a connector is answered with 500
W3r  WORKER  READ  BLOCKER  DISABLED
    read source offsets
    else: once the topic holds anything: the worker does not finish its start (29)
W3w  WORKER  WRITE  BLOCKER  DISABLED
    write source offsets
    else: offset commits fail; after a restart sources repeat what they had read
W4r  WORKER  READ  BLOCKER  DISABLED
    read the states of connectors and tasks
    else: once the topic holds anything: the worker does not finish its start (29)
W4w  WORKER  WRITE  BLOCKER  DISABLED
    write the states of connectors and tasks
    else: states are missing or old: `GET …/status` answers 404, errors in the log
W5  WORKER  CREATE  BLOCKER  DISABLED
    create the internal topic, which does not exist yet
    else: the worker does not start: the topic is not there, and may not be created
W6  WORKER  DESCRIBE_CONFIGS  WARNING  DISABLED
    verify the clean-up policy of the internal topic
    else: only a line in the log: the policy is not verified
W7  WORKER  WRITE  BLOCKER  PREPARING
    write to the config topic in transactions, as leader; every worker may become it
    else: the leader cannot claim write privileges (53): requests that need the leader time out with
    500; an Apache worker also stops its own tasks
W8  WORKER  IDEMPOTENT_WRITE  WARNING  PREPARING
    idempotent producers on brokers before 2.8
    else: producers are refused with cluster authorization failed (31)
W9r  WORKER  READ  WARNING  DISABLED
    read the journal of changes (agent.journal.topic)
    else: `pyconnect journal list` and `connectors history` fail
W9w  WORKER  WRITE  WARNING  DISABLED
    record changes in the journal (agent.journal.topic)
    else: changes are made and not recorded; the log says so
S1  PRODUCER  WRITE  BLOCKER  DISABLED
    write the source's records
    else: task FAILED: `Unrecoverable exception …`, cause topic authorization failed (29)
S2  ADMIN  DESCRIBE  BLOCKER  DISABLED
    see whether the target topic exists (topic.creation.*)
    else: task FAILED: `Not authorized to describe topic(s)`, cause topic authorization failed (29)
S3  ADMIN  CREATE  BLOCKER  DISABLED
    create the target topic, which does not exist yet (topic.creation.*)
    else: task FAILED: `Task failed to create new topic`
S4  PRODUCER  CREATE  BLOCKER  DISABLED
    have the broker create the target topic, which does not exist yet
    else: the records wait for a topic that is never created, or the task fails with 29
O1  PRODUCER  WRITE  BLOCKER  DISABLED
    write source offsets to the offsets topic, in the tasks' transactions
    else: task FAILED: `Failed to flush offsets and/or records for task`; before enabled: offset
    commits fail again and again
O2  CONSUMER  READ  BLOCKER  DISABLED
    read source offsets from the offsets topic
    else: once the topic holds anything: connector and tasks FAILED, naming the grant; on an Apache
    worker the start may hang without a state, with `Error polling` in its log
O3  ADMIN  DESCRIBE  BLOCKER  DISABLED
    find the end of the offsets topic
    else: connector and tasks FAILED: `Not authorized to get the end offsets for topic`
O4  ADMIN  CREATE  BLOCKER  DISABLED
    create the offsets topic, which does not exist yet
    else: connector and tasks FAILED: the offsets topic is not there
O5  ADMIN  DESCRIBE_CONFIGS  WARNING  DISABLED
    verify the clean-up policy of the offsets topic
    else: only a line in the log: the policy is not verified
O6  CONSUMER  DESCRIBE  WARNING  DISABLED
    librdkafka looks up the group of the consumer that reads offsets (our agents only)
    else: none: the agent ignores it
X1  PRODUCER  WRITE  BLOCKER  ENABLED
    the task's transactional producer
    else: task FAILED at its start: transactional id authorization failed (53)
X2  ADMIN  WRITE  BLOCKER  ENABLED
    fence the producers of older task sets at each reconfiguration
    else: the first start works; after the next reconfiguration all tasks are FAILED: `Failed to
    perform zombie fencing`, the cause (53) stands in the leader's log
X3  PRODUCER  WRITE  WARNING  ENABLED
    alter and reset offsets on Apache's workers, also of a connector without tasks
    else: 500 `Failed to modify offsets for source connector`
X4  PRODUCER  WRITE  WARNING  ENABLED
    alter and reset offsets on our agents (KIP-875)
    else: altering or resetting offsets is answered with 500
X5p  PRODUCER  IDEMPOTENT_WRITE  WARNING  ENABLED
    idempotent producers on brokers before 2.8
    else: producers are refused with cluster authorization failed (31)
X5a  ADMIN  IDEMPOTENT_WRITE  WARNING  ENABLED
    fencing on brokers before 2.8
    else: fencing is refused with cluster authorization failed (31)
K1  CONSUMER  READ  BLOCKER  DISABLED
    take part in the sink's consumer group and commit
    else: task FAILED: group authorization failed (30)
K2  CONSUMER  READ  BLOCKER  DISABLED
    read the sink's topic
    else: task FAILED: topic authorization failed (29); with topics.regex the topic is left out
    silently
K3  PRODUCER  WRITE  WARNING  DISABLED
    write to the dead letter queue
    else: reports of records that failed are lost, with an error in the log
K4d  ADMIN  DESCRIBE  BLOCKER  DISABLED
    see whether the dead letter queue exists
    else: the topic looks missing: its creation is tried, task FAILED `Could not initialize dead
    letter queue` unless that is allowed
K4c  ADMIN  CREATE  BLOCKER  DISABLED
    create the dead letter queue, which does not exist yet
    else: task FAILED: `Could not initialize dead letter queue with topic`
K5  ADMIN  DESCRIBE  WARNING  DISABLED
    show the sink's offsets
    else: 500 `Failed to retrieve consumer group offsets`; of a topic: it is left out
K6  ADMIN  READ  WARNING  DISABLED
    alter the sink's offsets
    else: 500 `Failed to alter consumer group offsets`
K7  ADMIN  DELETE  WARNING  DISABLED
    delete the sink's offsets, single ones or all
    else: 500 `Failed to alter …` or `Failed to reset consumer group offsets`
T1  TOOL  DESCRIBE  WARNING  DISABLED
    list ACLs, groups and the allowed operations on the cluster
    else: `acls check` cannot predict: it probes, and more stays unknown
T2  TOOL  DESCRIBE  WARNING  DISABLED
    see the members of the workers' group
    else: `upgrade` does not see all workers
T3  TOOL  READ  WARNING  DISABLED
    read task count records, and see which producers write
    else: fencing rights are checked for today's tasks only
T4  TOOL  DESCRIBE  WARNING  DISABLED
    see the transactions of leader and tasks
    else: `transactions` does not list them
T5  TOOL  READ  WARNING  DISABLED
    hold the lock that prevents two upgrades of the same cluster
    else: `upgrade` refuses to start
"""
"""Rows of id, role, operation, severity and first phase; reason and symptom are indented."""


def _rule(row: str) -> Rule:
    head, *texts = row.splitlines()
    rule_id, role, operation, severity, phase = head.split()
    why, _, symptom = " ".join(map(str.strip, texts)).partition(" else: ")
    return Rule(
        id=rule_id,
        role=Role[role],
        operation=GrantOperation[operation],
        why=why,
        symptom=symptom,
        severity=NeedSeverity[severity],
        first_phase=Phase[phase],
    )


RULES: dict[str, Rule] = {
    rule.id: rule for rule in map(_rule, re.split(r"\n(?! )", _TABLE.strip()))
}
