"""The smallest set of ACLs that fills the needs, and its forms for tools that apply them. Pure.

Read and Write imply Describe for Kafka's own authorizer, so Describe is listed beside them only on
request. Names are literal unless prefixes are asked for; `All` and `*` are never used. A DENY
against a grant is reported, never removed. The output is sorted, so that it can be compared.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyconnect_cli.acls.plan.check import IMPLYING_DESCRIBE
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
class StandingDeny:
    """A DENY that stands against a grant; this command never removes it."""

    need: Need
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantSet:
    """Grants to add; `conflicts` stay denied in spite of them, `unnamed` lack a principal."""

    grants: tuple[Grant, ...]
    conflicts: tuple[StandingDeny, ...] = ()
    unnamed: tuple[Need, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The stable form for machines."""
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
            conflicts.append(StandingDeny(need=need, evidence=finding.evidence))
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
    """Return one KafkaUser per principal of the workers' cluster, to be merged with what exists."""
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
