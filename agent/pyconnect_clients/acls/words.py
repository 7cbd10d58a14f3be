"""Kafka's words for ACLs: operations, resources, patterns, bindings. Pure."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


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
