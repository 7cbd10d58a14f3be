"""Findings for a user: the grants that a text concerns, and the smallest set to add. Pure.

Read and Write imply Describe for Kafka's own authorizer, so Describe is listed beside them only on
request. Names are literal unless prefixes are asked for; `All` and `*` are never used. A DENY
against a grant is reported, never removed. The output is sorted, so that it can be compared.

Error texts are those of Kafka's clients and brokers, of Apache's workers and of our agents; the
names in the text, if it has any, are the resource and the connector. A line of the brokers'
authorizer has principal, operation and resource.
"""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyconnect_cli.acls.plan.check import IMPLYING_DESCRIBE, implies
from pyconnect_clients.acls.model import (
    GrantFinding,
    GrantOperation,
    GrantVerdict,
    Need,
    Pattern,
    Resource,
    ResourceType,
)

_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
}
_STRIMZI_TYPES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.TRANSACTIONAL_ID: "transactionalId",
    ResourceType.CLUSTER: "cluster",
}


class Grant(NamedTuple):
    """One ACL entry to create; the order of the fields is the order of the output."""

    servers: str
    principal: str
    resource: Resource
    pattern: Pattern
    operation: GrantOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantSet:
    """Grants to add; `unnamed` lack a principal.

    `conflicts` stay denied in spite of them, by a DENY that no command removes.
    """

    grants: tuple[Grant, ...]
    conflicts: tuple[GrantFinding, ...] = ()
    unnamed: tuple[Need, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the stable form for machines."""
        return {
            "grants": [
                {
                    "bootstrap_servers": grant.servers or None,
                    "principal": grant.principal,
                    "operation": grant.operation.value,
                    "resource_type": grant.resource.type.value,
                    "resource": grant.resource.name,
                    "pattern": grant.pattern.value,
                }
                for grant in self.grants
            ],
            "conflicts": [
                {"need": conflict.need.text, "denied_by": conflict.evidence}
                for conflict in self.conflicts
            ],
            "without_principal": [f"{need.owner}: {need.text}" for need in self.unnamed],
        }


def missing_grants(
    findings: Iterable[GrantFinding],
    *,
    everything: bool = False,
    explicit_describe: bool = False,
    prefixes: Mapping[str, str] | None = None,
) -> GrantSet:
    """Return the missing grants, or `everything` that is needed.

    `prefixes`: of transactional ids by connector; their grants become one prefixed grant each.
    """
    grants: set[Grant] = set()
    conflicts, unnamed = [], []
    for finding in findings:
        need = finding.need
        if not (everything or finding.verdict.lacking):
            continue
        if finding.verdict is GrantVerdict.DENIED and finding.evidence.startswith("denied by:"):
            conflicts.append(finding)
        if need.principal is None:
            unnamed.append(need)
            continue
        resource, pattern = need.resource, Pattern.LITERAL
        prefix = (prefixes or {}).get(need.owner)
        if (
            prefix is not None
            and resource.type is ResourceType.TRANSACTIONAL_ID
            and resource.name.startswith(prefix)
        ):
            resource, pattern = Resource(resource.type, prefix), Pattern.PREFIXED
        grants.add(Grant(need.servers, need.principal, resource, pattern, need.rule.operation))
    if explicit_describe:
        grants |= {
            grant._replace(operation=GrantOperation.DESCRIBE)
            for grant in grants
            if grant.operation in IMPLYING_DESCRIBE
        }
    else:
        grants = {
            grant
            for grant in grants
            if grant.operation is not GrantOperation.DESCRIBE
            or not any(
                grant._replace(operation=stronger) in grants for stronger in IMPLYING_DESCRIBE
            )
        }
    ordered = sorted(
        grants,
        key=lambda grant: (
            grant.servers,
            grant.principal,
            grant.resource.type.value,
            grant.pattern.value,
            grant.resource.name,
            grant.operation.value,
        ),
    )
    return GrantSet(grants=tuple(ordered), conflicts=tuple(conflicts), unnamed=tuple(unnamed))


def foreign_ids(prefix: str, owner: str, findings: Iterable[GrantFinding]) -> list[str]:
    """Return other owners' transactional ids that a prefixed grant would cover too."""
    return sorted(
        {
            finding.need.resource.name
            for finding in findings
            if finding.need.owner != owner
            and finding.need.resource.type is ResourceType.TRANSACTIONAL_ID
            and finding.need.resource.name.startswith(prefix)
        }
    )


def kafka_acls(grants: Sequence[Grant], bootstrap: str, *, remove: bool = False) -> list[str]:
    """Return kafka-acls.sh commands, one per principal, operations and kind of resource."""
    verb = ["--remove", "--force"] if remove else ["--add"]
    grouped: dict[tuple[str, str, ResourceType, Pattern, str], list[str]] = defaultdict(list)
    for resource, pattern, operations, servers, principal in _by_resource(grants):
        flags = " ".join(f"--operation {operation.value}" for operation in operations)
        grouped[(servers, principal, resource.type, pattern, flags)].append(resource.name)
    commands = []
    for (servers, principal, kind, pattern, flags), names in grouped.items():
        words = ["kafka-acls.sh", "--bootstrap-server", servers or bootstrap]
        words += ["--command-config", "admin.properties", *verb, "--allow-principal", principal]
        words += flags.split()
        if kind is ResourceType.CLUSTER:
            words.append("--cluster")
        else:
            for name in names:
                words += [_FLAGS[kind], name]
        if pattern is Pattern.PREFIXED:
            words += ["--resource-pattern-type", "prefixed"]
        commands.append(shlex.join(words))
    return commands


def strimzi_users(grants: Sequence[Grant], strimzi_cluster: str) -> list[dict[str, object]]:
    """Return one KafkaUser per principal of the workers' cluster, to merge with existing ones."""
    by_user: dict[str, list[object]] = defaultdict(list)
    for resource, pattern, operations, _, principal in _by_resource(grants):
        target: dict[str, object] = {"type": _STRIMZI_TYPES[resource.type]}
        if resource.type is not ResourceType.CLUSTER:
            target |= {
                "name": resource.name,
                "patternType": "literal" if pattern is Pattern.LITERAL else "prefix",
            }
        by_user[principal].append(
            {"resource": target, "operations": [operation.value for operation in operations]}
        )
    return [
        {
            "apiVersion": "kafka.strimzi.io/v1beta2",
            "kind": "KafkaUser",
            "metadata": {
                "name": principal.removeprefix("User:"),
                "labels": {"strimzi.io/cluster": strimzi_cluster},
            },
            "spec": {"authorization": {"type": "simple", "acls": acls}},
        }
        for principal, acls in by_user.items()
    ]


def terraform(grants: Sequence[Grant]) -> list[str]:
    """Return `kafka_acl` resources of the provider Mongey/kafka, one per grant."""
    blocks = []
    for grant in grants:
        label = "_".join(
            "".join(
                character
                if character.isalnum() and character.isascii()
                else f"_{ord(character):x}_"
                for character in part
            )
            for part in (
                grant.principal.removeprefix("User:"),
                grant.operation.value,
                grant.resource.type.value,
                grant.resource.name,
                *(["prefixed"] if grant.pattern is Pattern.PREFIXED else []),
            )
        )
        lines = {
            "resource_name": grant.resource.name,
            "resource_type": grant.resource.type.value,
            "resource_pattern_type_filter": grant.pattern.value.capitalize(),
            "acl_principal": grant.principal,
            "acl_host": "*",
            "acl_operation": grant.operation.value,
            "acl_permission_type": "Allow",
        }
        longest = max(map(len, lines))
        body = "\n".join(
            f"  {key.ljust(longest)} = {json.dumps(value, ensure_ascii=False)}"
            for key, value in lines.items()
        )
        body = body.replace("${", "$${").replace("%{", "%%{")
        blocks.append(f'resource "kafka_acl" "{label}" {{\n{body}\n}}')
    return blocks


def _by_resource(
    grants: Sequence[Grant],
) -> list[tuple[Resource, Pattern, tuple[GrantOperation, ...], str, str]]:
    """Return the grants with all operations of one principal on one resource together."""
    operations: dict[tuple[str, str, Resource, Pattern], list[GrantOperation]] = defaultdict(list)
    for grant in grants:
        key = (grant.servers, grant.principal, grant.resource, grant.pattern)
        operations[key].append(grant.operation)
    return [
        (resource, pattern, tuple(found), servers, principal)
        for (servers, principal, resource, pattern), found in operations.items()
    ]


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
    """A type of authorization error: `rules` apply unless the text matches a more exact rule.

    `known`: all rules about this type of resource; None: all rules but those of ids and groups.
    """

    pattern: re.Pattern[str]
    rules: tuple[str, ...]
    known: frozenset[str] | None

    def of(self, rules: tuple[str, ...]) -> tuple[str, ...]:
        """Return the members of `rules` that are about this type."""
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
        """Return the findings about the error or name; if the text names resources, only theirs."""
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
        # The failed operation may need several rights; the error says which one is missing.
        rules = kind.of(rules) or kind.rules
    if rules:
        return Explanation(rules=rules, names=tuple(sorted(names)))
    return Explanation(rules=(), names=(text.strip(),))
