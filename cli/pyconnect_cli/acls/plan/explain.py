"""The grants that an error text or a name refers to. Pure.

Error texts are those of Kafka's clients and brokers, of Apache's workers and of our agents; the
names in the text, if it has any, are the resource and the connector. A line of the brokers'
authorizer has principal, operation and resource.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pyconnect_cli.acls.plan.check import implies
from pyconnect_clients.acls.model import GrantFinding, GrantOperation, Resource, ResourceType

_NAME = r"[`'\"\[]*(?P<name>[^`'\"\s\]:;,]+)[`'\"\]]*"
_IDS = ("X1", "X2", "W7")
_TOPICS = ("S1", "S4", "K2", "O1", "O2", "O3", "W2r", "W2w", "W3r", "W3w", "W4r", "W4w")
_SIGNATURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (rf"Not authorized to access group:? {_NAME}", ("W1", "K1")),
    (rf"Not authorized to describe topic\(s\) {_NAME}", ("S2",)),
    (rf"Grant Read on topic {_NAME} to the principal of the consumer 'connector-", ("O2", "K2")),
    (rf"Grant Describe on topic {_NAME} to the principal of the admin client 'connector-", ("O3",)),
    (rf"Not authorized to get the end offsets for topic {_NAME}", ("O3",)),
    (r"Unable to claim write privileges", ("W7",)),
    (r"Failed to perform zombie fencing", ("X2",)),
    (rf"Failed to fence the producer with transactional id {_NAME}", ("X2",)),
    (rf"FindCoordinator request for transactionalId {_NAME}.*authorization", ("X2",)),
    (rf"InitProducerId request for transactionalId {_NAME}.*authorization", ("X2",)),
    (r"Failed to modify offsets for source connector", ("X3", "X4", "O1", "O2")),
    (r"Failed to flush offsets and/or records", ("O1", "S1", "S4")),
    (r"Unrecoverable exception (trying to send|from producer send callback)", ("S1", "S4")),
    (r"Task failed to create new topic", ("S3",)),
    (rf"Could not initialize dead letter queue with topic={_NAME}", ("K4d", "K4c")),
    (r"Failed to retrieve consumer group offsets", ("K5",)),
    (r"Failed to alter consumer group offsets", ("K6", "K7")),
    (r"Failed to reset consumer group offsets", ("K7",)),
    (r"Unable to use admin client to verify the cleanup policy of", ("W6", "O5")),
    (r"Could not look up partition metadata for topic", ("W2r", "W3r", "W4r", "W5", "O4")),
    (r"Error writing connector configuration to Kafka", ("W2w",)),
    (r"Failed to flush offsets to storage", ("W3w",)),
)


class _Kind(NamedTuple):
    """The errors of one type of resource: `rules` apply unless a more exact text is found.

    `known`: all rules of the type; None: those of no other type.
    """

    pattern: re.Pattern[str]
    rules: tuple[str, ...]
    known: frozenset[str] | None

    def of(self, rules: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of `rules` that are of this type."""
        if self.known is not None:
            return tuple(rule for rule in rules if rule in self.known)
        return tuple(rule for rule in rules if rule not in _OF_IDS | _OF_GROUPS)


_OF_IDS = frozenset({"X1", "X2", "X3", "X4", "W7"})
_OF_GROUPS = frozenset({"W1", "K1", "K5", "K6", "K7", "O6"})
_CLUSTER = ("W8", "X5p", "X5a", "S3", "S4")
_KINDS = tuple(
    _Kind(re.compile(text, re.IGNORECASE), rules, known)
    for text, rules, known in (
        (r"TRANSACTIONAL_ID_AUTHORIZATION_FAILED|Transactional ?Id ?Authorization", _IDS, _OF_IDS),
        (r"GROUP_AUTHORIZATION_FAILED|Group ?Authorization", ("W1", "K1"), _OF_GROUPS),
        (r"CLUSTER_AUTHORIZATION_FAILED|Cluster ?Authorization", _CLUSTER, frozenset(_CLUSTER)),
        (
            r"TOPIC_AUTHORIZATION_FAILED|Topic ?Authorization|Not authorized to access topics",
            _TOPICS,
            None,
        ),
    )
)
_COMPILED = tuple((re.compile(text, re.IGNORECASE), rules) for text, rules in _SIGNATURES)
_NAMES = tuple(
    re.compile(text)
    for text in (
        r"[`'\"\[]([^`'\"\s\]|]+)[`'\"\]]",
        r"\[([^\s\]|]+)\|(?:task-\d+|worker)\b",  # a connector's context in a Java worker's log
        r"for task (\S+)-\d+",
        r"[{ ]([^\s{}=,]+)=TOPIC_AUTHORIZATION_FAILED",
    )
)
_SEVERAL = re.compile(r"topics?:? \[([^\]]+, [^\]]+)\]")
_DENIED = re.compile(
    r"Principal = (?P<principal>\S+) is Denied operation = (?P<operation>\w+) from host = \S+ on"
    r" resource = (?P<type>\w+):\w+:(?P<name>\S+) for request"
)
_OPERATIONS = {operation.name: operation for operation in GrantOperation}
_TYPES = {kind.value: kind for kind in ResourceType}


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """A refusal of a broker's authorizer."""

    principal: str
    operation: GrantOperation
    resource: Resource

    def __str__(self) -> str:
        return f"{self.principal} lacks {self.operation.value} {self.resource}"

    def concerns(self, finding: GrantFinding) -> bool:
        need = finding.need
        return (
            need.resource == self.resource
            and implies(need.rule.operation, self.operation)
            and need.principal in (None, self.principal)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """`rules`: the rules that an error text refers to, empty for a name; `names`: its resources."""

    rules: tuple[str, ...]
    names: tuple[str, ...]
    denial: Denial | None = None

    def select(self, findings: Iterable[GrantFinding]) -> list[GrantFinding]:
        """Return the findings that it refers to; if it names resources, only theirs."""
        if self.denial is not None:
            return [finding for finding in findings if self.denial.concerns(finding)]
        candidates = [
            finding for finding in findings if not self.rules or finding.need.rule.id in self.rules
        ]
        named = [
            finding
            for finding in candidates
            if finding.need.resource.name in self.names or finding.need.owner in self.names
        ]
        return named if named or not self.rules else candidates


def explain(text: str) -> Explanation:
    """Read a topic, an id or an error text. A text without a known error counts as a name."""
    if denied := _DENIED.search(text):
        operation, place = _OPERATIONS.get(denied["operation"]), _TYPES.get(denied["type"])
        if operation is not None and place is not None:
            resource = Resource(place, denied["name"])
            denial = Denial(principal=denied["principal"], operation=operation, resource=resource)
            return Explanation(rules=(), names=(resource.name,), denial=denial)
    names = {name for pattern in _NAMES for name in pattern.findall(text)}
    for several in _SEVERAL.findall(text):
        names.update(several.split(", "))
    rules: tuple[str, ...] = ()
    for pattern, meant in _COMPILED:
        if found := pattern.search(text):
            rules = meant
            if "name" in pattern.groupindex and found["name"]:
                names.add(found["name"].rstrip("."))
            break
    last = {match.start(): kind for kind in _KINDS for match in kind.pattern.finditer(text)}
    if kind := (last[max(last)] if last else None):
        # The failed operation may need several rights; the error says which one failed.
        rules = kind.of(rules) or kind.rules
    if rules:
        return Explanation(rules=rules, names=tuple(sorted(names)))
    return Explanation(rules=(), names=(text.strip(),))
